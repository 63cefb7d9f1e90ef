// SPDX-License-Identifier: Apache-2.0
/*
 * What is freed when a request of a service ends.
 */
#ifndef DUDA_CORE_REQUEST_GC_H
#define DUDA_CORE_REQUEST_GC_H

struct duda_request;

/* Frees the items of a request, the last one first, and empties their list. */
void gc_release(struct duda_request *dr);

#endif
