// SPDX-License-Identifier: Apache-2.0
/*
 * Takes exchanges over (<monkey/tunnel.h>), and runs the turns of such a connection over HTTP/1.
 */
#include "http/tunnel.h"

#include "http/h1/h1.h"

#include "loop/loop.h"

#include <errno.h>

/* ── for handlers ── */

/* An upgrade needs HTTP/1.1, Upgrade and "Connection: upgrade" (RFC 9110 section 7.8); CONNECT needs no header. */
static bool can_take_over(struct mk_request *req)
{
    struct mk_str rest = mk_request_header_by_name(req, MK_STR("Connection")), option;
    if (req->head_sent || req->ended || req->first || req->parse.minor == 0 || req->head.body != MK__BODY_NONE)
        return false;
    if (req->parse.method == MK_CONNECT)
        return true;
    if (!mk_request_header_by_name(req, MK_STR("Upgrade")).p)
        return false;
    while (mk_str_next(&rest, &option))
        if (mk_str_ieq(option, MK_STR("upgrade")))
            return true;
    return false;
}

int mk_request_take_over(struct mk_request *req, mk_tunnel_fn ready, void *ctx)
{
    if (!can_take_over(req))
        return -EINVAL;
    struct mk__tunnel *tunnel = mk_arena_alloc(&req->arena, sizeof(*tunnel));
    if (!tunnel)
        return -ENOMEM;
    *tunnel = (struct mk__tunnel){ready, ctx};
    req->tunnel = tunnel;
    req->status = req->parse.method == MK_CONNECT ? 200 : 101;
    req->protocol->wake(req);
    return 0;
}

ssize_t mk_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    ssize_t n = req->protocol->read(req, to, size);
    if (n > 0)
        req->body_bytes += (size_t)n;
    return n;
}

ssize_t mk_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    ssize_t n = req->protocol->write(req, from, size);
    if (n > 0)
        req->sent_bytes += (size_t)n;
    return n;
}

int mk_tunnel_shutdown(struct mk_request *req)
{
    return req->protocol->shutdown(req);
}

void mk_tunnel_wake(struct mk_request *req)
{
    req->protocol->wake_tunnel(req);
}

void mk_tunnel_end(struct mk_request *req)
{
    req->ended = true;
    mk_tunnel_wake(req);
}

/* ── HTTP/1 ── */

ssize_t mk__h1_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    struct mk__conn *c = req->connection;
    size_t n = mk__h1_read_saved_input(c, to, size);
    if (n || c->sock.ended)
        return (ssize_t)n;
    return c->sock.readable ? mk__sock_read(&c->sock, to, size) : -EAGAIN;
}

ssize_t mk__h1_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    struct mk__conn *c = req->connection;
    return req->head_sent ? mk__sock_write(&c->sock, from, size) : -EAGAIN;
}

int mk__h1_tunnel_shutdown(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    return c->sock.io.transport->shutdown(&c->sock.io);
}

void mk__h1_tunnel_wake(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    mk_task_schedule(c->http->loop, &c->task);
}

static unsigned get_ready_events(struct mk__conn *c)
{
    unsigned events = 0;
    if (c->saved_input || c->sock.readable || c->sock.ended)
        events |= MK_TUNNEL_READ;
    if (c->sock.writable && !c->sock.held)
        events |= MK_TUNNEL_WRITE;
    if ((c->http->draining || c->http->retiring) && !c->drain_notified) {
        events |= MK_TUNNEL_DRAINING;
        c->drain_notified = true;
    }
    return events;
}

enum mk__conn_state mk__h1_run_tunnel(struct mk__conn *c)
{
    struct mk_request *req = c->req;
    struct mk__context *http = c->http;
    if (mk__sock_flush(&c->sock, &http->out, http->account, 0) < 0)
        return MK__CONN_CLOSED;
    unsigned events = get_ready_events(c);
    if (events && !req->ended)
        req->tunnel->ready(req, events, req->tunnel->ctx);
    if (req->failed)
        return MK__CONN_CLOSED;
    if (!req->ended)
        return MK__CONN_TUNNEL;
    req->complete = true;
    mk__h1_finish_exchange(c, false);
    mk__h1_free_saved_input(c);
    return mk__conn_begin_close(c);
}
