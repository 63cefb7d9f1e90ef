// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of an HTTP/1 connection that a handler has taken over (<monkey/tunnel.h>).
 */
#include "http/h1/h1.h"

#include "http/tunnel.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

ssize_t mk__h1_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    struct mk__conn *c = req->connection;
    size_t n = mk__h1_read_saved_input(c, to, size);
    if (n || mk__sock_has_ended(&c->sock))
        return (ssize_t)n;
    return c->sock.readable ? mk__sock_read(&c->sock, to, size) : -EAGAIN;
}

ssize_t mk__h1_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    struct mk__conn *c = req->connection;
    return req->output_state >= MK__OUTPUT_HEAD ? mk__sock_write(&c->sock, from, size) : -EAGAIN;
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

static unsigned get_ready_events(const struct mk__conn *c)
{
    unsigned events = 0;
    if (c->proto_data || c->sock.readable || mk__sock_has_ended(&c->sock))
        events |= MK_TUNNEL_READ;
    if (c->sock.writable && !c->sock.held)
        events |= MK_TUNNEL_WRITE;
    return events;
}

enum mk__conn_state mk__h1_tunnel_run(struct mk__conn *c)
{
    struct mk_request *req = c->req;
    struct mk__context *http = c->http;
    assert(req && req->tunnel && req->output_state == MK__OUTPUT_HEAD);
    if (mk__sock_flush(&c->sock, &http->out, http->account, 0) < 0)
        return MK__CONN_CLOSED;
    mk__tunnel_call_ready(req, get_ready_events(c));
    if (req->response_state == MK__RESPONSE_FAILED)
        return MK__CONN_CLOSED;
    if (req->response_state == MK__RESPONSE_OPEN)
        return MK__CONN_TUNNEL;
    req->output_state = MK__OUTPUT_COMPLETE;
    mk__h1_finish_exchange(c);
    mk__h1_free_saved_input(c);
    return mk__conn_begin_close(c);
}
