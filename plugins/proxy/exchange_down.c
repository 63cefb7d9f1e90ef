// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a response to the client (exchange_state.h): heads, then the body as the client takes it, or a tunnel.
 */
#include "exchange_state.h"

#include "response.h"
#include "trailers.h"

#include <errno.h>

enum { INTERIM_MAX = 16 };

/* Keeps a pipe only while bytes wait in it. */
static void keep_pipe(struct exchange *x, struct pipe *pipe)
{
    x->pipe = pipe->bytes ? pipe : NULL;
    if (!x->pipe)
        pipe_put(pipe);
}

/* Notes what reading from the connection has returned. */
static void note_read(struct exchange *x, ssize_t n)
{
    x->awaits_backend = n == -EAGAIN;
    if (n == -EAGAIN)
        exchange_touch(x);
    else if (n < 0)
        exchange_fail(x, (int)n);
    else if (x->down.parser.is_done)
        exchange_finish(x);
}

/* Reads what comes next of the body: what is in the pipe, then from the connection. Returns as download_body(). */
static ssize_t read_body(struct exchange *x, char *to, size_t size)
{
    struct pipe *pipe = x->pipe;
    ssize_t n = pipe ? pipe_read(pipe, to, size) : download_body(&x->down, x->conn, to, size);
    if (pipe)
        keep_pipe(x, pipe);
    else
        note_read(x, n);
    return n;
}

/* All of the body is with the client, or on its way there. */
static void end_body(struct exchange *x)
{
    if (x->down.parser.is_done && !buffer_has_bytes(&x->buffer))
        response_add_trailers(x->req, &x->down.trailers);
}

/* The buffer takes over what has come, if the client does not. */
static void offer_rest(struct exchange *x)
{
    if (x->phase == BODY && !buffer_has_bytes(&x->buffer) && (x->pipe || !x->conn->is_drained))
        buffer_offer(&x->buffer);
}

void exchange_down_fill(struct buffer *buffer)
{
    struct exchange *x = MK_CONTAINER_OF(buffer, struct exchange, buffer);
    int err = 0;
    if (x->is_taken) {
        offer_rest(x); /* its turn comes late */
        return;
    }
    while (err == 0 && x->phase == BODY && !x->awaits_bytes) {
        err = buffer_room(buffer);
        if (err != 0)
            break;
        char *bytes = x->thread->buffer;
        ssize_t n = read_body(x, bytes, THREAD_BUFFER_BYTES);
        err = buffer_add(buffer, mk_str(bytes, n < 0 ? 0 : (size_t)n), x->down.parser.is_done);
        if (n < 0)
            break;
        end_body(x);
    }
    if (err < 0)
        exchange_fail(x, err);
}

/* Gives the client what waits or has come, when it takes bytes. */
static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct exchange *x = ctx;
    bool has_bytes = buffer_has_bytes(&x->buffer);
    (void)req;
    buffer_note_asked(&x->buffer);
    if (!has_bytes && x->phase != BODY && !x->pipe)
        return x->down.parser.is_done ? 0 : -EPIPE;
    ssize_t n = has_bytes ? buffer_read(&x->buffer, to, size) : read_body(x, to, size);
    x->awaits_bytes = n == -EAGAIN && !has_bytes;
    if (n >= 0)
        end_body(x);
    if (n > 0)
        offer_rest(x);
    return n;
}

/* Moves what comes next by splice(2), until bytes wait in the buffer. */
static ssize_t move(struct mk_request *req, int fd, size_t size, void *ctx)
{
    struct exchange *x = ctx;
    (void)req;
    buffer_note_asked(&x->buffer);
    x->is_taken = false;
    if (buffer_has_bytes(&x->buffer))
        return -EOPNOTSUPP;
    if (x->phase != BODY && !x->pipe)
        return x->down.parser.is_done ? 0 : -EPIPE;
    struct pipe *pipe = x->pipe ? x->pipe : pipes_take(&x->thread->pipes);
    if (!pipe)
        return -EOPNOTSUPP;
    ssize_t n = download_splice(&x->down, x->phase == BODY ? x->conn : NULL, pipe, fd, size);
    keep_pipe(x, pipe);
    if (n == -ECONNABORTED || n == -EOPNOTSUPP)
        return n == -EOPNOTSUPP ? n : -EPIPE;
    x->is_taken = n != -EBUSY;
    x->awaits_bytes = n == -EAGAIN;
    if (x->phase == BODY)
        note_read(x, n == -EBUSY ? 0 : n); /* all may have been read, and wait in the pipe */
    if (n > 0 || n == -EBUSY)
        offer_rest(x);
    return n;
}

/* Adds a body whose bytes come later. Returns as mk_response_generate(). */
static int add_body(struct exchange *x)
{
    bool is_plain = !x->client->settings && x->down.parser.body == MK_RESPONSE_BODY_LENGTH;
    if (is_plain && mk_response_parser_skippable(&x->down.parser) >= SPLICE_BYTES_MIN)
        return mk_response_splice(x->req, generate, move, x);
    return mk_response_generate(x->req, generate, x);
}

