// SPDX-License-Identifier: Apache-2.0
/*
 * Writes responses as HTTP/1 (RFC 9112 section 6): head, framing, parts. Small parts are gathered in the output buffer
 * of the thread, so that the responses of a pipeline leave in one write; files above 16 KB are sent in slices by
 * sendfile. A file that is not in the page cache is read by a disk thread first: the loop never waits for a disk.
 */
#include "http/h1/h1.h"
#include "base/digits.h"
#include "http/request_extra.h"
#include "http/file_read.h"
#include "http/message/status.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <unistd.h>

enum {
    COPY_BYTES_MAX = 16 * 1024,  /* up to here read and write are faster than sendfile */
    SLICE_BYTES = 256 * 1024,    /* of a large body per turn, so that other connections get theirs */
    SENDFILE_BYTES = 512 * 1024, /* the same for a file that is not encrypted, of which a byte costs less */
    CORKED_BYTES = 1024 * 1024,  /* the same for a socket whose segments are full */
    CORK_BYTES_MIN = 256 * 1024, /* from here on segments that are not full cost more than two system calls */
    CHUNK_BYTES = 20,            /* 16 digits, CRLF, and the CRLF after the data */
    SHORT_CHUNK_LINE_BYTES = 6,  /* 4 digits and CRLF: enough for the size of the output buffer */
    GENERATE_BYTES_MIN = 1024,   /* the least room that a generator is given */
    STATUS_LINE_BYTES_MAX = 64,
};

/* ── writing to the output buffer ── */

static void put_str(struct mk__scratch *out, struct mk_str s)
{
    assert(s.len <= out->size - out->len);
    memcpy(out->data + out->len, s.p, s.len);
    out->len += s.len;
}

static MK_NOINLINE void put_chunk_line(struct mk__scratch *out, uint64_t value)
{
    char digits[18] = {[16] = '\r', [17] = '\n'};
    unsigned n = 16;
    do
        digits[--n] = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    put_str(out, mk_str(digits + n, sizeof(digits) - n));
}

static enum mk__h1_send_result get_flush_result(int r)
{
    return r == 0 ? MK__H1_SEND_DONE : r == MK_AGAIN ? MK__H1_SEND_BLOCKED : MK__H1_SEND_BROKEN;
}

static enum mk__h1_send_result flush_output(struct mk__conn *c, unsigned flags)
{
    return get_flush_result(mk__sock_flush(&c->sock, &c->http->out, c->http->account, flags));
}

/* Makes room for `n` bytes in the output buffer, flushing it if necessary. */
static MK_HOT enum mk__h1_send_result make_room(struct mk__conn *c, size_t n)
{
    struct mk__scratch *out = &c->http->out;
    if (n <= out->size - out->len)
        return MK__H1_SEND_DONE;
    enum mk__h1_send_result r = flush_output(c, MK_IO_MORE);
    return r == MK__H1_SEND_DONE && n > out->size ? MK__H1_SEND_FAILED : r;
}

/* ── the head ── */

/* Decides whether the connection stays open after this response; what is unread of the request body counts too. */
static void decide_keep_alive(struct mk__conn *c, struct mk_request *req)
{
    assert(req->output_state == MK__OUTPUT_HOOKED);
    bool is_open = req->response_state == MK__RESPONSE_OPEN;
    bool reads = is_open && req->body_fn && !mk__request_awaits_continue(req);
    bool unread = req->body_state < MK__BODY_STATE_DONE && !reads;            /* and will not be read */
    bool awaits_continue = req->head.expects_continue && !req->continue_sent; /* the client may never send the body */
    /* what follows a CONNECT is meant for the tunnel, and no request if there is none (RFC 9110 section 9.3.6) */
    bool has_refused_tunnel = req->parse.method == MK_CONNECT && !req->tunnel;
    if (!mk__context_keeps_alive(c->http) || !req->head.keep_alive || req->close_wanted ||
        mk__sock_has_ended(&c->sock) || mk__conn_is_used_up(c) || has_refused_tunnel)
        mk__conn_close_after(c, MK__CLOSE_AFTER_RESPONSE);
    if (unread &&
        (awaits_continue || (req->head.body == MK__BODY_LENGTH && req->body_left > req->limits->discard_bytes_max)))
        mk__conn_close_after(c, MK__CLOSE_AFTER_RESPONSE);
    if (c->close != MK__CLOSE_NEVER && unread)
        mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT);
    if (!req->head.keep_alive)
        mk__conn_close_after(c, MK__CLOSE_BY_CLIENT);
}

