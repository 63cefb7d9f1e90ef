// SPDX-License-Identifier: Apache-2.0
/*
 * A turn of an HTTP/1 connection: input passes through the parser to an exchange, output comes back through send.c.
 * This file decides the order, and in which state the turn ends. It knows nothing about hosts, files or plugins.
 */
#include "http/h1/h1.h"

#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

/* What a turn needs in order to continue. */
enum progress {
    NEEDS_INPUT,
    NEEDS_OUTPUT,
    NEEDS_HANDLER,
    NEEDS_DISK,
    NEEDS_TURN,
    TAKEN_OVER,
    SWITCH_PROTO,
    FINISHED,
    BROKEN,
};

/* A turn reads as many heads: pipelines that are usual cost one write, and costly requests do not stop the others. */
enum { TURN_HEADS_MAX = 32 };

struct mk__h1_saved_input {
    struct mk_head_parser parse; /* of the head at the beginning of the input, as far as it was read */
    uint64_t since_us;
    uint32_t len, fields_bytes;
    uint32_t at;  /* bytes that a tunnel has read */
    char bytes[]; /* the fields, then the input */
};

/* ── unread input between two turns ── */

static size_t get_saved_input_bytes(const struct mk__h1_saved_input *saved)
{
    return sizeof(*saved) + saved->fields_bytes + saved->len;
}

void mk__h1_free_saved_input(struct mk__conn *c)
{
    if (c->proto_data)
        mk_account_free(c->http->account, c->proto_data, get_saved_input_bytes(c->proto_data));
    c->proto_data = NULL;
}

static int save_input(struct mk__conn *c, struct mk_str in)
{
    struct mk__context *http = c->http;
    struct mk__h1_saved_input size = {
        .parse = http->parse,
        .since_us = http->head_since_us,
        .len = (uint32_t)in.len,
        .fields_bytes = (uint32_t)(http->parse.n_fields * sizeof(*http->fields)),
    };
    assert(!c->proto_data && in.len <= http->in.size);
    struct mk__h1_saved_input *saved = mk_account_alloc(http->account, get_saved_input_bytes(&size));
    if (!saved)
        return -ENOMEM;
    memcpy(saved, &size, sizeof(size));
    memcpy(saved->bytes, http->fields, size.fields_bytes);
    memcpy(saved->bytes + size.fields_bytes, in.p, in.len);
    c->proto_data = saved;
    return 0;
}

size_t mk__h1_read_saved_input(struct mk__conn *c, void *to, size_t size)
{
    struct mk__h1_saved_input *saved = c->proto_data;
    if (!saved)
        return 0;
    assert(saved->at < saved->len);
    size_t n = saved->len - saved->at < size ? saved->len - saved->at : size;
    memcpy(to, saved->bytes + saved->fields_bytes + saved->at, n);
    saved->at += (uint32_t)n;
    if (saved->at == saved->len)
        mk__h1_free_saved_input(c);
    return n;
}

/* Copies the saved input back into the scratch buffer, with the state of its parser. Returns its length. */
static MK_NOINLINE size_t restore_input(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    struct mk__h1_saved_input *saved = c->proto_data;
    http->parse = saved->parse;
    http->head_since_us = saved->since_us;
    assert(saved->at == 0 && saved->len <= http->in.size); /* buffers never shrink */
    assert(saved->fields_bytes <= http->fields_max * sizeof(*http->fields));
    memcpy(http->fields, saved->bytes, saved->fields_bytes);
    memcpy(http->in.data, saved->bytes + saved->fields_bytes, saved->len);
    size_t len = saved->len;
    mk__h1_free_saved_input(c);
    return len;
}

/* ── the exchange ── */

static MK_HOT void wake_conn(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    if (!c->running)
        mk_task_schedule(c->http->loop, &c->task);
}

static void restart_timer(struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    c->armed_bytes = UINT64_MAX;
    wake_conn(req);
}

static MK_HOT bool is_running(const struct mk_request *req)
{
    const struct mk__conn *c = req->connection;
    return c->running;
}

