// SPDX-License-Identifier: Apache-2.0
/*
 * Closes descriptors that are not used, or whose file has no name any more, and keeps the counters of entries. A timer
 * of a worker does it once a second, while there are descriptors or entries have changed.
 */
#ifndef CACHE_SWEEP_H
#define CACHE_SWEEP_H

#include "worker.h"

void sweep_init(struct cache_worker *w);
/* Makes sure that a sweep follows. In the worker's thread. */
void sweep_schedule(struct cache_worker *w);
/* Goes on with what the worker of a former generation had to do: an empty cache needs no sweep. */
void sweep_resume(struct cache_worker *w);
void sweep_cancel(struct cache_worker *w);

/* Gives half of the descriptors back. Any thread; does not block. */
void sweep_evict_descriptors(struct cache *cache);

#endif