static void decide_framing(struct mk__conn *c, struct mk_request *req)
{
    if (req->tunnel) { /* neither body nor framing: RFC 9110 section 9.3.6 */
        req->framing = MK__FRAMING_NONE;
        req->bodyless = true;
        return;
    }
    mk__response_decide_body(req);
    if (req->framing == MK__FRAMING_NONE && mk__status_has_body(req->status)) {
        if (req->parse.minor > 0)
            req->framing = MK__FRAMING_CHUNKED;
        else if (!req->bodyless)
            mk__conn_close_after(c, MK__CLOSE_AFTER_RESPONSE); /* the end of the connection ends the body */
    }
}

static bool is_chunked(const struct mk_request *req)
{
    return req->framing == MK__FRAMING_CHUNKED;
}

/* The write_ functions write a part of a head, for which there is room. They return where the next part begins. */

static char *write_str(char *to, struct mk_str s)
{
    return mempcpy(to, s.p, s.len);
}

static MK_HOT char *write_fields(char *to, const struct mk_header_field *fields, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        to = mempcpy(write_str(to, fields[i].name), ": ", 2);
        to = mempcpy(write_str(to, fields[i].value), "\r\n", 2);
    }
    return to;
}

/* Returns an upper bound for the head with status line, framing and Connection. */
static size_t get_head_bytes_max(const struct mk_request *req)
{
    return 256 + MK__DATE_LINES_BYTES + mk__request_block_lines(req).len +
           mk__request_count_line_bytes(req->headers, req->headers_len);
}

/* Sends a 500 without the headers, which are too long. */
static MK_COLD void replace_head_with_500(struct mk_request *req)
{
    mk_request_log(req, MK_LOG_ERROR, "the headers of a response are longer than %d bytes: sending 500 instead",
                   MK__RESPONSE_HEAD_BYTES_MAX);
    mk__response_reset_to_status(req, 500);
}

static MK_NOINLINE char *write_status_line(char *to, int status)
{
    struct mk_str reason = mk__status_reason(status);
    to = write_str(to, MK_STR("HTTP/1.1 "));
    to = mk__digits_write(to, (uint64_t)status);
    to = write_str(to, MK_STR(" "));
    if (reason.len)
        to = write_str(to, reason);
    return write_str(to, MK_STR("\r\n"));
}

/* Writes Server, and the Date of an origin. */
static MK_COLD char *write_origin_lines(char *to, const struct mk_request *req)
{
    to = write_str(to, req->http->settings->server_line);
    to = write_str(to, MK_STR("Date: "));
    return write_str(write_str(to, req->extra->date), MK_STR("\r\n"));
}

/* The block has the line of Content-Length, too, after its others; it is sent if all lines are as they were made. */
static bool is_length_in_block(const struct mk_request *req)
{
    return req->block && req->framing == MK__FRAMING_LENGTH && req->length == req->block->content_length &&
           req->block_len == req->block->length_at && req->status == 200;
}

static char *write_framing(char *to, const struct mk__conn *c, const struct mk_request *req)
{
    bool is_tunnel = req->tunnel, closes = c->close != MK__CLOSE_NEVER && !is_tunnel;
    if (is_chunked(req)) {
        to = write_str(to, MK_STR("Transfer-Encoding: chunked\r\n"));
    } else if (req->framing == MK__FRAMING_LENGTH && mk__status_has_body(req->status) && !is_length_in_block(req)) {
        to = write_str(to, MK_STR("Content-Length: "));
        to = mk__digits_write(to, req->length);
        to = write_str(to, MK_STR("\r\n"));
    }
    /* a 426 names the protocols that it wants: RFC 9110 sections 7.8 and 15.5.22 */
    if (req->status == 101 || (req->status == 426 && mk_response_get_header(req, MK_STR("Upgrade")).p))
        to = write_str(to, closes ? MK_STR("Connection: Upgrade, close\r\n") : MK_STR("Connection: Upgrade\r\n"));
    else if (closes)
        to = write_str(to, MK_STR("Connection: close\r\n"));
    else if (req->parse.minor == 0)
        to = write_str(to, MK_STR("Connection: keep-alive\r\n"));
    return write_str(to, MK_STR("\r\n"));
}

