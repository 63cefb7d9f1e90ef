// SPDX-License-Identifier: Apache-2.0
/*
 * Mistakes of a service in the use of the API: one line of the log, which ends with the function of the service that
 * has called, and its line. One mistake, a call with a reason, is logged once in ten seconds of a worker, and of all
 * other threads together; in duda_main() always. There are at most MISUSE_ROWS lines in ten seconds, whatever clients
 * cause.
 */
#ifndef DUDA_CORE_COMMON_MISUSE_H
#define DUDA_CORE_COMMON_MISUSE_H

#include <stdbool.h>
#include <stdint.h>

struct service_worker;

enum { MISUSE_ROWS = 16, MISUSE_INTERVAL_MS = 10000 };

/* One mistake. */
struct misuse_row {
    uint64_t hash;      /* of its call and reason */
    uint64_t logged_ms; /* 0: the row is free */
    unsigned missing;   /* lines that were not written since then */
};

/* The last mistakes; 0 at first. For service_worker. */
struct misuse {
    struct misuse_row rows[MISUSE_ROWS];
};

/*
 * Returns whether a mistake may be logged now, with the number of lines before that were not written; counts it
 * otherwise. A new mistake takes a free row or the oldest one, with its number, unless that is younger than the
 * interval.
 */
bool misuse_is_due(struct misuse *m, const char *call, const char *reason, uint64_t now_ms, unsigned *ret_missing);

/*
 * Logs that a call ("response->print()") was a mistake: `reason` is a clause. `w` is NULL in a thread that is none of a
 * worker.
 */
void misuse_log(struct service_worker *w, const char *call, const char *reason);
/* The same for a function of the service that is not on the stack. */
void misuse_log_of(struct service_worker *w, const char *call, const char *reason, uintptr_t function);
/* Logs the reason of an -errno. Returns `err`. */
int misuse_error(struct service_worker *w, const char *call, int err);

#endif
