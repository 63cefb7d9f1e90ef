// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a response to the client: heads, then the body as the client takes it, or a tunnel.
 */
#include "exchange.h"

#include <errno.h>

/*
 * ── the head, as all protocols pass it on (<monkey/kit/gateway.h>) ──
 *
 * The strings are those of one copy of the head in the arena of the exchange.
 */

enum { RESPONSE_HEADERS_MAX = 128 }; /* of mk_response_header(), with those that the server adds */

struct mk_str mk_gateway_head_find(const struct mk_gateway_head *head, struct mk_str name)
{
    struct mk_str value = MK_STR_NONE;
    for (unsigned i = 0; i < head->parser->n_fields; i++) {
        if (!mk_str_ieq(mk_span_str(head->bytes.p, head->fields[i].name), name))
            continue;
        if (value.p)
            return MK_STR_NONE;
        value = mk_span_str(head->bytes.p, head->fields[i].value);
    }
    return value;
}

bool mk_gateway_head_connection_has(const struct mk_gateway_head *head, struct mk_str option)
{
    for (unsigned i = 0; i < head->parser->n_fields; i++)
        if (head->fields[i].id == MK_HEADER_CONNECTION &&
            mk_str_list_has(mk_span_str(head->bytes.p, head->fields[i].value), option))
            return true;
    return false;
}

static bool is_listed(const struct mk_str *names, struct mk_str name)
{
    while (names->p && !mk_str_ieq(*names, name))
        names++;
    return names->p;
}

int mk_gateway_pass_headers(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                            const struct mk_str *only)
{
    int err = 0;
    struct mk_gateway_head copy = *head;
    copy.bytes = mk_arena_dup(mk_request_arena(c->req), head->bytes);
    if (!copy.bytes.p)
        return -ENOMEM;
    unsigned n_fields = head->parser->n_fields;
    for (unsigned i = 0; i < n_fields && err >= 0; i++) {
        struct mk_str name = mk_span_str(copy.bytes.p, head->fields[i].name);
        if (!mk_gateway_head_connection_has(head, name) && (!only || is_listed(only, name)))
            err = c->protocol->pass_header(c, name, mk_span_str(copy.bytes.p, head->fields[i].value));
    }
    return err == -ENOMEM && n_fields >= RESPONSE_HEADERS_MAX ? -ENOBUFS : err;
}

/* Sets status and headers of the response. Copies them. Returns 0 or -errno. */
static int pass_response(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    const struct mk_response_parser *p = head->parser;
    int err = mk_response_set_status(c->req, p->status);
    if (err >= 0)
        err = mk_gateway_pass_headers(c, head, NULL);
    if (err >= 0 && c->protocol->pass_more)
        err = c->protocol->pass_more(c, head);
    if (err >= 0 && p->has_length && p->status != 204 && p->status != 304)
        err = mk_response_set_length(c->req, p->length);
    return err;
}

/* ── responses that the server replaces ── */

/*
 * Finds a file that the backend names, with what it says of it; copies the strings. Returns 1, 0 (there is none, or
 * there are several) or -ENOMEM.
 */
static int find_named_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                           struct mk__gw_named_file *ret)
{
    struct mk_arena *arena = mk_request_arena(c->req);
    struct mk_str uri = mk_gateway_head_find(head, MK_STR("X-Accel-Redirect"));
    struct mk_str path = mk_gateway_head_find(head, MK_STR("X-Sendfile"));
    struct mk_str ranges = mk_gateway_head_find(head, MK_STR("Accept-Ranges"));
    struct mk_str type = mk_gateway_head_find(head, MK_STR("Content-Type"));
    if (!uri.len && !path.len)
        return 0;
    *ret = (struct mk__gw_named_file){.log_name = c->protocol->name,
                                      .value = mk_arena_dup(arena, uri.len ? uri : path),
                                      .is_uri = uri.len > 0,
                                      .type = mk_arena_dup(arena, type),
                                      .no_ranges = mk_str_ieq(ranges, MK_STR("none"))};
    return ret->value.p && ret->type.p ? 1 : -ENOMEM;
}

/* The headers that nginx keeps for X-Accel-Redirect; Content-Type and Accept-Ranges are those of the file. */
static int keep_headers_for_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    static const struct mk_str names[] = {MK_STR_INIT("Content-Disposition"),
                                          MK_STR_INIT("Set-Cookie"),
                                          MK_STR_INIT("Cache-Control"),
                                          MK_STR_INIT("Expires"),
                                          {0}};
    return mk_gateway_pass_headers(c, head, names);
}