/* Writes the head to a buffer that has room for it. */
static MK_HOT void write_head(struct mk__conn *c, struct mk_request *req, struct mk__scratch *out)
{
    decide_keep_alive(c, req);
    decide_framing(c, req);
    char *head = out->data + out->len;
    char *end;
    bool has_date = mk__extra_has_date(req);
    if (req->status == 200 && !has_date) {
        end = write_str(head, mk__context_ok_lines(c->http));
    } else {
        end = write_status_line(head, req->status);
        end = has_date ? write_origin_lines(end, req) : write_str(end, mk__context_date_lines(c->http));
    }
    if (req->block)
        end = write_str(end, is_length_in_block(req) ? req->block->text : mk__request_block_lines(req));
    end = write_fields(end, req->headers, req->headers_len);
    end = write_framing(end, c, req);
    mk__request_set_head_sent(req);
    req->head_bytes = (uint32_t)(end - head);
    out->len += req->head_bytes;
    assert(out->len <= out->size);
}

/* Sends a head that is longer than the output buffer, by its own buffer. */
static MK_COLD enum mk__h1_send_result send_long_head(struct mk__conn *c, struct mk_request *req, size_t bytes_max)
{
    struct mk_account *account = c->http->account;
    enum mk__h1_send_result r = flush_output(c, MK_IO_MORE);
    if (r != MK__H1_SEND_DONE)
        return r;
    struct mk__scratch head = {.data = mk_account_alloc(account, bytes_max), .size = bytes_max};
    if (!head.data)
        return MK__H1_SEND_FAILED;
    write_head(c, req, &head);
    r = get_flush_result(mk__sock_flush(&c->sock, &head, account, 0));
    mk_account_free(account, head.data, bytes_max);
    return r;
}

static enum mk__h1_send_result put_head(struct mk__conn *c, struct mk_request *req)
{
    struct mk__scratch *out = &c->http->out;

    mk__response_run_hooks(req);
    size_t bytes_max = get_head_bytes_max(req);
    if (MK_UNLIKELY(bytes_max > out->size)) {
        if (bytes_max <= MK__RESPONSE_HEAD_BYTES_MAX)
            return send_long_head(c, req, bytes_max);
        replace_head_with_500(req);
        bytes_max = get_head_bytes_max(req);
    }
    enum mk__h1_send_result r = make_room(c, bytes_max);
    if (r == MK__H1_SEND_DONE)
        write_head(c, req, out);
    return r;
}

/* Writes the interim responses that wait. */
static MK_COLD enum mk__h1_send_result put_interims(struct mk__conn *c, struct mk_request *req)
{
    struct mk__scratch *out = &c->http->out;
    const struct mk__interim *interim;
    while ((interim = mk__interim_first(req))) {
        enum mk__h1_send_result r = make_room(c, STATUS_LINE_BYTES_MAX + interim->len + 2);
        if (r != MK__H1_SEND_DONE)
            return r;
        char *end = write_status_line(out->data + out->len, interim->status);
        end = write_str(write_str(end, mk__interim_lines(interim)), MK_STR("\r\n"));
        out->len = (size_t)(end - out->data);
        mk__interim_drop_first(req);
    }
    return MK__H1_SEND_DONE;
}

/* ── the parts ── */

static void advance_part(struct mk_request *req, struct mk__part *part, size_t n)
{
    assert(part == req->first);
    mk__part_advance(part, n);
    req->sent_bytes += n;
}

