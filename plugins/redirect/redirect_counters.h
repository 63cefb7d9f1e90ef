// SPDX-License-Identifier: Apache-2.0
/*
 * Counts redirects by status, requests that were rewritten, and requests for which that was not possible. The counters
 * are those of the process.
 */
#ifndef REDIRECT_REDIRECT_COUNTERS_H
#define REDIRECT_REDIRECT_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/plugin.h>

enum redirect_count {
    REDIRECT_COUNT_301, /* redirects: in the order of Status in [REDIRECT] */
    REDIRECT_COUNT_302,
    REDIRECT_COUNT_303,
    REDIRECT_COUNT_307,
    REDIRECT_COUNT_308,
    REDIRECT_COUNT_REWRITES,
    REDIRECT_COUNT_PATTERN, /* failures: a pattern takes too much time for the path */
    REDIRECT_COUNT_LOOP,
    REDIRECT_COUNT_TOO_LONG,
    REDIRECT_COUNT_INVALID_PATH, /* captures have made a path that no file can have */
    REDIRECT_COUNT_NO_MEMORY,
    REDIRECT_COUNTS,
};

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void redirect_counters_open(void);
/* Adds 1 to a counter. In the thread of the request's worker. */
void redirect_counters_add(enum redirect_count count, const struct mk_request *req);

#endif
