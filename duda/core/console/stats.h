// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of a service as its console shows them, read from its counters at one moment.
 */
#ifndef DUDA_CORE_CONSOLE_STATS_H
#define DUDA_CORE_CONSOLE_STATS_H

#include "log/last_lines.h"
#include "service/counts.h"

#include <stdbool.h>

struct service;

/* Durations in microseconds; 0 if none was measured. A percentile is the end of a bucket: at most a fifth too much. */
struct stats_times {
    uint64_t n, sum_us, p50_us, p90_us, p99_us;
};

/* Of a route, or of all together. */
struct stats_row {
    struct mk_str methods, pattern;
    uint64_t responses; /* all classes */
    uint64_t classes[COUNTS_CLASSES], failures[COUNTS_FAILURES];
    struct stats_times times;
};

/* Memory of a service, as far as it can be known: what it has from malloc() is in no figure. */
struct stats_memory {
    uint64_t copy_bytes;                    /* of its file, which is kept in memory */
    uint64_t mapped_bytes;                  /* of its code and data: address space */
    bool has_pages;                         /* the next two are known */
    uint64_t resident_bytes, private_bytes; /* of mapped_bytes: in memory; and of those written, or copied to be */
    uint64_t settings_bytes;                /* routes, names, settings: what duda_main() has made, without malloc() */
    uint64_t request_bytes;                 /* structs of requests, kept for further ones; without arenas and bodies */
};

struct stats_tasks {
    bool has_any; /* it has had tasks */
    int64_t queued, running;
    uint64_t done, refused;
};

struct stats {
    const struct service *service;
    int64_t wall_s;   /* when they were read, in seconds since 1970 */
    int64_t uptime_s; /* of this version of the service */
    int64_t active, crashes;
    struct stats_row total, rows[COUNTS_ROWS_MAX];
    unsigned n;
    struct stats_tasks tasks;
    struct stats_memory memory;
    uint64_t messages; /* all that were kept at any time; of those the last ones are in `lines` */
    unsigned n_lines;
    struct last_line lines[LAST_LINES_MAX];
};

/* Reads the figures of a service that runs. May read /proc: for a job. Any thread. */
void stats_read(struct stats *f, const struct service *s);

/*
 * Counts the pages of a range of memory of this process that are resident, and those of them that are private to it.
 * Returns 0 or -errno of /proc/self/pagemap.
 */
int stats_count_pages(uintptr_t begin, uintptr_t end, uint64_t *ret_resident, uint64_t *ret_private);

#endif
