// SPDX-License-Identifier: Apache-2.0
/*
 * A turn of an HTTP/1 connection: input goes through the parser to an exchange, output comes back through
 * h1_output.c. This file decides the order, and at which wait the turn ends. It knows nothing about hosts,
 * files or plugins.
 */
#include "http/h1.h"

#include "http/preface.h"
#include "loop/loop.h"

#include <errno.h>

/* How far a turn came. */
enum progress {
    NEEDS_INPUT,
    NEEDS_OUTPUT,
    NEEDS_HANDLER,
    NEEDS_DISK,
    NEEDS_TURN,
    TAKEN_OVER,
    SWITCHES,
    FINISHED,
    BROKEN,
};

struct mk__h1_rest {
    struct mk__parse parse; /* of the head that the bytes begin with, as far as it came */
    uint64_t since_us;
    uint32_t len, fields_bytes;
    uint32_t at;  /* how much of it a tunnel has read */
    char bytes[]; /* the fields, then the input */
};

/* ── unread input between two turns ── */

static size_t rest_bytes(const struct mk__h1_rest *rest)
{
    return sizeof(*rest) + rest->fields_bytes + rest->len;
}

void mk__h1_drop_rest(struct mk__conn *c)
{
    if (c->rest)
        mk_account_free(c->http->account, c->rest, rest_bytes(c->rest));
    c->rest = NULL;
}

static int keep_rest(struct mk__conn *c, struct mk_str in)
{
    struct mk__http *http = c->http;
    struct mk__h1_rest size = {
        .parse = http->parse,
        .since_us = http->head_since_us,
        .len = (uint32_t)in.len,
        .fields_bytes = (uint32_t)(http->parse.n_fields * sizeof(*http->fields)),
    };
    c->rest = mk_account_alloc(http->account, rest_bytes(&size));
    if (!c->rest)
        return -ENOMEM;
    memcpy(c->rest, &size, sizeof(size));
    memcpy(c->rest->bytes, http->fields, size.fields_bytes);
    memcpy(c->rest->bytes + size.fields_bytes, in.p, in.len);
    return 0;
}

size_t mk__h1_take_rest_bytes(struct mk__conn *c, void *to, size_t size)
{
    struct mk__h1_rest *rest = c->rest;
    if (!rest)
        return 0;
    size_t n = rest->len - rest->at < size ? rest->len - rest->at : size;
    memcpy(to, rest->bytes + rest->fields_bytes + rest->at, n);
    rest->at += (uint32_t)n;
    if (rest->at == rest->len)
        mk__h1_drop_rest(c);
    return n;
}

/* Puts what was kept back to where a turn works. */
static struct mk_str take_rest(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    struct mk__h1_rest *rest = c->rest;
    struct mk_str in = mk_str(http->in.data, 0);
    http->parse = (struct mk__parse){0};
    http->head_since_us = 0;
    if (!rest)
        return in;
    http->parse = rest->parse;
    http->head_since_us = rest->since_us;
    memcpy(http->fields, rest->bytes, rest->fields_bytes);
    memcpy(http->in.data, rest->bytes + rest->fields_bytes, rest->len);
    in.len = rest->len;
    mk__h1_drop_rest(c);
    return in;
}

/* ── the exchange's way ── */

static void wake(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    if (!c->driving)
        mk_task_schedule(c->http->loop, &c->task);
}

static const struct mk_io *io_of(const struct mk_request *req)
{
    const struct mk__conn *c = req->connection;
    return &c->stream.io;
}

#ifndef MK_LEAN
static struct mk__peer *peer_of(const struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    return &c->peer;
}
#endif

const struct mk__carrier mk__h1_carrier = {
    .major = 1,
    .wake = wake,
    .io = io_of,
#ifndef MK_LEAN
    .read = mk__h1_read_bytes,
    .write = mk__h1_write_bytes,
    .shutdown = mk__h1_shutdown_bytes,
    .again = mk__h1_again,
    .peer = peer_of,
#endif
};

void mk__h1_finish_exchange(struct mk__conn *c, bool aborted)
{
    struct mk_request *req = c->req;
    req->aborted = aborted && !req->complete;
    c->http->app->done(req, c->http->app_ctx);
    c->req = NULL;
    mk__request_free(req);
}