static const struct mk_io *get_io(const struct mk_request *req)
{
    const struct mk__conn *c = req->connection;
    return &c->sock.io;
}

static struct mk_connection *get_handle(const struct mk_request *req)
{
    struct mk__conn *c = req->connection;
    return &c->handle;
}

const struct mk__request_ops mk__h1_request_ops = {
    .major = 1,
    .wake = wake_conn,
    .in_turn = is_running,
    .io = get_io,
    .conn = get_handle,
    .read = mk__h1_tunnel_read,
    .write = mk__h1_tunnel_write,
    .shutdown = mk__h1_tunnel_shutdown,
    .wake_tunnel = mk__h1_tunnel_wake,
    .restart_timer = restart_timer,
};

void mk__h1_finish_exchange(struct mk__conn *c)
{
    assert(c->req && c->req->connection == c);
    mk__request_finish(c->req);
    c->req = NULL;
}

/* Begins an exchange after its head. `status` is 0, or the status of a head that could not be parsed. */
static void begin_exchange(struct mk__conn *c, struct mk_request *req, int status)
{
    static const struct mk_chunked_limits limits = {.line_bytes_max = 512,
                                                    .ext_bytes_total_max = 16384,
                                                    .trailer_bytes_max = 8192,
                                                    .trailer_count_max = 64};
    if (status == 0)
        status = -mk__request_head_read(&req->parse, req->fields, req->base, &req->http->host_memo, &req->head);
    if (status)
        mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT); /* the end of the message is not known */
    else
        req->body_left = req->head.body_bytes;
    if (status == 0 && req->head.body == MK__BODY_CHUNKED)
        mk_chunked_init(&req->chunked, &limits);
    mk__request_begin(req, status, false);
}

/* Reads the head of the next request and begins the exchange, if the head is complete. */
static enum progress read_head(struct mk__conn *c, struct mk_str *in)
{
    struct mk__context *http = c->http;
    if (c->handle.peer.expects_proxy_header) {
        int err = mk__client_addr_read_proxy_header(&c->handle, http, &c->sock.io, in);
        return err == 0 ? FINISHED : err == MK_AGAIN ? NEEDS_INPUT : BROKEN;
    }
    enum mk__preface preface = c->requests ? MK__PREFACE_NONE : mk__conn_check_preface(c, *in);
    if (preface != MK__PREFACE_NONE)
        return preface == MK__PREFACE_WHOLE ? SWITCH_PROTO : NEEDS_INPUT;
    if (http->settings->times && !http->head_since_us)
        http->head_since_us = mk_loop_now_us(http->loop);
    int r = mk__parse_head(&http->parse, http->fields, &http->settings->head, *in);
    if (r == MK_AGAIN)
        return NEEDS_INPUT;
    if (r == -400 && !c->requests && mk__preface_is_other_protocol(&http->parse, *in))
        return BROKEN;
    struct mk_request *req = mk__request_new(http, &mk__h1_request_ops, c);
    if (!req)
        return BROKEN;
    req->parse = http->parse;
    req->base = in->p;
    req->fields = http->fields;
    if (r != 0) /* all input counts as the head */
        req->parse.head_len = (uint16_t)(in->len < UINT16_MAX ? in->len : UINT16_MAX);
    req->began_us = http->head_since_us;
    http->head_since_us = 0;
    assert(!c->req);
    c->req = req;
    c->requests++;
    size_t used = r == 0 ? http->parse.head_len : in->len;
    assert(used <= in->len && http->parse.n_fields <= http->fields_max);
    in->p += used;
    in->len -= used;
    http->parse = (struct mk_head_parser){0};
    begin_exchange(c, req, -r);
    return FINISHED;
}

/* ── the body ── */

/* Decodes the next piece of the body. Returns the number of input bytes used, -EINVAL, -EMSGSIZE or -ENOMEM. */
static ssize_t decode_body(struct mk_request *req, struct mk_str in, struct mk_str *ret_piece, bool *ret_end)
{
    if (req->head.body == MK__BODY_CHUNKED) {
        ssize_t n = mk_chunked_decode(&req->chunked, in.p, in.len, ret_piece);
        *ret_end = req->chunked.done;
        bool has_lost_trailers = *ret_end && req->chunked.trailers && req->chunked.trailers->err;
        return has_lost_trailers ? -ENOMEM : n;
    }
    size_t n = in.len < req->body_left ? in.len : req->body_left;
    req->body_left -= n;
    *ret_piece = mk_str(in.p, n);
    *ret_end = req->body_left == 0;
    return (ssize_t)n;
}

