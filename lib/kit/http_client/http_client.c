// SPDX-License-Identifier: Apache-2.0
/*
 * Sends a request to another server and reads the response (<monkey/kit/http_client.h>).
 *
 *     IDLE ─► DIAL ─► HANDSHAKE ─► SEND ─► HEAD ─► BODY ─► IDLE, and the callback
 *       │      ▲                    ▲ │      │
 *       │      └── it has ended ────┼─┴──────┘
 *       └── a connection that was kept
 *
 * The connection is watched once, edge-triggered: each event continues with the state until it waits again.
 */
#include "connection.h"

#include <assert.h>
#include <errno.h>

enum { IDLE, DIAL, HANDSHAKE, SEND, HEAD, BODY };
enum {
    READ_BYTES = 4096,
    INTERIM_MAX = 16,
    ERROR_BYTES = 512,
    FRAMING_BYTES_MAX = 1 << 20, /* of a codec, which may have other output in it */
};

static const struct mk_chunked_limits chunked_limits = {.line_bytes_max = 1024,
                                                        .ext_bytes_total_max = 16384,
                                                        .trailer_bytes_max = 8192,
                                                        .trailer_count_max = 64};

/* ── phrases for people ── */

static const struct {
    int err;
    const char *phrase;
} phrases[] = {
    {-EPIPE, "the connection was closed before the response was complete"},
    {-ECONNRESET, "the connection was reset before the response was complete"},
    {-EINVAL, "the response is malformed"},
    {-EPROTO, "the response switches to another protocol"},
    {-EMSGSIZE, "the head of the response is too long"},
    {-ELOOP, "the server sends too many interim responses"},
    {-ENOMEM, "there is no memory for the response"},
    {-EFBIG, "the server sends more than the response"},
    {-EUSERS, "the server is overloaded"},
    {-ENOPROTOOPT, "the server does not take such requests"},
};

static const char *find_phrase(int err)
{
    for (size_t i = 0; i < MK_COUNT_OF(phrases); i++)
        if (phrases[i].err == err)
            return phrases[i].phrase;
    return strerror(-err);
}

static void describe_timeout(const struct mk_http_client *c, struct mk_buf *out)
{
    static const char *const missing[] = {
        [DIAL] = "no connection", [HANDSHAKE] = "no TLS handshake", [SEND] = "the request was not taken",
        [HEAD] = "no response",   [BODY] = "no whole response",
    };
    uint32_t ms = c->options.timeout_ms;
    bool has_seconds = ms % 1000 == 0;
    mk_buf_addf(out, "%s in %u%s", missing[c->state], has_seconds ? ms / 1000 : ms, has_seconds ? "s" : "ms");
}

/* Returns a phrase for an error, which may be in `out`. The connection is still there. */
static const char *describe_error(const struct mk_http_client *c, int err, struct mk_buf *out)
{
    const struct mk_transport *transport = c->options.transport;
    if (err == 0)
        return "";
    if (err == -ETIMEDOUT)
        describe_timeout(c, out);
    else if (c->state == DIAL)
        return mk_dial_error(err);
    else if (c->has_failed && transport->describe_error)
        transport->describe_error(&c->conn->io, err, out);
    else if (err == -EINVAL && c->parser.fault.text) {
        mk_buf_adds(out, MK_STR("the response is malformed: "));
        mk_response_fault_describe(&c->parser.fault, c->in.data, out);
    } else {
        return find_phrase(err);
    }
    return mk_buf_cstr(out);
}

/* ── counters ── */

static uint64_t get_now_us(const struct mk_http_client *c)
{
    return c->options.stats ? mk_loop_now_us(c->loop) : 0;
}

static void count_event(const struct mk_http_client *c, enum mk_backend_counter counter)
{
    if (c->options.stats)
        mk_backend_stats_add(c->options.stats, counter, c->options.worker, 1);
}

static void observe_time(const struct mk_http_client *c, enum mk_backend_counter counter, uint64_t since_us)
{
    if (c->options.stats)
        mk_backend_stats_observe(c->options.stats, counter, c->options.worker, get_now_us(c) - since_us);
}

static void count_end(const struct mk_http_client *c, int err)
{
    if (err == 0)
        observe_time(c, MK_BACKEND_DURATION, c->began_us);
    else
        count_event(c, err == -ETIMEDOUT ? MK_BACKEND_TIMEOUTS : MK_BACKEND_FAILURES);
}

/* ── the end ── */

static void close_connection(struct mk_http_client *c)
{
    if (c->conn)
        mk__http_conn_close(c->conn);
    c->conn = NULL;
}