/* Passes the body on: what came with the head, and then what comes. */
static void begin_body(struct exchange *x)
{
    int err;
    struct mk_str first = download_first(&x->down, &err);
    if (err < 0) {
        exchange_fail(x, err); /* the head has not left yet */
        return;
    }
    x->phase = BODY;
    if (upload_is_done(&x->up))
        received_release(&x->received); /* it will not be repeated */
    buffer_begin(&x->buffer, &x->conf->buffer);
    int r = first.len ? mk_response_write(x->req, first) : 0;
    if (x->down.parser.is_done) {
        response_add_trailers(x->req, &x->down.trailers);
        exchange_finish(x);
    } else if (r >= 0) {
        r = add_body(x);
        offer_rest(x);
    }
    if (r == -ENOMEM)
        mk_response_abort(x->req);
    else
        mk_response_end(x->req);
}

/* The connection becomes a tunnel; bytes that came with the head are its first. Returns 0 or -errno. */
static int switch_protocols(struct exchange *x, struct mk_str head)
{
    const struct mk_response_parser *p = &x->down.parser;
    const struct mk_field *fields = x->down.fields;
    if (!upgrade_is_agreed(&x->upgrade, response_find(p, fields, head, MK_STR("Upgrade")),
                           response_find(p, fields, head, MK_STR("Sec-WebSocket-Accept"))))
        return -EPROTO;
    int err = response_pass_upgrade(x->req, x->conf, p, fields, head, x->upgrade.token);
    if (err >= 0)
        err = tunnel_open(&x->owner->tunnel, x->req, x->conn, mk_str(x->down.rest, x->down.rest_len));
    if (err < 0)
        return err;
    report_end(&x->report);
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
static void discard_response(struct exchange *x)
{
    int err;
    download_first(&x->down, &err);
    if (err == 0 && !x->down.parser.is_done)
        download_body(&x->down, x->conn, x->thread->buffer, THREAD_BUFFER_BYTES);
    exchange_finish(x); /* an error is a response that has not ended */
}

static int respond_page(struct exchange *x, struct mk_str head)
{
    mk_response_error(x->req, x->down.parser.status);
    response_keep_for_error(x->req, x->conf, &x->down.parser, x->down.fields, head);
    discard_response(x);
    return MK_DECLINED;
}

static int respond_file(struct exchange *x, struct mk_str head, const struct named_file *named)
{
    if (response_keep_for_file(x->req, x->conf, &x->down.parser, x->down.fields, head) < 0)
        mk_response_error(x->req, 502);
    else
        send_file_respond(x->req, &x->conf->send_file, named);
    discard_response(x);
    return MK_DECLINED;
}

/* A head that is not interim. Returns false if the request goes to another server instead. */
static bool note_head(struct exchange *x)
{
    unsigned status = x->down.parser.status;
    report_head(&x->report, status);
    exchange_report_head(x, status);
    if (exchange_tries_after_status(x, status))
        return false;
    if (x->backend->server)
        x->route->upstreams->add_headers(x->route->group, x->backend->server, x->req);
    return true;
}

/*
 * Returns 0 (the last head was passed on), MK_AGAIN (another one follows), MK_DECLINED (the server responds instead, or
 * the request goes to another one) or -errno.
 */
static int take_head(struct exchange *x, struct mk_str head)
{
    bool is_last = x->down.parser.status == 101 || x->down.parser.status >= 200;
    if (is_last && !note_head(x))
        return MK_DECLINED;
    if (x->down.parser.status == 101)
        return switch_protocols(x, head);
    if (x->upgrade.is_extended_connect && x->down.parser.status / 100 == 2)
        return -EPROTO; /* the client would take it for an open tunnel */
    if (x->down.parser.status < 200 && ++x->n_interim > INTERIM_MAX)
        return -ELOOP;
    if (x->down.parser.status < 200) {
        x->is_invited |= x->down.parser.status == 100;
        response_pass_interim(x->req, x->conf, &x->down.parser, x->down.fields, head);
        return MK_AGAIN;
    }
    x->conn->is_bound |= response_binds_conn(x->req, &x->down.parser, x->down.fields, head);
    if (intercept_has(&x->conf->intercept, x->down.parser.status))
        return respond_page(x, head);
    struct named_file named;
    int has_file = x->conf->send_file.n ? response_find_file(x->req, &x->down.parser, x->down.fields, head, &named) : 0;
    if (has_file)
        return has_file < 0 ? has_file : respond_file(x, head, &named);
    return response_pass_head(x->req, x->conf, &x->down.parser, x->down.fields, head);
}

static void read_heads(struct exchange *x)
{
    int r = MK_AGAIN;
    while (r == MK_AGAIN) {
        struct mk_str head;
        r = download_head(&x->down, x->conn, mk_request_arena(x->req), x->thread->fields, x->thread->buffer,
                          THREAD_BUFFER_BYTES, &head);
        if (r == 0)
            r = take_head(x, head);
    }
    if (r == 0 && !x->owner->exchange)
        exchange_free(x);
    else if (r == 0)
        begin_body(x);
    else if (r < 0 && r != -EAGAIN)
        exchange_fail(x, r);
}

void exchange_down_resume(struct exchange *x)
{
    x->awaits_backend = false;
    if (x->phase == WAITING) {
        read_heads(x);
    } else if (x->awaits_bytes) {
        x->awaits_bytes = false;
        mk_response_wake(x->req);
    } else if (x->phase == BODY) {
        buffer_offer(&x->buffer);
    }
}