static MK_NOINLINE void read_body(struct mk__conn *c, struct mk_request *req, struct mk_str *in)
{
    while (in->len && mk__request_wants_body(req)) {
        struct mk_str piece;
        bool end;
        ssize_t n = decode_body(req, *in, &piece, &end);
        if (n < 0) {
            mk__request_reject_body(req, n == -EMSGSIZE ? 413 : n == -ENOMEM ? 503 : 400);
            break;
        }
        assert((size_t)n <= in->len);
        in->p += n;
        in->len -= (size_t)n;
        mk__request_deliver_body(req, piece, end);
    }
    if (mk__conn_states[c->state].limits_rate)
        mk__request_check_rate(req);
    if (req->body_state == MK__BODY_STATE_FAILED)
        mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT);
}

static void send_100_continue(struct mk__conn *c)
{
    struct mk__scratch *out = &c->http->out;
    struct mk_str line = MK_STR("HTTP/1.1 100 Continue\r\n\r\n");
    if (line.len > out->size - out->len)
        return; /* no harm: clients do not wait forever (section 10.1.1) */
    memcpy(out->data + out->len, line.p, line.len);
    out->len += line.len;
}

/* ── a turn ── */

/* More of the body is needed. If the client has closed its side, the exchange ends. */
static enum progress wait_for_input(struct mk__conn *c)
{
    if (!mk__sock_has_ended(&c->sock))
        return NEEDS_INPUT;
    mk__conn_close_after(c, MK__CLOSE_AFTER_RESPONSE);
    mk__h1_finish_exchange(c);
    return FINISHED;
}

/*
 * Ends an exchange whose response cannot be completed: closing early shows that to the client. If the end of the
 * connection is that of the body, it takes a reset: what was sent would pass for all of it.
 */
static MK_COLD enum progress fail_exchange(struct mk__conn *c, const struct mk_request *req)
{
    if (req->output_state >= MK__OUTPUT_HEAD && req->framing == MK__FRAMING_NONE && !req->bodyless) {
        mk__sock_reset(&c->sock);
        return BROKEN;
    }
    mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT);
    mk__h1_finish_exchange(c);
    return FINISHED;
}

static enum progress continue_exchange(struct mk__conn *c, struct mk_str *in)
{
    struct mk_request *req = c->req;
    if (in->len)
        read_body(c, req, in);
    enum mk__h1_send_result r = mk__h1_send(c);
    switch (r) {
    case MK__H1_SEND_DONE:
        if (req->body_state < MK__BODY_STATE_DONE && c->close == MK__CLOSE_NEVER) {
            req->body_state = MK__BODY_STATE_DISCARDING; /* the rest of the request body */
            return in->len ? FINISHED : wait_for_input(c);
        }
        mk__h1_finish_exchange(c);
        return FINISHED;
    case MK__H1_SEND_NEEDS_HANDLER:
        if (!mk__request_wants_body(req))
            return NEEDS_HANDLER;
        if (mk__request_needs_continue(req))
            send_100_continue(c);
        return in->len ? FINISHED : wait_for_input(c);
    case MK__H1_SEND_BLOCKED:
        return NEEDS_OUTPUT;
    case MK__H1_SEND_YIELD:
        return NEEDS_TURN;
    case MK__H1_SEND_NEEDS_DISK:
        return NEEDS_DISK;
    case MK__H1_SEND_TUNNEL:
        return TAKEN_OVER;
    case MK__H1_SEND_FAILED:
        return fail_exchange(c, req);
    default:
        return BROKEN;
    }
}

/*
 * Processes exchanges until one has to wait for something, or a pipeline has had as many as one turn allows: other
 * connections run before the rest.
 */