static void start_body(struct mk_request *req)
{
    static const struct mk__chunked_limits limits = {.line_bytes_max = 512,
                                                     .ext_bytes_total_max = 16384,
                                                     .trailer_bytes_max = 8192,
                                                     .trailer_count_max = 64};
    req->body_done = req->head.body == MK__BODY_NONE;
    req->body_left = req->head.body_bytes;
    req->rate_since_ms = mk_loop_now_ms(req->http->loop);
    if (req->head.body == MK__BODY_CHUNKED)
        mk__chunked_init(&req->chunked, &limits);
    if (req->head.body_bytes > req->limits->body_bytes_max)
        mk_response_error(req, 413);
}

/* A head is complete, or cannot be read any further: `status` is 0 or what the client deserves. */
static void begin_exchange(struct mk__conn *c, struct mk_request *req, int status)
{
    if (status == 0)
        status = -mk__head_read(&req->parse, req->fields, req->base, &req->head);
    if (status) {
        req->body_done = req->body_failed = true;
        c->closing = c->impolite = true; /* where the message ends is not certain */
        mk_response_error(req, status);
        return;
    }
    status = -mk__request_decode_path(req);
    c->http->app->arrived(req, c->http->app_ctx);
    start_body(req);
    if (status)
        mk_response_error(req, status);
    if (!req->ended)
        c->http->app->request(req, c->http->app_ctx);
}

static bool awaits_proxy_header(const struct mk__conn *c)
{
#ifdef MK_LEAN
    (void)c;
    return false;
#else
    return c->peer.awaited;
#endif
}

/* The next request of the input, if its head is complete. */
static enum progress read_head(struct mk__conn *c, struct mk_str *in)
{
    struct mk__http *http = c->http;
#ifndef MK_LEAN
    if (awaits_proxy_header(c)) {
        int err = mk__client_announce(&c->peer, http, in);
        return err == 0 ? FINISHED : err == MK_AGAIN ? NEEDS_INPUT : BROKEN;
    }
    enum mk__preface preface = c->requests ? MK__PREFACE_NONE : mk__preface_look(*in);
    if (preface != MK__PREFACE_NONE && mk__conn_may_switch(c))
        return preface == MK__PREFACE_WHOLE ? SWITCHES : NEEDS_INPUT;
#endif
    if (mk__http_wants_times(http) && !http->head_since_us)
        http->head_since_us = mk_loop_now_us(http->loop);
    int r = mk__parse_head(&http->parse, http->fields, &http->settings->head, *in);
    if (r == MK_AGAIN)
        return NEEDS_INPUT;
#ifndef MK_LEAN
    if (r == -400 && !c->requests && mk__preface_is_foreign(&http->parse, *in))
        return BROKEN;
#endif
    struct mk_request *req = mk__request_new(http, &mk__h1_carrier, c);
    if (!req)
        return BROKEN;
    req->base = in->p;
    req->fields = http->fields;
    req->parse = http->parse;
    req->began_us = http->head_since_us;
    http->head_since_us = 0;
    c->req = req;
    c->requests++;
    size_t used = r == 0 ? http->parse.head_len : in->len;
    if (r < 0)
        req->parse.head_len = (uint16_t)(in->len < UINT16_MAX ? in->len : UINT16_MAX);
    in->p += used;
    in->len -= used;
    http->parse = (struct mk__parse){0};
    begin_exchange(c, req, -r);
    return FINISHED;
}

/* ── the body ── */

/* Takes the next piece of the body from the input: its length on the wire, or -errno. */
static ssize_t cut_piece(struct mk_request *req, struct mk_str in, struct mk_str *ret_piece, bool *ret_end)
{
    if (req->head.body == MK__BODY_CHUNKED) {
        ssize_t n = mk__chunked_decode(&req->chunked, in.p, in.len, ret_piece);
        *ret_end = req->chunked.done;
        return n;
    }
    size_t n = in.len < req->body_left ? in.len : req->body_left;
    req->body_left -= n;
    *ret_piece = mk_str(in.p, n);
    *ret_end = req->body_left == 0;
    return (ssize_t)n;
}

/* A body that cannot be understood, or is too long: the answer if there is none yet, and the end. */
static void refuse_body(struct mk__conn *c, struct mk_request *req, int status)
{
    bool answered = req->body_discard;
    c->closing = c->impolite = true;
    req->body_discard = req->body_done = req->body_failed = true;
    if (answered)
        return;
    if (req->head_sent)
        mk_response_abort(req);
    else
        mk_response_error(req, status);
}

