// SPDX-License-Identifier: Apache-2.0
/*
 * Exchanges that were taken over (<monkey/tunnel.h>): who may, and the turns of such a connection on HTTP/1.
 */
#include "http/tunnel.h"

#include "http/h1.h"

#include "loop/loop.h"

#include <errno.h>

/* ── the handler's side ── */

/* Upgrade is for HTTP/1.1 and named by Connection (RFC 9110 section 7.8); CONNECT asks for nothing else. */
static bool may_take_over(struct mk_request *req)
{
    struct mk_str rest = mk_request_header(req, MK_STR("Connection")), option;
    if (req->head_sent || req->ended || req->first || req->parse.minor == 0 || req->head.body != MK__BODY_NONE)
        return false;
    if (req->parse.method == MK_CONNECT)
        return true;
    if (!mk_request_header(req, MK_STR("Upgrade")).p)
        return false;
    while (mk_str_next(&rest, &option))
        if (mk_str_ieq(option, MK_STR("upgrade")))
            return true;
    return false;
}

int mk_request_take_over(struct mk_request *req, mk_tunnel_fn ready, void *ctx)
{
    if (!may_take_over(req))
        return -EINVAL;
    struct mk__tunnel *tunnel = mk_arena_alloc(&req->arena, sizeof(*tunnel));
    if (!tunnel)
        return -ENOMEM;
    *tunnel = (struct mk__tunnel){ready, ctx};
    req->tunnel = tunnel;
    req->status = req->parse.method == MK_CONNECT ? 200 : 101;
    req->carrier->wake(req);
    return 0;
}

ssize_t mk_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    ssize_t n = req->carrier->read(req, to, size);
    if (n > 0)
        req->body_bytes += (size_t)n;
    return n;
}

ssize_t mk_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    ssize_t n = req->carrier->write(req, from, size);
    if (n > 0)
        req->sent_bytes += (size_t)n;
    return n;
}

int mk_tunnel_shutdown(struct mk_request *req)
{
    return req->carrier->shutdown(req);
}

void mk_tunnel_wake(struct mk_request *req)
{
    req->carrier->again(req);
}

void mk_tunnel_end(struct mk_request *req)
{
    req->ended = true;
    mk_tunnel_wake(req);
}

/* ── HTTP/1 ── */

ssize_t mk__h1_read_bytes(struct mk_request *req, void *to, size_t size)
{
    struct mk__conn *c = req->connection;
    size_t n = mk__h1_take_rest_bytes(c, to, size);
    if (n || c->stream.ended)
        return (ssize_t)n;
    return c->stream.readable ? mk__stream_read(&c->stream, to, size) : -EAGAIN;
}

ssize_t mk__h1_write_bytes(struct mk_request *req, const void *from, size_t size)
{
    struct mk__conn *c = req->connection;
    return req->head_sent ? mk__stream_write(&c->stream, from, size) : -EAGAIN;
}

int mk__h1_shutdown_bytes(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    return c->stream.io.transport->shutdown(&c->stream.io);
}

void mk__h1_again(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    mk_task_schedule(c->http->loop, &c->task);
}

static unsigned what_is_possible(struct mk__conn *c)
{
    unsigned events = 0;
    if (c->rest || c->stream.readable || c->stream.ended)
        events |= MK_TUNNEL_READ;
    if (c->stream.writable && !c->stream.held)
        events |= MK_TUNNEL_WRITE;
    if ((c->http->draining || c->http->leaving) && !c->told) {
        events |= MK_TUNNEL_DRAINING;
        c->told = true;
    }
    return events;
}

enum mk__conn_state mk__h1_tunnel(struct mk__conn *c)
{
    struct mk_request *req = c->req;
    struct mk__http *http = c->http;
    if (mk__stream_flush(&c->stream, &http->out, http->account, 0) < 0)
        return MK__CONN_CLOSED;
    unsigned events = what_is_possible(c);
    if (events && !req->ended)
        req->tunnel->ready(req, events, req->tunnel->ctx);
    if (req->failed)
        return MK__CONN_CLOSED;
    if (!req->ended)
        return MK__CONN_TUNNEL;
    req->complete = true;
    mk__h1_finish_exchange(c, false);
    mk__h1_drop_rest(c);
    return mk__conn_goodbye(c);
}
