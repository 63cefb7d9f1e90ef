// SPDX-License-Identifier: Apache-2.0
/*
 * Logs mistakes of services (misuse.h).
 */
#include "misuse.h"

#include "service.h"

#include <errno.h>
#include <stdio.h>

enum { INTERVAL_MS = 10000 };

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

void misuse_log_of(struct service_worker *w, const char *object, const char *call, const char *reason)
{
    char more[64] = "";
    if (!is_allowed(w))
        return;
    if (w->misuse.missing)
        snprintf(more, sizeof(more), " (%u mistakes before were not logged)", w->misuse.missing);
    w->misuse.missing = 0;
    mk_log_warn("service %s: %s->%s(): %s%s", w->service->self.name.data, object, call, reason, more);
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
