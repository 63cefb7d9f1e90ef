// SPDX-License-Identifier: Apache-2.0
/*
 * Input and output of tunnels (http/h2/tunnel.h).
 */
#include "http/h2/tunnel.h"

#include "http/tunnel.h"

#include <assert.h>
#include <errno.h>

enum { OUT_BYTES = 16 * 1024 };

ssize_t mk__h2_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    size_t n = mk__h2_stream_read(s, to, size);
    mk__h2_timeout_note(s);
    return n || s->recv_ended ? (ssize_t)n : -EAGAIN;
}

ssize_t mk__h2_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    struct mk__h2_stream *s = req->connection;
    if (req->output_state < MK__OUTPUT_HEAD || s->tunnel_len == OUT_BYTES)
        return -EAGAIN;
    if (s->fin != MK__H2_FIN_NONE)
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
    assert(req->tunnel);
    if (s->fin == MK__H2_FIN_NONE)
        s->fin = MK__H2_FIN_QUEUED;
    req->ops->wake(req);
    return 0;
}

static unsigned find_ready_events(const struct mk__h2_stream *s)
{
    unsigned events = 0;
    if (s->body_first || s->recv_ended)
        events |= MK_TUNNEL_READ;
    if (s->tunnel_len < OUT_BYTES && s->fin == MK__H2_FIN_NONE)
        events |= MK_TUNNEL_WRITE;
    return events;
}

void mk__h2_tunnel_step(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    assert(req->output_state == MK__OUTPUT_HEAD);
    mk__tunnel_call_ready(req, find_ready_events(s));
    if (s->fin == MK__H2_FIN_SENT && req->response_state == MK__RESPONSE_ENDED)
        mk__h2_stream_complete(s);
    else if (s->fin != MK__H2_FIN_SENT &&
             (s->tunnel_len || s->fin == MK__H2_FIN_QUEUED || req->response_state != MK__RESPONSE_OPEN))
        mk__h2_scheduler_add(&s->h2->scheduler, &s->priority);
}

ssize_t mk__h2_tunnel_send(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end)
{
    size_t n = s->tunnel_len < size ? s->tunnel_len : size;
    if (n) {
        memcpy(to, s->tunnel_out, n);
        assert(s->tunnel_len <= OUT_BYTES);
        memmove(s->tunnel_out, s->tunnel_out + n, s->tunnel_len - n);
        s->tunnel_len -= (uint32_t)n;
        s->req->ops->wake(s->req); /* there is room for output again */
    }
    if (!s->tunnel_len)
        mk__h2_tunnel_free(s);
    *ret_end = !s->tunnel_len && (s->fin != MK__H2_FIN_NONE || s->req->response_state != MK__RESPONSE_OPEN);
    return (ssize_t)n;
}

void mk__h2_tunnel_free(struct mk__h2_stream *s)
{
    if (s->tunnel_out)
        mk_account_free(s->h2->conn->http->account, s->tunnel_out, OUT_BYTES);
    s->tunnel_out = NULL;
    s->tunnel_len = 0;
}