/* Tells whether the response lets another request use the connection. */
static bool keeps_connection(const struct mk_http_client *c)
{
    return c->options.idle && c->state == BODY && c->parser.is_done && mk_response_parser_keeps_conn(&c->parser) &&
           !c->has_excess && !mk_http_response_binds_connection(&c->parser, c->fields, c->in.data);
}

/* Ends all but the response, which the caller frees. */
static void end_exchange(struct mk_http_client *c, int err)
{
    if (err == 0 && keeps_connection(c))
        mk__http_conn_keep(c->conn, c->options.idle);
    else
        close_connection(c);
    mk_dial_cancel(&c->dial);
    mk_timer_cancel(&c->timer);
    c->state = IDLE;
}

static void free_response(struct mk_buf *in, struct mk_field *fields, unsigned fields_max)
{
    mk_buf_release(in);
    mk_account_free(NULL, fields, fields_max * sizeof(*fields));
}

void mk_http_client_cancel(struct mk_http_client *c)
{
    if (c->state == IDLE)
        return;
    end_exchange(c, -ECANCELED);
    free_response(&c->in, c->fields, c->limits.fields_max);
}

static void set_response(const struct mk_http_client *c, struct mk_http_response *r)
{
    size_t head = c->parser.head_bytes, kept = c->in.len - head, most = c->options.body_bytes_max;
    r->status = c->parser.status;
    r->head = mk_str(c->in.data, head);
    r->fields = c->fields;
    r->n_fields = c->parser.n_fields;
    r->body = mk_str(c->in.data + head, kept < most ? kept : most);
    r->is_whole = c->parser.is_done && kept <= most;
}

/* Calls back. The callee may free `c`: what the response points to is the caller's by then. */
static void finish_exchange(struct mk_http_client *c, int err)
{
    MK_BUF_ON_STACK(text, ERROR_BYTES);
    struct mk_buf in = c->in;
    struct mk_field *fields = c->fields;
    unsigned fields_max = c->limits.fields_max;
    struct mk_http_response response = {.err = err,
                                        .error = describe_error(c, err, &text),
                                        .is_connected = c->state > HANDSHAKE};
    if (err == 0 && c->options.head.len)
        set_response(c, &response);
    count_end(c, err);
    end_exchange(c, err);
    c->fn(c, &response);
    free_response(&in, fields, fields_max);
}

/* ── the request ── */

/* Notes an error of the transport. Returns it, or MK_AGAIN for a wait. */
static int note_error(struct mk_http_client *c, int err)
{
    if (err == -EAGAIN || err == -EINPROGRESS)
        return MK_AGAIN;
    c->has_failed = true;
    return err;
}

static int continue_handshake(struct mk_http_client *c)
{
    int r = c->options.transport->handshake ? c->options.transport->handshake(&c->conn->io) : 0;
    if (r < 0)
        return note_error(c, r);
    observe_time(c, MK_BACKEND_CONNECT_DURATION, c->dialed_us);
    c->conn->is_ready = true;
    c->state = SEND;
    return 0;
}

/* Returns what of the request is left, in at most two pieces. */
static int get_rest(const struct mk_http_client *c, struct iovec vec[2])
{
    const struct mk_str parts[] = {c->options.head, c->options.body};
    size_t skip = c->sent;
    int n = 0;
    for (size_t i = 0; i < MK_COUNT_OF(parts); i++) {
        if (skip < parts[i].len)
            vec[n++] = (struct iovec){(char *)(uintptr_t)parts[i].p + skip, parts[i].len - skip};
        skip -= skip < parts[i].len ? skip : parts[i].len;
    }
    return n;
}

static int send_request(struct mk_http_client *c)
{
    struct iovec vec[2];
    for (int n = get_rest(c, vec); n; n = get_rest(c, vec)) {
        ssize_t sent = c->options.transport->write(&c->conn->io, vec, n, 0);
        if (sent < 0)
            return note_error(c, (int)sent);
        mk__http_conn_count(c->conn, MK_BACKEND_SENT_BYTES, sent);
        c->sent += (size_t)sent;
    }
    int err = c->options.transport->flush ? c->options.transport->flush(&c->conn->io) : 0;
    if (err < 0)
        return note_error(c, err);
    c->state = HEAD;
    return 0;
}

/* ── the response ── */

