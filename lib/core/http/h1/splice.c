// SPDX-License-Identifier: Apache-2.0
/*
 * Lets a handler move the bytes of a part to the socket of the client, and those of a body from there, without a copy
 * in the buffers of the connection.
 */
#include "http/h1/h1.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>

enum { TURN_BYTES = 512 * 1024 }; /* then other connections have their turn, as with sendfile(2) */

/* ── to the client ── */

/* Tells whether the bytes of the part go to the client as they are. */
static bool is_plain(const struct mk__conn *c, const struct mk_request *req)
{
    return !c->sock.io.transport->handshake && req->framing != MK__FRAMING_CHUNKED;
}

static enum mk__h1_send_result convert_error(struct mk__conn *c, struct mk_request *req, struct mk__part *part, int err)
{
    if (req->response_state == MK__RESPONSE_FAILED)
        return MK__H1_SEND_FAILED;
    switch (err) {
    case -EAGAIN:
        return MK__H1_SEND_NEEDS_HANDLER;
    case -EBUSY:
        c->sock.writable = false;
        return MK__H1_SEND_BLOCKED;
    case -EPIPE:
        return MK__H1_SEND_BROKEN;
    case -EOPNOTSUPP:
        part->splice = NULL;
    }
    return MK__H1_SEND_FAILED;
}

static size_t get_size(const struct mk_request *req, size_t moved)
{
    uint64_t left = req->framing == MK__FRAMING_LENGTH ? req->length - req->sent_bytes : UINT64_MAX;
    return left < TURN_BYTES - moved ? (size_t)left : TURN_BYTES - moved;
}

/* The kernel holds these bytes back for those that follow. */
static enum mk__h1_send_result flush_output(struct mk__conn *c)
{
    int r = mk__sock_flush(&c->sock, &c->http->out, c->http->account, MK_IO_MORE);
    return r < 0 ? MK__H1_SEND_BROKEN : r == MK_AGAIN || !c->sock.writable ? MK__H1_SEND_BLOCKED : MK__H1_SEND_DONE;
}

enum mk__h1_send_result mk__h1_splice(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    assert(part == req->first && part->splice);
    if (!is_plain(c, req)) {
        part->splice = NULL;
        return MK__H1_SEND_FAILED;
    }
    bool has_output = c->http->out.len;
    enum mk__h1_send_result r = flush_output(c);
    if (r != MK__H1_SEND_DONE)
        return r;
    for (size_t moved = 0, size; (size = get_size(req, moved));) {
        ssize_t n = part->splice(req, c->sock.io.fd, size, part->ctx);
        assert(n <= (ssize_t)size);
        if (n < 0 && moved == 0 && has_output) {
            static const int on = 1; /* none follow now: those that were held back leave */
            setsockopt(c->sock.io.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        }
        if (n <= 0)
            return n ? convert_error(c, req, part, (int)n) : MK__H1_SEND_DONE;
        moved += (size_t)n;
        req->sent_bytes += (size_t)n;
        if (moved == TURN_BYTES)
            return MK__H1_SEND_YIELD;
    }
    return MK__H1_SEND_DONE;
}

/* ── from the client ── */

/* Counts bytes that the handler has moved. With the last one the handler gets the end. */
static void note_moved(struct mk_request *req, size_t n)
{
    req->body_left -= n;
    req->body_bytes += n;
    req->rate_bytes += n;
    if (req->body_left)
        return;
    req->body_state = MK__BODY_STATE_READING; /* with nothing left to pause for */
    mk__request_deliver_body(req, MK_STR(""), true);
}

ssize_t mk__h1_splice_body(struct mk__conn *c, struct mk_request *req)
{
    if (req->body_state != MK__BODY_STATE_READING || !req->body_splice)
        return -EOPNOTSUPP;
    size_t size = req->body_left < TURN_BYTES ? (size_t)req->body_left : TURN_BYTES;
    ssize_t n = req->body_splice(req, c->sock.io.fd, size, req->body_ctx);
    assert(n <= (ssize_t)size && req->body_state < MK__BODY_STATE_DONE);
    if (n > 0)
        note_moved(req, (size_t)n);
    else if (n == 0)
        c->sock.input = MK__SOCK_INPUT_ENDED;
    else if (n == -EAGAIN)
        c->sock.readable = false;
    else if (n == -EOPNOTSUPP)
        req->body_splice = NULL;
    return n == -EBUSY ? 0 : n;
}