static enum mk__h1_send_result put_memory(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    struct mk__scratch *out = &c->http->out;
    while (part->left) {
        size_t want = part->left < GENERATE_BYTES_MIN ? part->left : GENERATE_BYTES_MIN;
        enum mk__h1_send_result r = make_room(c, want + CHUNK_BYTES);
        if (r != MK__H1_SEND_DONE)
            return r;
        size_t n = out->size - out->len - CHUNK_BYTES;
        if (n > part->left)
            n = part->left;
        if (is_chunked(req))
            put_chunk_line(out, n);
        put_str(out, mk_str(part->data, n));
        if (is_chunked(req))
            put_str(out, MK_STR("\r\n"));
        advance_part(req, part, n);
    }
    return MK__H1_SEND_DONE;
}

static enum mk__h1_send_result start_file_read(struct mk_request *req, size_t want, bool keep)
{
    return mk__file_read_start(req, want, keep) == 0 ? MK__H1_SEND_NEEDS_DISK : MK__H1_SEND_FAILED;
}

static enum mk__h1_send_result copy_file(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    struct mk__scratch *out = &c->http->out;
    size_t want = part->left;
    enum mk__h1_send_result r = make_room(c, want + CHUNK_BYTES);
    if (r != MK__H1_SEND_DONE)
        return r;
    size_t before = out->len;
    if (is_chunked(req))
        put_chunk_line(out, want);
    bool is_cached = part->at + want <= part->cached_until;
    ssize_t n = mk__file_read_cached(part->fd, out->data + out->len, want, part->at, is_cached);
    if (n == (ssize_t)want) {
        out->len += want;
        if (is_chunked(req))
            put_str(out, MK_STR("\r\n"));
        advance_part(req, part, want);
        return MK__H1_SEND_DONE;
    }
    out->len = before;
    return n == -EAGAIN || n > 0 ? start_file_read(req, want, true) : MK__H1_SEND_FAILED;
}

/* Checks what is not known to be in the page cache up to `end`. Returns 0 or -errno. */
static int check_cached(struct mk_request *req, struct mk__part *part, uint64_t end)
{
    struct mk__context *http = req->http;
    uint64_t from = part->cached_until > part->at ? part->cached_until : part->at;
    while (from < end) {
        /* to the end of a window, so that the next response finds all of it known */
        uint64_t part_end = part->at + part->left, window_end = mk__recent_windows_end(from);
        uint64_t to = part_end < window_end ? part_end : window_end;
        int err = mk__recent_windows_check(&http->recent_windows, part->fd, part->version, from, to,
                                           mk_loop_now_ms(http->loop));
        if (err < 0)
            return err;
        part->cached_until = from = to;
    }
    return 0;
}

/*
 * Checks that the next slice is in the page cache, so that sendfile does not wait. Returns DONE, NEEDS_DISK (a read job
 * was started) or FAILED.
 */
static enum mk__h1_send_result cache_slice(struct mk_request *req, struct mk__part *part, size_t slice)
{
    assert(slice > 0 && slice <= part->left && part->fd >= 0);
    int err = check_cached(req, part, part->at + slice);
    if (err == -EAGAIN)
        return start_file_read(req, slice, false);
    return err == 0 ? MK__H1_SEND_DONE : MK__H1_SEND_FAILED; /* the file has shrunk */
}

static bool is_encrypted(const struct mk__conn *c)
{
    return c->sock.io.transport->handshake;
}

static size_t get_slice_bytes(const struct mk__conn *c)
{
    if (is_encrypted(c))
        return SLICE_BYTES;
    return c->sock.cork == MK__SOCK_CORK_ON ? CORKED_BYTES : SENDFILE_BYTES;
}

static enum mk__h1_send_result send_file(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    enum mk__h1_send_result r = make_room(c, CHUNK_BYTES);
    if (r == MK__H1_SEND_DONE && is_chunked(req) && !part->chunk_started) {
        put_chunk_line(&c->http->out, part->left);
        part->chunk_started = true;
    }
    if (part->left >= CORK_BYTES_MIN && !is_encrypted(c))
        mk__sock_set_cork(&c->sock, true);
    if (r == MK__H1_SEND_DONE)
        r = flush_output(c, MK_IO_MORE);
    for (size_t sent = 0; r == MK__H1_SEND_DONE && part->left;) {
        size_t slice = get_slice_bytes(c) - sent;
        if (slice == 0)
            return MK__H1_SEND_YIELD;
        if (slice > part->left)
            slice = part->left;
        r = cache_slice(req, part, slice);
        if (r != MK__H1_SEND_DONE)
            return r;
        ssize_t n = mk__sock_sendfile(&c->sock, part->fd, part->at, slice);
        if (n == 0)
            return MK__H1_SEND_FAILED;
        if (n < 0)
            return n == -EAGAIN ? MK__H1_SEND_BLOCKED : MK__H1_SEND_BROKEN;
        advance_part(req, part, (size_t)n);
        sent += (size_t)n;
    }
    if (r == MK__H1_SEND_DONE)
        mk__sock_set_cork(&c->sock, false);
    if (r == MK__H1_SEND_DONE && is_chunked(req))
        put_str(&c->http->out, MK_STR("\r\n"));
    return r;
}