static bool wants_body(const struct mk_request *req)
{
    return !req->body_done && !req->body_paused && (req->body_fn || req->body_discard);
}

/* Has more come, or been announced by a chunk, than this body may have? */
static bool is_too_long(const struct mk_request *req)
{
    uint64_t limit = req->body_discard ? req->limits->discard_bytes_max : req->limits->body_bytes_max;
    uint64_t announced = req->head.body == MK__BODY_CHUNKED ? req->chunked.left : 0;
    return req->body_bytes > limit || announced > limit - req->body_bytes;
}

static void read_body(struct mk__conn *c, struct mk_request *req, struct mk_str *in)
{
    while (in->len && wants_body(req)) {
        struct mk_str piece;
        bool end;
        ssize_t n = cut_piece(req, *in, &piece, &end);
        if (n < 0) {
            refuse_body(c, req, n == -EMSGSIZE ? 413 : 400);
            return;
        }
        in->p += n;
        in->len -= (size_t)n;
        if (piece.len || end)
            mk__request_body(req, piece, end);
        if (!end && is_too_long(req))
            refuse_body(c, req, 413);
    }
    if (c->state == MK__CONN_BODY && wants_body(req) && mk__request_is_slow(req))
        refuse_body(c, req, 408);
}

/* The client waits for a word before it sends its body (RFC 9110 section 10.1.1). */
static void invite_body(struct mk__conn *c, struct mk_request *req)
{
    struct mk__scratch *out = &c->http->out;
    struct mk_str line = MK_STR("HTTP/1.1 100 Continue\r\n\r\n");
    if (!req->head.expects_continue || req->continue_sent || req->head_sent || req->body_bytes)
        return;
    req->continue_sent = true;
    if (line.len > out->size - out->len)
        return; /* the client stops waiting by itself: section 10.1.1 again */
    memcpy(out->data + out->len, line.p, line.len);
    out->len += line.len;
}

/* ── a turn ── */

/* The response has been handed over. What is left of the request's body? */
static bool end_exchange(struct mk__conn *c, struct mk_request *req)
{
    if (!req->body_done && !c->closing) {
        req->body_discard = true;
        req->body_paused = false;
        return false;
    }
    mk__h1_finish_exchange(c, false);
    return true;
}

/* More of the body is needed; a client that has ended its side will not send it. */
static enum progress need_input(struct mk__conn *c)
{
    if (!c->stream.ended)
        return NEEDS_INPUT;
    c->closing = true;
    mk__h1_finish_exchange(c, true);
    return FINISHED;
}

static enum progress step_exchange(struct mk__conn *c, struct mk_str *in)
{
    struct mk_request *req = c->req;
    read_body(c, req, in);
    enum mk__h1_output r = mk__h1_output(c);
    switch (r) {
    case MK__OUTPUT_DONE:
        if (end_exchange(c, req) || in->len)
            return FINISHED;
        return need_input(c);
    case MK__OUTPUT_WAITING:
        if (!wants_body(req))
            return NEEDS_HANDLER;
        invite_body(c, req);
        return in->len ? FINISHED : need_input(c);
    case MK__OUTPUT_BLOCKED:
        return NEEDS_OUTPUT;
    case MK__OUTPUT_LATER:
        return NEEDS_TURN;
    case MK__OUTPUT_DISK:
        return NEEDS_DISK;
    case MK__OUTPUT_TUNNEL:
        return TAKEN_OVER;
    case MK__OUTPUT_FAILED:
        /* an early end tells the client that the answer is not complete */
        c->closing = c->impolite = true;
        mk__h1_finish_exchange(c, true);
        return FINISHED;
    default:
        return BROKEN;
    }
}

/* Goes on until something is missing. */
static enum progress step(struct mk__conn *c, struct mk_str *in)
{
    for (;;) {
        enum progress r;
        if (c->req) {
            r = step_exchange(c, in);
        } else {
            if (c->closing)
                return FINISHED;
            r = in->len ? read_head(c, in) : NEEDS_INPUT;
            if (r == NEEDS_INPUT && c->stream.ended)
                return FINISHED;
        }
        if (r != FINISHED)
            return r;
    }
}

