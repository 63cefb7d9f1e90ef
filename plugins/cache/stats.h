// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of the cache, of the whole process.
 */
#ifndef CACHE_STATS_H
#define CACHE_STATS_H

#include "worker.h"

/* Writes members of an object. Any thread. */
void stats_write(struct cache *cache, struct mk_buf *out);
/* The same in one object without others in it, as the shell shows them. */
void stats_write_flat(struct cache *cache, struct mk_buf *out);

/* Makes the events of cache_worker.streams. */
extern const struct mk_event_maker stats_events;

#endif