/* Appends what has come. Returns the number of bytes, 0 at the end, or -errno. */
static ssize_t read_bytes(struct mk_http_client *c)
{
    int err = mk_buf_reserve(&c->in, READ_BYTES);
    if (err < 0)
        return err;
    ssize_t n = c->options.transport->read(&c->conn->io, c->in.data + c->in.len, READ_BYTES);
    if (n < 0) {
        c->has_failed = n != -EAGAIN;
        return n;
    }
    c->in.len += (size_t)n;
    c->is_reused &= n == 0;
    mk__http_conn_count(c->conn, MK_BACKEND_RECEIVED_BYTES, n);
    return n;
}

/* Takes what a codec has around the response out of the last `n` bytes. Returns how many are left, or -errno. */
static ssize_t unwrap_body(struct mk_http_client *c, size_t n)
{
    size_t at = c->in.len - n, left = n;
    int r = c->options.codec->unwrap(c->options.codec_state, c->in.data + at, &left);
    if (r < 0)
        return r;
    c->has_ended = r > 0;
    c->in.len = at + left;
    c->framing_bytes += (uint32_t)(n - left);
    return c->framing_bytes > FRAMING_BYTES_MAX ? -EFBIG : (ssize_t)left;
}

/* Appends what has come of the response. Returns the number of bytes, 0 at its end, or -errno. */
static ssize_t receive_bytes(struct mk_http_client *c)
{
    ssize_t n = 0;
    while (n == 0 && !c->has_ended) {
        n = read_bytes(c);
        if (n < 0 || !c->options.codec)
            return n;
        n = n == 0 ? -EPIPE : unwrap_body(c, (size_t)n);
    }
    return n;
}

static int parse_head(struct mk_http_client *c)
{
    const struct mk_http_client_codec *codec = c->options.codec;
    struct mk_str in = mk_buf_str(&c->in);
    return codec ? codec->parse_head(c->options.codec_state, &c->parser, c->fields, in)
                 : mk_response_parser_head(&c->parser, c->fields, in);
}

/* Takes heads out of what was read. Returns 0 (the last one is complete), MK_AGAIN or -errno. */
static int take_heads(struct mk_http_client *c)
{
    for (;;) {
        int r = parse_head(c);
        if (r != 0 || c->parser.status >= 200)
            return r;
        if (c->parser.status == 101)
            return -EPROTO;
        if (++c->n_interim > INTERIM_MAX)
            return -ELOOP;
        mk_buf_drop(&c->in, c->parser.head_bytes);
        mk_response_parser_next(&c->parser);
    }
}

/* Tells whether as much of the body is there as is wanted. */
static bool has_enough(const struct mk_http_client *c, size_t kept)
{
    return c->parser.is_done || kept - c->parser.head_bytes >= c->options.body_bytes_max;
}

/* Decodes what was read of the body, from `at` on, in place. Returns 0 or -errno. */
static int decode_response(struct mk_http_client *c, size_t at)
{
    size_t used = at, kept = at;
    while (used < c->in.len && !has_enough(c, kept)) {
        struct mk_str piece;
        ssize_t n = mk_response_parser_body(&c->parser, c->in.data + used, c->in.len - used, &piece);
        if (n < 0)
            return (int)n;
        if (piece.len)
            memmove(c->in.data + kept, piece.p, piece.len);
        kept += piece.len;
        used += (size_t)n;
    }
    c->has_excess = used < c->in.len;
    c->in.len = kept;
    return 0;
}

static int read_head(struct mk_http_client *c)
{
    int r = MK_AGAIN;
    if (!c->fields)
        c->fields = mk_account_alloc(NULL, c->limits.fields_max * sizeof(*c->fields));
    if (!c->fields)
        return -ENOMEM;
    while (r == MK_AGAIN) {
        ssize_t n = receive_bytes(c);
        if (n <= 0)
            return n == -EAGAIN ? MK_AGAIN : n == 0 ? -EPIPE : (int)n;
        r = take_heads(c);
    }
    if (r < 0)
        return r;
    if (c->options.stats)
        mk_backend_stats_add_status(c->options.stats, c->options.worker, c->parser.status);
    observe_time(c, MK_BACKEND_HEAD_DURATION, c->began_us);
    c->state = BODY;
    return decode_response(c, c->parser.head_bytes);
}

