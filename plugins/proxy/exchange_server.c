// SPDX-License-Identifier: Apache-2.0
/*
 * Which server an exchange goes to (exchange_state.h): that of `To`, or one of a group.
 */
#include "exchange_state.h"
#include "proxy_header.h"

#include <errno.h>

/* Connections that begin with the addresses of a client serve no other one. */
static struct backend *hold_backend(struct exchange *x, struct mk_upstream_server *server)
{
    const struct route *route = x->route;
    struct mk_request *req = x->req;
    char storage[PROXY_HEADER_BYTES_MAX];
    struct mk_buf header;
    mk_buf_init_fixed(&header, storage, sizeof(storage));
    if (route->conf->send_proxy)
        proxy_header_write(&header, route->conf->send_proxy, mk_request_client(req),
                           mk_connection_local(mk_request_connection(req)));
    return backend_hold(x->thread, route, server, mk_buf_str(&header));
}

void exchange_end_use(struct exchange *x)
{
    if (x->uses_backend)
        backend_end_use(x->backend);
    x->uses_backend = false;
}

/* Replaces the backend, and what belongs to the one before. `backend` may be NULL. */
static void set_backend(struct exchange *x, struct backend *backend)
{
    if (x->conn)
        backend_close(x->conn);
    exchange_end_use(x);
    if (x->backend)
        backend_put(x->backend);
    x->conn = NULL;
    x->backend = backend;
    x->uses_backend = backend != NULL;
}

/* Takes over a request of the server. Returns 0 or -ENOMEM, and it has ended there. */
static int use_server(struct exchange *x, struct mk_upstream_server *server)
{
    struct backend *backend = hold_backend(x, server);
    if (!backend && server)
        x->route->upstreams->end(server, thread_get_worker(x->thread));
    if (!backend)
        return -ENOMEM;
    set_backend(x, backend);
    if (server)
        report_server(&x->report, backend->tally, server->address, x->tries.loss);
    return 0;
}

static void on_wait_end(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    struct exchange *x = MK_CONTAINER_OF(wait, struct exchange, wait);
    if (err == 0)
        err = use_server(x, server);
    if (err == 0)
        exchange_connect_server(x);
    else
        exchange_reject_group(x, err);
}

int exchange_choose_server(struct exchange *x)
{
    const struct route *route = x->route;
    struct mk_upstream_server *server = NULL;
    int r =
        route->group ? route->upstreams->choose(route->group, x->req, &x->tries, &x->wait, on_wait_end, &server) : 0;
    if (r == 0)
        return use_server(x, server);
    if (r == MK_AGAIN) {
        set_backend(x, NULL);
        x->phase = QUEUED;
        exchange_up_rewind(x); /* what comes of its body is for the next server */
    }
    return r;
}

static void report_outcome(struct exchange *x, const struct mk_upstream_outcome *outcome)
{
    if (x->backend && x->backend->server)
        x->route->upstreams->report(x->route->group, x->backend->server, mk_request_worker(x->req), outcome);
}

void exchange_report_head(struct exchange *x, unsigned status)
{
    const struct mk_upstream_outcome outcome = {.status = status,
                                                .head_ms = (uint32_t)(mk_loop_now_ms(x->loop) - x->sent_ms)};
    report_outcome(x, &outcome);
}

void exchange_report_error(struct exchange *x, int err)
{
    const struct mk_upstream_outcome outcome = {.err = err, .is_connected = x->phase >= WAITING};
    report_outcome(x, &outcome);
}

bool exchange_tries_after_status(struct exchange *x, unsigned status)
{
    if (!x->route->group || !x->is_idempotent || !exchange_can_resend(x) || mk_loop_now_ms(x->loop) >= x->deadline_ms)
        return false;
    x->tries.loss = MK_UPSTREAM_STATUS;
    x->tries.status = status;
    if (exchange_choose_server(x) != 0)
        return false;
    exchange_connect_server(x);
    return true;
}