static MK_NOINLINE enum mk__h1_send_result put_file(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    if (req->file_read)
        return MK__H1_SEND_NEEDS_DISK;
    bool is_begun = part->chunk_started || c->sock.cork == MK__SOCK_CORK_ON;
    return part->left <= COPY_BYTES_MAX && !is_begun ? copy_file(c, req, part) : send_file(c, req, part);
}

/* Writes one piece of a generator or, without a part, of the filters; as a chunk, if the length is unknown. */
static ssize_t generate_once(struct mk_request *req, struct mk__part *part, struct mk__scratch *out)
{
    size_t prefix = is_chunked(req) ? SHORT_CHUNK_LINE_BYTES : 0, room = out->size - out->len - CHUNK_BYTES;
    char *to = out->data + out->len + prefix;
    ssize_t n = part ? part->generate(req, to, room, part->ctx) : mk__filter_read_output(req, to, room);
    assert(n <= (ssize_t)room);
    if (n > 0 && mk__request_exceeds_length(req, (uint64_t)n))
        return -EMSGSIZE;
    if (n <= 0)
        return n;
    if (is_chunked(req)) {
        const char *hex = "0123456789abcdef";
        char line[SHORT_CHUNK_LINE_BYTES] = {
            hex[n >> 12 & 15], hex[n >> 8 & 15], hex[n >> 4 & 15], hex[n & 15], '\r', '\n'};
        memcpy(to - prefix, line, sizeof(line));
        memcpy(to + n, "\r\n", 2);
        out->len += prefix + 2;
    }
    out->len += (size_t)n;
    req->sent_bytes += (size_t)n;
    return n;
}

static_assert(MK__OUT_BYTES <= 0xffff, "four digits are enough for a chunk in the output buffer");

static MK_NOINLINE enum mk__h1_send_result put_generated(struct mk__conn *c, struct mk_request *req,
                                                         struct mk__part *part)
{
    if (part && part->splice) {
        enum mk__h1_send_result r = mk__h1_splice(c, req, part);
        if (part->splice)
            return r;
    }
    for (size_t made = 0; made < SLICE_BYTES;) {
        struct mk__scratch *out = &c->http->out;
        /* flushes without MK_IO_MORE: whether more follows is not known before the generator is called */
        if (GENERATE_BYTES_MIN + CHUNK_BYTES > out->size - out->len) {
            enum mk__h1_send_result r = flush_output(c, 0);
            if (r != MK__H1_SEND_DONE)
                return r;
        }
        ssize_t n = generate_once(req, part, out);
        if (req->response_state == MK__RESPONSE_FAILED)
            return MK__H1_SEND_FAILED;
        if (n == 0)
            return MK__H1_SEND_DONE;
        if (n == -EBUSY && !part)
            return MK__H1_SEND_YIELD;
        if (n < 0)
            return n != -EAGAIN     ? MK__H1_SEND_FAILED
                   : req->file_read ? MK__H1_SEND_NEEDS_DISK
                                    : MK__H1_SEND_NEEDS_HANDLER;
        made += (size_t)n;
    }
    return MK__H1_SEND_YIELD;
}

/* Writes the output of the filters, which read the parts. */
static enum mk__h1_send_result put_filtered(struct mk__conn *c, struct mk_request *req)
{
    mk__filter_begin_turn(req);
    enum mk__h1_send_result r = put_generated(c, req, NULL);
    if (r == MK__H1_SEND_DONE)
        req->filter = NULL;
    return r;
}

