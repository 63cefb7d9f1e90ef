// SPDX-License-Identifier: Apache-2.0
/*
 * Input and output of tunnels (http/h2/tunnel.h).
 */
#include "http/h2/tunnel.h"

#include "http/tunnel.h"

#include <errno.h>

enum { OUT_BYTES = 16 * 1024 };

ssize_t mk__h2_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    size_t n = mk__h2_stream_read(s, to, size);
    return n || s->recv_ended ? (ssize_t)n : -EAGAIN;
}

ssize_t mk__h2_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    if (!req->head_sent || s->tunnel_len == OUT_BYTES)
        return -EAGAIN;
    if (s->fin_queued)
        return -EPIPE;
    if (!s->tunnel_out)
        s->tunnel_out = mk_account_alloc(req->http->account, OUT_BYTES);
    if (!s->tunnel_out)
        return -ENOMEM;
    size_t n = OUT_BYTES - s->tunnel_len < size ? OUT_BYTES - s->tunnel_len : size;
    memcpy(s->tunnel_out + s->tunnel_len, from, n);
    s->tunnel_len += (uint32_t)n;
    req->ops->wake(req);
    return (ssize_t)n;
}

int mk__h2_tunnel_shutdown(struct mk_request *req)
{
    struct mk__h2_stream *s = req->connection;
    s->fin_queued = true;
    req->ops->wake(req);
    return 0;
}

static unsigned find_ready_events(struct mk__h2_stream *s)
{
    const struct mk__context *http = s->req->http;
    unsigned events = 0;
    if (s->body_first || s->recv_ended)
        events |= MK_TUNNEL_READ;
    if (s->tunnel_len < OUT_BYTES && !s->fin_queued)
        events |= MK_TUNNEL_WRITE;
    if ((http->draining || http->retiring) && !s->drain_notified) {
        events |= MK_TUNNEL_DRAINING;
        s->drain_notified = true;
    }
    return events;
}

void mk__h2_tunnel_step(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    unsigned events = find_ready_events(s);
    s->ready_again = false;
    if (events && !req->ended)
        req->tunnel->ready(req, events, req->tunnel->ctx);
    if (s->fin_sent && req->ended && !req->failed)
        mk__h2_stream_complete(s);
    if (!s->fin_sent && (s->tunnel_len || s->fin_queued || req->ended))
        mk__h2_scheduler_add(&s->h2->scheduler, &s->priority);
}

ssize_t mk__h2_tunnel_send(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end)
{
    size_t n = s->tunnel_len < size ? s->tunnel_len : size;
    if (n) {
        memcpy(to, s->tunnel_out, n);
        memmove(s->tunnel_out, s->tunnel_out + n, s->tunnel_len - n);
        s->tunnel_len -= (uint32_t)n;
        s->req->ops->wake(s->req); /* there is room for output again */
    }
    if (!s->tunnel_len)
        mk__h2_tunnel_free(s);
    *ret_end = !s->tunnel_len && (s->fin_queued || s->req->ended);
    return (ssize_t)n;
}

void mk__h2_tunnel_free(struct mk__h2_stream *s)
{
    if (s->tunnel_out)
        mk_account_free(s->h2->conn->http->account, s->tunnel_out, OUT_BYTES);
    s->tunnel_out = NULL;
    s->tunnel_len = 0;
}