/* The headers without which the client could not use the status (RFC 9110 section 15). */
static int keep_headers_for_error(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    static const struct mk_str names[] = {MK_STR_INIT("WWW-Authenticate"),
                                          MK_STR_INIT("Allow"),
                                          MK_STR_INIT("Retry-After"),
                                          MK_STR_INIT("Content-Range"),
                                          {0}};
    int err = mk_gateway_pass_headers(c, head, names);
    return err >= 0 && c->protocol->pass_more ? c->protocol->pass_more(c, head) : err;
}

/* ── reading ── */

/* Keeps a pipe only while bytes wait in it. */
static void keep_pipe(struct mk__gw_exchange *x, struct mk__gw_pipe *pipe)
{
    x->pipe = pipe->bytes ? pipe : NULL;
    if (!x->pipe)
        mk__gw_pipe_put(pipe);
}

/*
 * There is nothing to read. Waits for bytes of the body, or continues: what the protocol has around the body, and error
 * output, give the backend no more time. Returns -EAGAIN; -ETIMEDOUT: the time was up when they came.
 */
static int await_body(struct mk__gw_exchange *x)
{
    bool is_new = x->has_body_bytes, has_stopped = x->wait_end_ms == UINT64_MAX;
    x->awaits_backend = true;
    x->has_body_bytes = false;
    if (!is_new && has_stopped && !x->wait_left_ms)
        return -ETIMEDOUT;
    if (is_new || has_stopped)
        mk__gw_exchange_wait(x, is_new ? x->conf->read_timeout_ms : x->wait_left_ms);
    return -EAGAIN;
}

/* Notes what reading from the connection has returned. Returns it, or the error that follows from it. */
static ssize_t note_read(struct mk__gw_exchange *x, ssize_t n)
{
    x->awaits_backend = false;
    x->has_body_bytes |= n >= 0;
    if (n == -EAGAIN)
        n = await_body(x);
    if (n < 0 && n != -EAGAIN)
        mk__gw_exchange_fail(x, (int)n);
    else if (x->down.parser.is_done)
        mk__gw_exchange_finish(x);
    return n;
}

/* Reads what comes next of the body: what is in the pipe, then from the connection. Returns as mk__gw_download_body().
 */
static ssize_t read_body(struct mk__gw_exchange *x, char *to, size_t size)
{
    struct mk__gw_pipe *pipe = x->pipe;
    ssize_t n = pipe ? mk__gw_pipe_read(pipe, to, size) : mk__gw_download_body(&x->down, x->conn, to, size);
    if (pipe)
        keep_pipe(x, pipe);
    else
        n = note_read(x, n);
    return n;
}

static void add_trailers(struct mk__gw_exchange *x)
{
    if (x->call.protocol->add_trailers && !x->down.trailers.err)
        x->call.protocol->add_trailers(&x->call, mk_buf_str(&x->down.trailers));
}

/* All of the body is with the client, or on its way there. */
static void end_body(struct mk__gw_exchange *x)
{
    if (x->down.parser.is_done && !mk__gw_buffer_has_bytes(&x->buffer))
        add_trailers(x);
}

/* The buffer takes over what has come, if the client does not. */
static void offer_rest(struct mk__gw_exchange *x)
{
    if (x->phase == MK__GW_BODY && !mk__gw_buffer_has_bytes(&x->buffer) && (x->pipe || !x->conn->is_drained))
        mk__gw_buffer_offer(&x->buffer);
}

void mk__gw_exchange_down_fill(struct mk__gw_buffer *buffer)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(buffer, struct mk__gw_exchange, buffer);
    int err = 0;
    if (x->is_taken) {
        offer_rest(x); /* its turn comes late */
        return;
    }
    while (err == 0 && x->phase == MK__GW_BODY && !x->awaits_bytes) {
        err = mk__gw_buffer_room(buffer);
        if (err != 0)
            break;
        char *bytes = x->thread->buffer;
        ssize_t n = read_body(x, bytes, MK__GW_BUFFER_BYTES);
        err = mk__gw_buffer_add(buffer, mk_str(bytes, n < 0 ? 0 : (size_t)n), x->down.parser.is_done);
        if (n < 0)
            break;
        end_body(x);
    }
    if (err < 0)
        mk__gw_exchange_fail(x, err);
}

/* Gives the client what waits or has come, when it takes bytes. */
static ssize_t generate_body(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct mk__gw_exchange *x = ctx;
    bool has_bytes = mk__gw_buffer_has_bytes(&x->buffer);
    (void)req;
    mk__gw_buffer_note_asked(&x->buffer);
    if (!has_bytes && x->phase != MK__GW_BODY && !x->pipe)
        return x->down.parser.is_done ? 0 : -EPIPE;
    ssize_t n = has_bytes ? mk__gw_buffer_read(&x->buffer, to, size) : read_body(x, to, size);
    x->awaits_bytes = n == -EAGAIN && !has_bytes;
    if (n >= 0)
        end_body(x);
    if (n > 0)
        offer_rest(x);
    return n;
}

