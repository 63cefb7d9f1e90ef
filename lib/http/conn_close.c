// SPDX-License-Identifier: Apache-2.0
/*
 * The orderly close of a connection (http/conn.h): send the transport's end message, shut our side down, and discard
 * input until the client has closed its side.
 */
#include "http/conn.h"

#include <errno.h>

enum { LINGER_BYTES_MAX = 64 * 1024 * 1024, LINGER_BYTES_PER_TURN = 256 * 1024 };

/*
 * Sends the end message of the transport (TLS: close_notify), if it has one. Returns false if the socket is full; the
 * rest of the message is held back then.
 */
static bool send_close_notify(struct mk__conn *c)
{
    const struct mk_transport *transport = c->sock.io.transport;
    if (!MK_HAS_TLS || !transport->close_notify)
        return true;
    transport->close_notify(&c->sock.io);
    return mk__sock_flush(&c->sock, &c->http->out, c->http->account, 0) != MK_AGAIN;
}

/*
 * After a close(), input that arrives makes the kernel send a reset and drop unsent output: the client would lose the
 * end of its response. So close at once only if no input can arrive or all output has been sent.
 */
enum mk__conn_state mk__conn_begin_close(struct mk__conn *c)
{
    bool idle = (c->state == MK__CONN_IDLE || c->state == MK__CONN_NEW) && c->requests == c->armed_requests;
    bool client_done = c->sock.ended || (c->client_will_close && !c->unread_input);
    bool needs_notify = !(c->sock.ended && idle);
    if (needs_notify && !send_close_notify(c)) {
        c->closing = true;
        return MK__CONN_WRITE; /* called again when the socket is writable */
    }
    if (client_done || (idle && !c->unread_input && mk__sock_unsent(&c->sock) == 0))
        return MK__CONN_CLOSED;
    c->sock.io.transport->shutdown(&c->sock.io);
    c->sock.readable = true;
    return MK__CONN_LINGER;
}

enum mk__conn_state mk__conn_linger(struct mk__conn *c)
{
    struct mk__scratch *scratch = &c->http->in;
    for (size_t now = 0; c->sock.readable; now += scratch->size) {
        if (now >= LINGER_BYTES_PER_TURN) {
            mk_task_schedule(c->http->loop, &c->task);
            break;
        }
        ssize_t n = mk__sock_read(&c->sock, scratch->data, scratch->size);
        if (n == -EAGAIN)
            break;
        if (n <= 0)
            return MK__CONN_CLOSED;
        c->discarded_bytes += (uint32_t)n;
    }
    return c->discarded_bytes < LINGER_BYTES_MAX ? MK__CONN_LINGER : MK__CONN_CLOSED;
}
