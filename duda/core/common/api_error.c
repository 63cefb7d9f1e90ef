// SPDX-License-Identifier: Apache-2.0
/*
 * Logs mistakes of services (api_error.h).
 */
#include "common/api_error.h"

#include "common/current.h"
#include "crash/crash.h"
#include "log/message.h"
#include "service/service.h"

#include <monkey/base/time.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { PLACE_BYTES = 256 };

bool api_error_is_due(struct api_errors *m, const char *call, const char *reason, uint64_t now_ms,
                      unsigned *ret_missing)
{
    uint64_t hash = mk_log_limit_hash(mk_log_limit_hash(0, call), reason);
    return mk_log_limit_is_due(m->rows, API_ERROR_ROWS, hash, now_ms, ret_missing);
}

/* The same for all threads that are none of a worker. duda_main() is called once. */
static bool is_due_outside(const char *call, const char *reason, unsigned *ret_missing)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct api_errors mistakes;
    if (phase_now() == PHASE_MAIN)
        return true;
    pthread_mutex_lock(&lock);
    bool is_due = api_error_is_due(&mistakes, call, reason, mk_time_monotonic_ms(), ret_missing);
    pthread_mutex_unlock(&lock);
    return is_due;
}

void api_error_log(struct service_worker *w, const char *call, const char *reason)
{
    api_error_log_at(w, call, reason, 0);
}

void api_error_log_at(struct service_worker *w, const char *call, const char *reason, uintptr_t function)
{
    char more[64] = "", place[PLACE_BYTES] = "";
    unsigned missing = 0;
    if (w ? !api_error_is_due(api_errors_of(w), call, reason, mk_loop_now_ms(w->loop), &missing)
          : !is_due_outside(call, reason, &missing))
        return;
    if (missing)
        snprintf(more, sizeof(more), " (%u mistakes before were not logged)", missing);
    if (function)
        crash_describe(function, place, sizeof(place));
    bool has_place = function || crash_describe_caller(place, sizeof(place));
    message_log_of(w ? w->service : current.service, MK_LOG_WARN, "%s: %s%s%s%s", call, reason,
                   has_place ? ", in " : "", place, more);
}

int api_error_report(struct service_worker *w, const char *call, int err)
{
    const char *reason = strerror(-err);
    if (err == -EALREADY)
        reason = "the response has ended, or its head was sent";
    else if (err == -ESTALE)
        reason = "the request has ended: the client has left, or its response was sent";
    api_error_log(w, call, reason);
    return err;
}

/* ── when a function may be called ── */

static const struct {
    unsigned phases;
    const char *where;
} phase_names[] = {
    {PHASE_MAIN, "in duda_main()"},
    {PHASE_WORKER, "in callbacks of workers"},
    {PHASE_RUNNING, "in callbacks of workers and threads of worker->spawn()"},
    {PHASE_MAIN | PHASE_RUNNING, "in duda_main(), callbacks of workers and threads of worker->spawn()"},
};

static const char *get_place(unsigned phases)
{
    for (size_t i = 0; i < MK_COUNT_OF(phase_names); i++) {
        if (phase_names[i].phases == phases)
            return phase_names[i].where;
    }
    return "in functions that the framework calls";
}

bool phase_check(unsigned phases, const char *call)
{
    char reason[128];
    if (phase_now() & phases)
        return true;
    snprintf(reason, sizeof(reason), "it works only %s; the call did nothing", get_place(phases));
    api_error_log(current.worker, call, reason);
    return false;
}
