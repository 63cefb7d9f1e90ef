// SPDX-License-Identifier: Apache-2.0
/*
 * What is freed when a request of a service ends.
 */
#ifndef DUDA_CORE_REQUEST_GC_H
#define DUDA_CORE_REQUEST_GC_H

struct gc_item;

/* Frees the items, the last one first, and empties the list. */
void gc_release(struct gc_item **first);

#endif