/* One read behind what is there; false when nothing more can come in this turn. */
static bool receive(struct mk__conn *c, struct mk_str *in, enum progress *r)
{
    struct mk__scratch *scratch = &c->http->in;
    size_t used = (size_t)(in->p - scratch->data) + in->len;
    if (!c->stream.readable || c->stream.ended || used == scratch->size)
        return false;
    ssize_t n = mk__stream_read(&c->stream, scratch->data + used, scratch->size - used);
    if (n == -EAGAIN)
        return false;
    if (n < 0)
        *r = BROKEN;
    else
        in->len += (size_t)n;
    return n >= 0;
}

/* Cuts a connection whose exchange cannot be completed, or that nobody answers any more. */
static enum mk__conn_state cut(struct mk__conn *c)
{
    c->http->out.len = 0;
    return MK__CONN_CLOSED;
}

static enum mk__conn_state state_for_input(const struct mk__conn *c, struct mk_str in)
{
    if (c->req)
        return MK__CONN_BODY;
    if (in.len && !awaits_proxy_header(c))
        return MK__CONN_HEAD;
    return c->requests ? MK__CONN_IDLE : MK__CONN_FRESH;
}

/* Empty lines are no beginning of a request (RFC 9112 section 2.2), and do not prolong any wait. */
static bool only_empty_lines(const struct mk__http *http, struct mk_str in)
{
    return in.len && http->parse.phase == MK__PARSE_START && http->parse.line_at == in.len;
}

/* Who came during the drain has not asked anything yet; who has just shaken hands is about to, and has a moment. */
static bool may_still_ask(struct mk__conn *c)
{
#ifndef MK_LEAN
    if (c->requests || c->late || !c->stream.io.transport->handshake)
        return c->late && !c->requests;
    /* one, however often it is asked for */
    if (c->timer.deadline_ms > mk_loop_now_ms(c->http->loop) + MK__CONN_MOMENT_MS)
        mk_timer_arm(c->http->loop, &c->timer, MK__CONN_MOMENT_MS);
    return true;
#else
    (void)c;
    return false;
#endif
}

/* Ends a turn: what must be kept is kept, and the next wait is named. */
static enum mk__conn_state settle(struct mk__conn *c, enum progress r, struct mk_str in)
{
    if (!c->req && c->state != MK__CONN_HEAD && only_empty_lines(c->http, in))
        in.len = 0;
    if (r == NEEDS_INPUT && !c->req && !in.len && c->http->draining && !may_still_ask(c))
        r = FINISHED;
    if (r == FINISHED && in.len)
        c->impolite = true; /* requests that will not be answered */
    if (r == FINISHED)
        return mk__conn_goodbye(c);
    if (in.len && keep_rest(c, in) < 0)
        return cut(c);
    if (c->req && mk__request_detach(c->req) < 0)
        return cut(c);
    if (r == NEEDS_TURN || r == TAKEN_OVER || (r == NEEDS_INPUT && c->stream.readable))
        mk_task_schedule(c->http->loop, &c->task);
    switch (r) {
    case NEEDS_INPUT:
        return state_for_input(c, in);
    case NEEDS_HANDLER:
        return MK__CONN_HANDLER;
    case NEEDS_DISK:
        return MK__CONN_DISK;
    case TAKEN_OVER:
        return MK__CONN_TUNNEL;
    default:
        return MK__CONN_SEND;
    }
}

enum mk__conn_state mk__h1_take_turn(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    int r = c->state == MK__CONN_SEND ? mk__stream_flush(&c->stream, &http->out, http->account, 0) : 0;
    if (r != 0)
        return r == MK_AGAIN ? MK__CONN_SEND : cut(c);
    struct mk_str in = take_rest(c);
    enum progress p = step(c, &in);
    if (p == NEEDS_INPUT && receive(c, &in, &p) && p != BROKEN)
        p = step(c, &in);
#ifndef MK_LEAN
    if (p == SWITCHES)
        return mk__conn_switch(c, in);
#endif
    /* the last bytes leave together with our FIN */
    r = mk__stream_flush(&c->stream, &http->out, http->account, p == FINISHED ? MK_IO_MORE : 0);
    if (p == BROKEN || r < 0)
        return cut(c);
    return settle(c, r == MK_AGAIN ? NEEDS_OUTPUT : p, in);
}
