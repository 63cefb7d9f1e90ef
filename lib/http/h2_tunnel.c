// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes of http/h2_tunnel.h.
 */
#include "http/h2_tunnel.h"

#include "http/tunnel.h"

#include <errno.h>

enum { OUT_BYTES = 16 * 1024 };

ssize_t mk__h2_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    size_t n = mk__h2_stream_take(s, to, size);
    return n || s->ended_in ? (ssize_t)n : -EAGAIN;
}

ssize_t mk__h2_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    if (!req->head_sent || s->tunnel_len == OUT_BYTES)
        return -EAGAIN;
    if (s->fin)
        return -EPIPE;
    if (!s->tunnel_out)
        s->tunnel_out = mk_account_alloc(req->http->account, OUT_BYTES);
    if (!s->tunnel_out)
        return -ENOMEM;
    size_t n = OUT_BYTES - s->tunnel_len < size ? OUT_BYTES - s->tunnel_len : size;
    memcpy(s->tunnel_out + s->tunnel_len, from, n);
    s->tunnel_len += (uint32_t)n;
    req->protocol->wake(req);
    return (ssize_t)n;
}

int mk__h2_tunnel_shutdown(struct mk_request *req)
{
    struct mk__h2_stream *s = req->connection;
    s->fin = true;
    req->protocol->wake(req);
    return 0;
}

static unsigned what_is_possible(struct mk__h2_stream *s)
{
    const struct mk__context *http = s->req->http;
    unsigned events = 0;
    if (s->first || s->ended_in)
        events |= MK_TUNNEL_READ;
    if (s->tunnel_len < OUT_BYTES && !s->fin)
        events |= MK_TUNNEL_WRITE;
    if ((http->draining || http->retiring) && !s->told_draining) {
        events |= MK_TUNNEL_DRAINING;
        s->told_draining = true;
    }
    return events;
}

void mk__h2_tunnel_step(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    unsigned events = what_is_possible(s);
    s->again = false;
    if (events && !req->ended)
        req->tunnel->ready(req, events, req->tunnel->ctx);
    if (s->shut && req->ended && !req->failed)
        mk__h2_stream_complete(s);
    if (!s->shut && (s->tunnel_len || s->fin || req->ended))
        mk__h2_order_add(&s->h2->order, &s->place);
}

ssize_t mk__h2_tunnel_send(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end)
{
    size_t n = s->tunnel_len < size ? s->tunnel_len : size;
    if (n) {
        memcpy(to, s->tunnel_out, n);
        memmove(s->tunnel_out, s->tunnel_out + n, s->tunnel_len - n);
        s->tunnel_len -= (uint32_t)n;
        s->req->protocol->wake(s->req); /* there is room again */
    }
    if (!s->tunnel_len)
        mk__h2_tunnel_drop(s);
    *ret_end = !s->tunnel_len && (s->fin || s->req->ended);
    return (ssize_t)n;
}

void mk__h2_tunnel_drop(struct mk__h2_stream *s)
{
    if (s->tunnel_out)
        mk_account_free(s->h2->conn->http->account, s->tunnel_out, OUT_BYTES);
    s->tunnel_out = NULL;
    s->tunnel_len = 0;
}
