// SPDX-License-Identifier: Apache-2.0
/*
 * The counters that the document shows, read once: their sums, and those that are shown one by one, as JSON.
 */
#ifndef STATUS_COLLECT_H
#define STATUS_COLLECT_H

#include "counted.h"
#include "totals.h"

/* As mk_counters_each(): tests have their own counters. */
typedef int (*collect_each_fn)(mk_counter_fn fn, void *ctx);

enum { COLLECT_BREAKDOWNS = 6 };

struct collected {
    struct totals totals;
    struct mk_counter_table backends, servers;
    struct mk_buf breakdowns[COLLECT_BREAKDOWNS]; /* members: counters of the server, by one label */
    struct mk_buf plugins;                        /* elements: counters of plugins */
    bool with_plugins;
};

/* The keys of the breakdowns. */
extern const char *const collect_breakdown_keys[COLLECT_BREAKDOWNS];

/*
 * Reads the counters, those of plugins only if that is wanted. The parts have up to `bytes_max` bytes each; their
 * sticky errors tell what is missing. Stays in place until collect_release().
 */
void collect_counters(struct collected *c, bool with_plugins, size_t bytes_max, collect_each_fn each);
void collect_release(struct collected *c);

#endif