static MK_HOT enum progress process_input(struct mk__conn *c, struct mk_str *in)
{
    for (unsigned heads = 0;;) {
        enum progress r;
        if (c->req) {
            r = continue_exchange(c, in);
        } else {
            if (c->close != MK__CLOSE_NEVER)
                return FINISHED;
            if (in->len && heads++ == TURN_HEADS_MAX)
                return NEEDS_TURN;
            r = in->len ? read_head(c, in) : NEEDS_INPUT;
            if (r == NEEDS_INPUT && mk__sock_has_ended(&c->sock))
                return FINISHED;
        }
        if (r != FINISHED)
            return r;
    }
}

/*
 * Reads once and appends to `in`, or has the handler take the bytes. Returns false if no more input can come in this
 * turn; on an error `*r` is BROKEN.
 */
static bool read_input(struct mk__conn *c, struct mk_str *in, enum progress *r)
{
    struct mk__scratch *scratch = &c->http->in;
    size_t used = (size_t)(in->p - scratch->data) + in->len;
    if (!c->sock.readable || mk__sock_has_ended(&c->sock) || used == scratch->size)
        return false;
    ssize_t n = c->req && !in->len ? mk__h1_splice_body(c, c->req) : -EOPNOTSUPP;
    if (n == -EOPNOTSUPP) {
        n = mk__sock_read(&c->sock, scratch->data + used, scratch->size - used);
        in->len += n > 0 ? (size_t)n : 0;
        /*
         * The bytes may be of a request that was begun during this turn, unless the loop has reported the first of
         * them, and that is the request's: not of an empty line, a PROXY header, or a TLS record.
         */
        char first = scratch->data[used];
        if (n > 0 && (!c->reported || c->handle.peer.expects_proxy_header || c->sock.io.transport->handshake ||
                      first == '\r' || first == '\n'))
            mk__conn_note_read(c);
        c->reported = false;
    }
    if (n < 0 && n != -EAGAIN)
        *r = BROKEN;
    return n >= 0;
}

/* Closes the connection without sending what is in the output buffer. */
static enum mk__conn_state drop_conn(struct mk__conn *c)
{
    c->http->out.len = 0;
    return MK__CONN_CLOSED;
}

/*
 * Tells whether a connection without input may stay open during a drain. One that was accepted during the drain may
 * send its first request. One that has just completed its handshake gets MK__CONN_DRAIN_GRACE_MS for it.
 */
static MK_NOINLINE bool can_still_request(struct mk__conn *c)
{
    if (c->requests || c->accepted_in_drain || !c->sock.io.transport->handshake)
        return mk__conn_awaits_request_in_drain(c);
    /* not extended by further turns */
    if (c->timer.deadline_ms > mk_loop_now_ms(c->http->loop) + MK__CONN_DRAIN_GRACE_MS)
        mk_timer_arm(c->http->loop, &c->timer, MK__CONN_DRAIN_GRACE_MS);
    return true;
}

/* Ends a turn: saves what must be kept, and returns the state to wait in. */
static enum mk__conn_state end_turn(struct mk__conn *c, enum progress r, struct mk_str in)
{
    const struct mk_head_parser *parse = &c->http->parse;
    /* empty lines are not the beginning of a request (RFC 9112 section 2.2), and do not restart a timeout */
    if (!c->req && c->state != MK__CONN_READ_HEAD && parse->phase == MK__PARSE_START && parse->line_at == in.len)
        in.len = 0;
    if (r == NEEDS_INPUT && !c->req && !in.len && c->http->shutdown == MK__SHUTDOWN_DRAINING && !can_still_request(c))
        r = FINISHED;
    if (r == FINISHED && in.len)
        mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT); /* pipelined requests that will not be answered */
    if (r == FINISHED)
        return mk__conn_begin_close(c);
    assert(c->req || r == NEEDS_INPUT || r == NEEDS_OUTPUT || r == NEEDS_TURN);
    if (in.len && save_input(c, in) < 0)
        return drop_conn(c);
    if (c->req && mk__request_keep(c->req) < 0)
        return drop_conn(c);
    if (r == NEEDS_TURN || r == TAKEN_OVER || (r == NEEDS_INPUT && c->sock.readable))
        mk_task_schedule(c->http->loop, &c->task);
    switch (r) {
    case NEEDS_INPUT:
        if (c->req) /* the time in which a client waits for 100 (Continue) is the handler's */
            return mk__request_awaits_continue(c->req) ? MK__CONN_HANDLER : MK__CONN_READ_BODY;
        if (in.len && !c->handle.peer.expects_proxy_header)
            return MK__CONN_READ_HEAD;
        return c->requests ? MK__CONN_IDLE : MK__CONN_NEW;
    case NEEDS_HANDLER:
        return MK__CONN_HANDLER;
    case NEEDS_DISK:
        return MK__CONN_DISK;
    case TAKEN_OVER:
        return MK__CONN_TUNNEL;
    default:
        return MK__CONN_WRITE;
    }
}

