// SPDX-License-Identifier: Apache-2.0
/*
 * Mistakes of a service in the use of the API: one line of the log, which ends with the function of the service that
 * has called, and its line. One mistake, a call with a reason, is logged once in ten seconds of a worker, and of all
 * other threads together; in duda_main() always. There are at most API_ERROR_ROWS lines in ten seconds, whatever
 * clients cause.
 */
#ifndef DUDA_CORE_COMMON_API_ERROR_H
#define DUDA_CORE_COMMON_API_ERROR_H

#include "common/current.h"

#include <monkey/base/log_limit.h>

struct service_worker;

enum { API_ERROR_ROWS = 16, API_ERROR_INTERVAL_MS = MK_LOG_LIMIT_MS };

/* The last mistakes; 0 at first. For service_worker. */
struct api_errors {
    struct mk_log_limit_row rows[API_ERROR_ROWS]; /* a kind of line is a call with a reason */
};

FEATURE_SLOT(api_errors_of, struct api_errors, service_worker, FEATURE_API_ERRORS)

/* Returns whether a mistake may be logged now, as mk_log_limit_is_due() does. */
bool api_error_is_due(struct api_errors *m, const char *call, const char *reason, uint64_t now_ms,
                      unsigned *ret_missing);

/*
 * Logs that a call ("response->print()") was a mistake: `reason` is a clause. `w` is NULL in a thread that is none of a
 * worker.
 */
void api_error_log(struct service_worker *w, const char *call, const char *reason);
/* The same for a function of the service that is not on the stack. */
void api_error_log_at(struct service_worker *w, const char *call, const char *reason, uintptr_t function);
/* Logs the reason of an -errno. Returns `err`. */
int api_error_report(struct service_worker *w, const char *call, int err);

/* Returns whether this thread is in one of `phases`; if not, logs a sentence about `call` ("event->add()"). */
bool phase_check(unsigned phases, const char *call);

#endif
