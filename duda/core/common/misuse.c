// SPDX-License-Identifier: Apache-2.0
/*
 * Logs mistakes of services (misuse.h).
 */
#include "common/misuse.h"

#include "common/current.h"
#include "common/phase.h"
#include "crash/crash.h"
#include "log/message.h"
#include "service/service.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { INTERVAL_MS = 10000, PLACE_BYTES = 256 };

/* Returns whether a line may be written now; counts those that may not. */
static bool is_allowed(struct service_worker *w)
{
    uint64_t now_ms = mk_loop_now_ms(w->loop);
    if (w->misuse.logged_ms && now_ms - w->misuse.logged_ms < INTERVAL_MS) {
        w->misuse.missing++;
        return false;
    }
    w->misuse.logged_ms = now_ms ? now_ms : 1;
    return true;
}

/* The same for all threads that are none of a worker. duda_main() is called once. */
static bool is_allowed_outside(void)
{
    static _Atomic uint64_t logged_ms;
    struct timespec now;
    if (phase_now() == PHASE_MAIN)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, before = atomic_load(&logged_ms);
    bool is_late = !before || now_ms - before >= INTERVAL_MS;
    return is_late && atomic_compare_exchange_strong(&logged_ms, &before, now_ms);
}

void misuse_log(struct service_worker *w, const char *call, const char *reason)
{
    misuse_log_of(w, call, reason, 0);
}

void misuse_log_of(struct service_worker *w, const char *call, const char *reason, uintptr_t function)
{
    char more[64] = "", place[PLACE_BYTES] = "";
    if (w ? !is_allowed(w) : !is_allowed_outside())
        return;
    if (w && w->misuse.missing)
        snprintf(more, sizeof(more), " (%u mistakes before were not logged)", w->misuse.missing);
    if (w)
        w->misuse.missing = 0;
    if (function)
        crash_describe(function, place, sizeof(place));
    bool has_place = function || crash_describe_caller(place, sizeof(place));
    message_log_of(w ? w->service : current.service, MK_LOG_WARN, "%s: %s%s%s%s", call, reason,
                   has_place ? ", in " : "", place, more);
}

int misuse_error(struct service_worker *w, const char *call, int err)
{
    const char *reason = strerror(-err);
    if (err == -EALREADY)
        reason = "the response has ended, or its head was sent";
    else if (err == -ESTALE)
        reason = "the request has ended: the client has left, or its response was sent";
    misuse_log(w, call, reason);
    return err;
}