static enum mk__h1_send_result put_part(struct mk__conn *c, struct mk_request *req, struct mk__part *part)
{
    if (req->bodyless)
        return MK__H1_SEND_DONE;
    if (part->kind == MK__PART_GENERATOR)
        return put_generated(c, req, part);
    if (mk__request_exceeds_length(req, part->left))
        return MK__H1_SEND_FAILED;
    return part->kind == MK__PART_MEMORY ? put_memory(c, req, part) : put_file(c, req, part);
}

/*
 * Writes the queue of parts, and what the on_writable function adds to it. Yields even if the socket never fills up: a
 * handler may write without end, also for a response without a body.
 */
static enum mk__h1_send_result put_parts(struct mk__conn *c, struct mk_request *req)
{
    for (uint64_t before = req->sent_bytes;;) {
        for (; req->first && req->response_state != MK__RESPONSE_FAILED; mk__response_drop_part(req)) {
            enum mk__h1_send_result r = put_part(c, req, req->first);
            if (r != MK__H1_SEND_DONE)
                return r;
        }
        if (!mk__request_wants_writable(req))
            return MK__H1_SEND_DONE;
        if (req->sent_bytes - before >= SLICE_BYTES)
            return MK__H1_SEND_YIELD;
        mk__response_call_writable(req);
        /*
         * Without a body no byte is sent that could be counted, and no write fails when the client has left: its FIN
         * ends a response that may have no end. All that it could still get is its head.
         */
        if (req->bodyless)
            return c->sock.input == MK__SOCK_INPUT_OPEN ? MK__H1_SEND_YIELD : MK__H1_SEND_FAILED;
    }
}

static enum mk__h1_send_result put_end(struct mk__conn *c, struct mk_request *req)
{
    assert(!req->first);
    if (req->bodyless)
        return MK__H1_SEND_DONE;
    if (mk__request_misses_length(req))
        return MK__H1_SEND_FAILED;
    if (!is_chunked(req))
        return MK__H1_SEND_DONE;
    const struct mk__trailers *t = req->trailers;
    enum mk__h1_send_result r = make_room(c, CHUNK_BYTES + (t ? mk__request_count_line_bytes(t->items, t->n) : 0));
    if (r != MK__H1_SEND_DONE)
        return r;
    struct mk__scratch *out = &c->http->out;
    put_str(out, MK_STR("0\r\n"));
    if (t)
        out->len = (size_t)(write_fields(out->data + out->len, t->items, t->n) - out->data);
    put_str(out, MK_STR("\r\n"));
    return r;
}

enum mk__h1_send_result mk__h1_send(struct mk__conn *c)
{
    struct mk_request *req = c->req;
    enum mk__h1_send_result r;
    assert(req && req->connection == c);
    if (req->output_state == MK__OUTPUT_COMPLETE)
        return MK__H1_SEND_DONE;
    bool tunnel = req->tunnel;
    if (req->output_state < MK__OUTPUT_HEAD && req->response_state != MK__RESPONSE_FAILED) {
        r = mk__interim_first(req) ? put_interims(c, req) : MK__H1_SEND_DONE;
        if (r != MK__H1_SEND_DONE)
            return r;
        if (req->response_state == MK__RESPONSE_OPEN && !req->first && !tunnel)
            return MK__H1_SEND_NEEDS_HANDLER;
        r = put_head(c, req);
        if (r != MK__H1_SEND_DONE)
            return r;
    }
    if (tunnel && req->response_state != MK__RESPONSE_FAILED)
        return MK__H1_SEND_TUNNEL;
    r = req->filter && !req->bodyless ? put_filtered(c, req) : put_parts(c, req);
    if (r != MK__H1_SEND_DONE)
        return r;
    if (req->response_state == MK__RESPONSE_FAILED)
        return MK__H1_SEND_FAILED;
    if (req->response_state == MK__RESPONSE_OPEN)
        return MK__H1_SEND_NEEDS_HANDLER;
    r = put_end(c, req);
    assert(c->sock.cork != MK__SOCK_CORK_ON);
    if (r == MK__H1_SEND_DONE)
        req->output_state = MK__OUTPUT_COMPLETE;
    return r;
}
