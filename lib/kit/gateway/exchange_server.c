// SPDX-License-Identifier: Apache-2.0
/*
 * Which server an exchange goes to (exchange.h): that of `To`, or one of a group.
 */
#include "bound.h"
#include "exchange.h"

#include <errno.h>

enum { PREAMBLE_BYTES_MAX = 128 };

static struct mk__gw_backend *hold_backend(struct mk__gw_exchange *x, struct mk_upstream_server *server)
{
    MK_BUF_ON_STACK(preamble, PREAMBLE_BYTES_MAX);
    if (x->call.protocol->write_preamble)
        x->call.protocol->write_preamble(&x->call, &preamble);
    return mk__gw_backend_hold(x->thread, x->route, server, mk_buf_str(&preamble));
}

bool mk__gw_exchange_end_use(struct mk__gw_exchange *x)
{
    bool is_passed_on = x->uses_backend && mk__gw_backend_end_use(x->backend);
    x->uses_backend = false;
    return is_passed_on;
}

/* Replaces the backend, and what belongs to the one before. `backend` may be NULL. */
static void set_backend(struct mk__gw_exchange *x, struct mk__gw_backend *backend)
{
    if (x->conn)
        mk__gw_backend_close(x->conn);
    mk__gw_exchange_end_use(x);
    if (x->backend)
        mk__gw_backend_put(x->backend);
    x->conn = NULL;
    x->backend = backend;
    x->uses_backend = backend != NULL;
}

/* Takes over a request of the server. Returns 0 or -ENOMEM, and it has ended there. */
static int use_server(struct mk__gw_exchange *x, struct mk_upstream_server *server)
{
    struct mk__gw_backend *backend = hold_backend(x, server);
    if (!backend && server)
        x->route->upstreams->end(server, mk__gw_thread_get_worker(x->thread));
    if (!backend)
        return -ENOMEM;
    set_backend(x, backend);
    if (server)
        mk__gw_report_server(&x->report, backend->stats, server->address, x->tries.failure);
    return 0;
}

static void on_wait_end(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(wait, struct mk__gw_exchange, wait);
    if (err == 0)
        err = use_server(x, server);
    if (err == 0)
        mk__gw_exchange_connect_server(x);
    else
        mk__gw_exchange_reject_group(x, err);
}

int mk__gw_exchange_choose_server(struct mk__gw_exchange *x)
{
    const struct mk_gateway_route *route = x->route;
    struct mk_upstream_server *server = NULL;
    if (route->group)
        x->wait.sticky = (struct mk_upstream_server *)(uintptr_t)mk__gw_bound_find_login(x->req, x->thread, route);
    int r =
        route->group ? route->upstreams->choose(route->group, x->req, &x->tries, &x->wait, on_wait_end, &server) : 0;
    if (r == 0)
        return use_server(x, server);
    if (r == MK_AGAIN) {
        set_backend(x, NULL);
        x->phase = MK__GW_QUEUED;
        mk__gw_exchange_up_rewind(x); /* what comes of its body is for the next server */
    }
    return r;
}

static void report_outcome(struct mk__gw_exchange *x, const struct mk_upstream_outcome *outcome)
{
    if (x->backend && x->backend->server)
        x->route->upstreams->report(x->route->group, x->backend->server, mk_request_worker(x->req), outcome);
}

void mk__gw_exchange_report_head(struct mk__gw_exchange *x, unsigned status)
{
    const struct mk_upstream_outcome outcome = {.status = status,
                                                .head_ms = (uint32_t)(mk_loop_now_ms(x->loop) - x->sent_ms)};
    report_outcome(x, &outcome);
}

void mk__gw_exchange_report_error(struct mk__gw_exchange *x, int err)
{
    const struct mk_upstream_outcome outcome = {.err = err, .is_connected = x->phase >= MK__GW_WAITING};
    report_outcome(x, &outcome);
}

bool mk__gw_exchange_tries_after_status(struct mk__gw_exchange *x, unsigned status)
{
    if (!x->route->group || !x->is_idempotent || !mk__gw_exchange_can_resend(x) ||
        mk_loop_now_ms(x->loop) >= x->deadline_ms || status == MK_GATEWAY_LOOP)
        return false;
    x->tries.failure = MK_UPSTREAM_STATUS;
    x->tries.status = status;
    if (mk__gw_exchange_choose_server(x) != 0)
        return false;
    mk__gw_exchange_connect_server(x);
    return true;
}