static MK_HOT enum mk__conn_state run_turn(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    if (c->state == MK__CONN_TUNNEL)
        return mk__h1_tunnel_run(c);
    int r = c->state == MK__CONN_WRITE ? mk__sock_flush(&c->sock, &http->out, http->account, 0) : 0;
    if (r != 0)
        return r == MK_AGAIN ? MK__CONN_WRITE : drop_conn(c);
    http->parse = (struct mk_head_parser){0};
    http->head_since_us = 0;
    struct mk_str in = mk_str(http->in.data, c->proto_data ? restore_input(c) : 0);
    bool is_idle = !c->req && !in.len && c->close == MK__CLOSE_NEVER && !mk__sock_has_ended(&c->sock);
    enum progress p = is_idle ? NEEDS_INPUT : process_input(c, &in);
    if (p == NEEDS_INPUT && read_input(c, &in, &p) && p != BROKEN)
        p = process_input(c, &in);
    if (p == SWITCH_PROTO) {
        mk__conn_note_read(c); /* its requests come after the preface */
        return mk__conn_switch_proto(c, in);
    }
    /* so that the last bytes leave together with our FIN */
    r = mk__sock_flush(&c->sock, &http->out, http->account, p == FINISHED ? MK_IO_MORE : 0);
    if (p == BROKEN || r < 0)
        return drop_conn(c);
    return end_turn(c, r == MK_AGAIN ? NEEDS_OUTPUT : p, in);
}

/* A head that did not come in time is answered as well, by an exchange without a request. */
static bool begin_failed_exchange(struct mk__conn *c)
{
    const struct mk__h1_saved_input *saved = c->proto_data;
    c->req = mk__request_new(c->http, &mk__h1_request_ops, c);
    if (!c->req)
        return false;
    c->req->base = "";
    c->req->began_us = saved ? saved->since_us : 0;
    mk__h1_free_saved_input(c);
    return true;
}

static enum mk__conn_state on_timeout(struct mk__conn *c)
{
    const struct mk__state_info *info = &mk__conn_states[c->state];
    assert(info->on_timeout != MK__ON_TIMEOUT_ABORT);
    if (info->on_timeout == MK__ON_TIMEOUT_CLOSE)
        return mk__conn_begin_close(c);
    if (!c->req && !begin_failed_exchange(c))
        return MK__CONN_CLOSED;
    if (!mk__request_time_out(c->req, info->timeout_status, info->notifies_handler))
        return MK__CONN_CLOSED;
    mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT);
    mk_task_cancel(&c->task);
    return run_turn(c);
}

static void close_exchange(struct mk__conn *c)
{
    if (c->req)
        mk__h1_finish_exchange(c);
    mk__h1_free_saved_input(c);
}

/* The handler of a tunnel is notified of a shutdown at once; clients are by "Connection: close". */
static bool announces_change(const struct mk__conn *c, enum mk__conn_change change)
{
    return change == MK__CONN_CHANGE_SHUTDOWN && c->state == MK__CONN_TUNNEL;
}

const struct mk__proto mk__h1_proto = {
    .on_ready = run_turn,
    .on_timeout = on_timeout,
    .announces = announces_change,
    .close = close_exchange,
};