/* Moves what comes next by splice(2), until bytes wait in the buffer. */
static ssize_t move_to_pipe(struct mk_request *req, int fd, size_t size, void *ctx)
{
    struct mk__gw_exchange *x = ctx;
    (void)req;
    mk__gw_buffer_note_asked(&x->buffer);
    x->is_taken = false;
    if (mk__gw_buffer_has_bytes(&x->buffer))
        return -EOPNOTSUPP;
    if (x->phase != MK__GW_BODY && !x->pipe)
        return x->down.parser.is_done ? 0 : -EPIPE;
    struct mk__gw_pipe *pipe = x->pipe ? x->pipe : mk__gw_pipes_take(&x->thread->pipes);
    if (!pipe)
        return -EOPNOTSUPP;
    ssize_t n = mk__gw_download_splice(&x->down, x->phase == MK__GW_BODY ? x->conn : NULL, pipe, fd, size);
    keep_pipe(x, pipe);
    if (n == -ECONNABORTED || n == -EOPNOTSUPP)
        return n == -EOPNOTSUPP ? n : -EPIPE;
    x->is_taken = n != -EBUSY;
    if (x->phase == MK__GW_BODY && x->is_taken)
        n = note_read(x, n);
    else if (x->phase == MK__GW_BODY)
        note_read(x, 0); /* all may have been read, and wait in the pipe */
    x->awaits_bytes = n == -EAGAIN;
    if (n > 0 || n == -EBUSY)
        offer_rest(x);
    return n;
}

/* Passes the body on: what came with the head, and then what comes. */
static void begin_body(struct mk__gw_exchange *x)
{
    int err;
    struct mk_str first = mk__gw_download_first(&x->down, &err);
    if (err < 0) {
        mk__gw_exchange_fail(x, err); /* the head has not left yet */
        return;
    }
    x->phase = MK__GW_BODY;
    x->has_body_bytes = true; /* its time begins now */
    if (mk__gw_upload_is_done(&x->up))
        mk__gw_received_release(&x->received); /* it will not be repeated */
    mk__gw_buffer_begin(&x->buffer, &x->conf->buffer);
    int r = first.len ? mk_response_write(x->req, first) : 0;
    if (x->down.parser.is_done) {
        /*
         * The response to HEAD has no length if the backend has sent none (RFC 9110 section 8.6): a generator, which is
         * not called, hides it.
         */
        bool is_known = mk_request_method(x->req) != MK_HEAD || x->down.parser.has_length;
        if (r >= 0 && !is_known)
            r = mk_response_generate(x->req, generate_body, x);
        add_trailers(x);
        mk__gw_exchange_finish(x);
    } else if (r >= 0) {
        bool is_plain = !x->client->settings && mk__gw_download_is_plain(&x->down);
        if (is_plain && mk_response_parser_skippable(&x->down.parser) >= MK__GW_SPLICE_BYTES_MIN)
            r = mk_response_splice(x->req, generate_body, move_to_pipe, x);
        else
            r = mk_response_generate(x->req, generate_body, x);
        offer_rest(x);
    }
    if (r == -ENOMEM)
        mk_response_abort(x->req);
    else
        mk_response_end(x->req);
}

/*
 * The connection becomes a tunnel; bytes that came with the head are its first. A backend that switches before it has
 * the body would take that for the other protocol. Returns 0 or -errno.
 */
static int switch_protocols(struct mk__gw_exchange *x, const struct mk_gateway_head *head)
{
    if (!mk__gw_upload_is_done(&x->up))
        return -EPROTO;
    int err = x->call.protocol->pass_upgrade ? x->call.protocol->pass_upgrade(&x->call, head) : -EPROTO;
    if (err >= 0)
        err = mk__gw_tunnel_open(&x->owner->tunnel, x->req, x->conn, mk_str(x->down.rest, x->down.rest_len));
    if (err < 0)
        return err;
    mk__gw_report_end(&x->report);
    x->conn = NULL;
    x->backend = NULL;
    x->uses_backend = false;
    x->owner->exchange = NULL;
    return 0;
}

/*
 * The server has responded in place of the backend, whose connection is kept if it has sent all of its response. The
 * head is not valid any more.
 */
static void discard_response(struct mk__gw_exchange *x)
{
    int err;
    mk__gw_download_first(&x->down, &err);
    if (err == 0 && !x->down.parser.is_done)
        mk__gw_download_body(&x->down, x->conn, x->thread->buffer, MK__GW_BUFFER_BYTES);
    mk__gw_exchange_finish(x); /* an error is a response that has not ended */
}

