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
/* Continues with what the worker of a former generation had to do: an empty cache needs no sweep. */
void sweep_resume(struct cache_worker *w);
void sweep_cancel(struct cache_worker *w);

/* Sets the limits of descriptors by what was configured and by RLIMIT_NOFILE, which may change at any time. */
void sweep_limit_descriptors(struct cache *cache);
/*
 * Gives half of the descriptors back; all of them if the process has none left. They are closed when no loop can see
 * their entries any more: not in this turn. Any thread; does not block.
 */
void sweep_evict_descriptors(struct cache *cache);

#endif
