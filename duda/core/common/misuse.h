// SPDX-License-Identifier: Apache-2.0
/*
 * Mistakes of a service in the use of the API: one line of the log, at most one in ten seconds for each worker, and for
 * all other threads; of duda_main() all. It ends with the function of the service that has called, and its line.
 */
#ifndef DUDA_CORE_COMMON_MISUSE_H
#define DUDA_CORE_COMMON_MISUSE_H

#include <stdint.h>

struct service_worker;

/* For service_worker. */
struct misuse {
    uint64_t logged_ms; /* 0: never */
    unsigned missing;   /* lines that were not written since then */
};

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