static int read_body(struct mk_http_client *c)
{
    while (!has_enough(c, c->in.len)) {
        size_t at = c->in.len;
        ssize_t n = receive_bytes(c);
        if (n <= 0)
            return n == -EAGAIN ? MK_AGAIN : n == 0 ? mk_response_parser_end(&c->parser) : (int)n;
        int err = decode_response(c, at);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ── events ── */

/* Returns 0 (it is complete), MK_AGAIN or -errno. */
static int advance_exchange(struct mk_http_client *c)
{
    int r = c->state == HANDSHAKE ? continue_handshake(c) : 0;
    if (r == 0 && !c->options.head.len)
        return 0;
    if (r == 0 && c->state == SEND)
        r = send_request(c);
    if (r == 0 && c->state == HEAD)
        r = read_head(c);
    if (r == 0 && c->state == BODY)
        r = read_body(c);
    return r;
}

static void dial_server(struct mk_http_client *c);

/* The connection was kept, and is lost: another one may still carry the request. */
static void dial_again(struct mk_http_client *c)
{
    close_connection(c);
    count_event(c, MK_BACKEND_RETRIES + MK_UPSTREAM_KEPT_ENDED);
    c->sent = 0;
    c->has_failed = c->is_reused = false;
    c->state = DIAL;
    dial_server(c);
}

static void continue_exchange(void *client)
{
    struct mk_http_client *c = client;
    int r = advance_exchange(c);
    if (r < 0 && c->is_reused)
        dial_again(c);
    else if (r != MK_AGAIN)
        finish_exchange(c, r);
}

static void on_timer(struct mk_timer *timer)
{
    finish_exchange(MK_CONTAINER_OF(timer, struct mk_http_client, timer), -ETIMEDOUT);
}

static void on_dial(struct mk_dial *dial, int fd)
{
    struct mk_http_client *c = MK_CONTAINER_OF(dial, struct mk_http_client, dial);
    if (c->options.worker && (fd >= 0 || fd == -EMFILE || fd == -ENFILE))
        mk_worker_note_descriptor(c->options.worker, fd);
    int err = fd < 0 ? fd : mk__http_conn_open(&c->options, c->loop, fd, continue_exchange, c, &c->conn);
    c->state = fd < 0 ? DIAL : HANDSHAKE;
    c->has_failed = c->conn && err < 0; /* of the transport, which can say more */
    if (err < 0)
        finish_exchange(c, err);
    else
        continue_exchange(c);
}

static void dial_server(struct mk_http_client *c)
{
    c->dialed_us = get_now_us(c);
    mk_dial_start(&c->dial, c->loop, c->options.target, &(struct mk_dial_options){.timeout_ms = c->options.timeout_ms},
                  on_dial);
}

/* ── the beginning ── */

static void set_defaults(struct mk_http_client_options *o)
{
    if (!o->transport)
        o->transport = &mk_transport_plain;
    if (!o->timeout_ms)
        o->timeout_ms = MK_HTTP_CLIENT_TIMEOUT_MS;
    if (!o->head_bytes_max)
        o->head_bytes_max = MK_HTTP_CLIENT_HEAD_BYTES;
    if (!o->fields_max)
        o->fields_max = MK_HTTP_CLIENT_FIELDS;
}

/* Its events continue with the response, so that the callback is not called from here. */
static void use_kept(struct mk_http_client *c)
{
    c->is_reused = true;
    c->state = SEND;
    if (send_request(c) < 0)
        dial_again(c);
}

void mk_http_client_start(struct mk_http_client *c, struct mk_loop *loop, const struct mk_http_client_options *options,
                          mk_http_client_fn fn)
{
    assert(options->target && options->body_bytes_max <= MK_HTTP_CLIENT_BODY_BYTES_MAX);
    assert(!options->idle || (options->head.len && !options->codec));
    *c = (struct mk_http_client){.loop = loop, .fn = fn, .options = *options, .state = DIAL};
    struct mk_http_client_options *o = &c->options;
    set_defaults(o);
    c->limits = (struct mk_response_limits){o->head_bytes_max, o->fields_max, chunked_limits};
    bool is_head = mk_str_starts(o->head, MK_STR("HEAD "));
    mk_response_parser_init(&c->parser, &c->limits, is_head ? MK_RESPONSE_TO_HEAD : MK_RESPONSE_TO_OTHER);
    mk_buf_init(&c->in, (size_t)o->head_bytes_max + o->body_bytes_max + READ_BYTES);
    mk_timer_init(&c->timer, on_timer);
    mk_timer_arm(loop, &c->timer, o->timeout_ms);
    c->began_us = get_now_us(c);
    count_event(c, MK_BACKEND_REQUESTS);
    c->conn = o->idle ? mk__http_conn_take(o, continue_exchange, c) : NULL;
    if (c->conn)
        use_kept(c);
    else
        dial_server(c);
}