static int respond_page(struct mk__gw_exchange *x, const struct mk_gateway_head *head)
{
    mk_response_error(x->req, x->down.parser.status);
    keep_headers_for_error(&x->call, head);
    discard_response(x);
    return MK_DECLINED;
}

static int respond_file(struct mk__gw_exchange *x, const struct mk_gateway_head *head,
                        const struct mk__gw_named_file *named)
{
    if (keep_headers_for_file(&x->call, head) < 0) {
        mk__gw_exchange_log_own(x, "there is no memory for its response");
        mk__gw_failure_respond(x->req, 503, "proxy_internal_error", MK_STR_NONE);
    } else {
        mk__gw_send_file_respond(x->req, &x->conf->send_file, named);
    }
    discard_response(x);
    return MK_DECLINED;
}

static int take_interim_head(struct mk__gw_exchange *x, const struct mk_gateway_head *head)
{
    if (++x->n_interim > MK__GW_INTERIM_MAX)
        return -ELOOP;
    x->is_continue_received |= x->down.parser.status == 100;
    if (x->call.protocol->pass_interim)
        x->call.protocol->pass_interim(&x->call, head);
    return MK_AGAIN;
}

static int take_last_head(struct mk__gw_exchange *x, const struct mk_gateway_head *head)
{
    struct mk__gw_named_file named;
    bool binds = false;
    int err = x->call.protocol->check_head ? x->call.protocol->check_head(&x->call, head, &binds) : 0;
    if (err < 0)
        return err;
    x->conn->is_bound |= binds;
    x->conn->has_login |= binds;
    if (mk_status_set_has(&x->conf->intercept, x->down.parser.status))
        return respond_page(x, head);
    int has_file = x->conf->send_file.n ? find_named_file(&x->call, head, &named) : 0;
    if (has_file)
        return has_file < 0 ? has_file : respond_file(x, head, &named);
    return pass_response(&x->call, head);
}

/*
 * Returns 0 (the last head was passed on), MK_AGAIN (another one follows), MK_DECLINED (the server responds instead, or
 * the request goes to another one) or -errno.
 */
static int take_head(struct mk__gw_exchange *x, const struct mk_gateway_head *head)
{
    unsigned status = x->down.parser.status;
    if (status < 200 && status != 101)
        return take_interim_head(x, head);
    mk__gw_report_head(&x->report, status);
    const struct mk_upstream_outcome outcome = {.status = status,
                                                .head_ms = (uint32_t)(mk_loop_now_ms(x->loop) - x->sent_ms)};
    mk__gw_exchange_report_outcome(x, &outcome);
    if (mk__gw_exchange_tries_after_status(x, status))
        return MK_DECLINED;
    if (x->backend->server)
        x->route->upstreams->add_headers(x->route->group, x->backend->server, x->req);
    return status == 101 ? switch_protocols(x, head) : take_last_head(x, head);
}

static void read_heads(struct mk__gw_exchange *x)
{
    int r = MK_AGAIN;
    while (r == MK_AGAIN) {
        struct mk_str bytes;
        r = mk__gw_download_head(&x->down, x->conn, mk_request_arena(x->req), x->thread->fields, x->thread->buffer,
                                 MK__GW_BUFFER_BYTES, &bytes);
        if (r != 0)
            break;
        const struct mk_gateway_head head = {.parser = &x->down.parser, .fields = x->down.fields, .bytes = bytes};
        r = take_head(x, &head);
    }
    if (r == 0 && !x->owner->exchange)
        mk__gw_exchange_free(x);
    else if (r == 0)
        begin_body(x);
    else if (r < 0 && r != -EAGAIN)
        mk__gw_exchange_fail(x, r);
}

void mk__gw_exchange_down_resume(struct mk__gw_exchange *x)
{
    if (x->phase == MK__GW_WAITING) {
        read_heads(x);
        return;
    }
    /*
     * The wait stops when bytes come, which the client may take late: only when they are read is it known whether they
     * are of the body.
     */
    uint64_t now = mk_loop_now_ms(x->loop);
    if (x->wait_end_ms != UINT64_MAX)
        x->wait_left_ms = x->wait_end_ms > now ? (uint32_t)(x->wait_end_ms - now) : 0;
    x->wait_end_ms = UINT64_MAX;
    x->awaits_backend = false;
    if (x->awaits_bytes) {
        x->awaits_bytes = false;
        mk_response_wake(x->req);
    } else if (x->phase == MK__GW_BODY) {
        mk__gw_buffer_offer(&x->buffer);
    }
}
