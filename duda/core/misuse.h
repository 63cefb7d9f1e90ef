// SPDX-License-Identifier: Apache-2.0
/*
 * Mistakes of a service in the use of the API: one line of the log, at most one in ten seconds for each worker.
 */
#ifndef DUDA_CORE_MISUSE_H
#define DUDA_CORE_MISUSE_H

#include <stdint.h>

struct service_worker;

/* For service_worker. */
struct misuse {
    uint64_t logged_ms; /* 0: never */
    unsigned missing;   /* lines that were not written since then */
};

/* Logs that a call of an object was a mistake: `reason` is a clause. */
void misuse_log_of(struct service_worker *w, const char *object, const char *call, const char *reason);
/* The same for the object `response`. */
static inline void misuse_log(struct service_worker *w, const char *call, const char *reason)
{
    misuse_log_of(w, "response", call, reason);
}
/* Logs the reason of an -errno. Returns `err`. */
int misuse_error(struct service_worker *w, const char *call, int err);

#endif
