// SPDX-License-Identifier: Apache-2.0
/*
 * Sends responses (http/h2/response.h). Framing is decided as in h1/send.c, but the last frame ends a body.
 */
#include "http/h2/response.h"

#include "http/block.h"
#include "http/request_extra.h"
#include "http/h2/request_head.h"
#include "http/h2/tunnel.h"
#include "http/message/status.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

/* ── the head ── */

static void decide_framing(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    /* a 2xx to an extended CONNECT without a tunnel is an error: the client would take what follows for tunnel data */
    if (s->extended_connect && !req->tunnel && req->status < 300)
        mk__response_reset_to_status(req, 501);
    if (req->tunnel) {
        req->status = 200; /* HTTP/2 has no status 101: RFC 8441 section 4 */
        s->has_body = true;
        return;
    }
    mk__response_decide_body(req);
    bool empty = req->framing == MK__FRAMING_LENGTH && req->length == 0 && !req->filter && !req->trailers;
    s->has_body = req->response_state == MK__RESPONSE_OPEN || !(req->bodyless || empty);
    s->parts = (struct mk__parts_reader){.req = req};
}

void mk__h2_response_begin(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    assert(req->output_state < MK__OUTPUT_HEAD);
    mk__response_run_hooks(req);
    decide_framing(s);
    if (req->close_wanted) {
        s->h2->close_requested = true;
        mk__h2_control_shutdown_notice(s->h2);
    }
    mk__request_set_head_sent(req);
    mk__h2_output_add_head(s);
}

/* ── the body ── */

/* Fills `to` from the last filter, or without filters from the queue of parts. Results as mk__parts_read(). */
static ssize_t read_body_bytes(struct mk__h2_stream *s, char *to, size_t size)
{
    if (s->req->filter)
        return mk__filter_read_output(s->req, to, size);
    return mk__parts_read(&s->parts, to, size);
}

/* Returns whether the whole body was read. Generators and filters report their end only by returning 0. */
static bool is_body_complete(const struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    if (req->response_state == MK__RESPONSE_OPEN || req->filter)
        return false;
    while (req->first && req->first->kind != MK__PART_GENERATOR && req->first->left == 0)
        mk__response_drop_part(req);
    return !req->first;
}

/* Renews the filters' limit of bytes per turn. */
static void renew_filters(struct mk__h2_stream *s)
{
    uint64_t turn = s->req->http->loop->turns;
    if (s->req->filter && s->filter_turn != turn)
        mk__filter_begin_turn(s->req);
    s->filter_turn = turn;
}

/*
 * Drops the queue of a response without a body, and calls the on_writable function once per turn: the handler may write
 * without end. Results as mk__h2_response_read().
 */
static ssize_t read_bodyless(struct mk_request *req, bool *ret_end)
{
    mk__response_drop_parts(req);
    if (mk__request_wants_writable(req)) {
        mk__response_call_writable(req);
        return -EBUSY;
    }
    *ret_end = req->response_state != MK__RESPONSE_OPEN;
    return 0;
}

/* Counts bytes that are sent. Returns their number or -EMSGSIZE: the body is longer or shorter than was announced. */
static ssize_t count_sent(struct mk_request *req, size_t bytes, bool is_end)
{
    if (mk__request_exceeds_length(req, bytes))
        return -EMSGSIZE;
    req->sent_bytes += bytes;
    return is_end && mk__request_misses_length(req) ? -EMSGSIZE : (ssize_t)bytes;
}

ssize_t mk__h2_response_read(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end)
{
    struct mk_request *req = s->req;
    size_t len = 0;
    ssize_t n = 1;
    assert(req->output_state == MK__OUTPUT_HEAD && s->has_body);
    *ret_end = false;
    if (req->response_state == MK__RESPONSE_FAILED)
        return -EPIPE;
    if (req->tunnel)
        return mk__h2_tunnel_send(s, to, size, ret_end);
    if (req->bodyless)
        return read_bodyless(req, ret_end);
    renew_filters(s);
    while (len < size && (n = read_body_bytes(s, to + len, size - len)) > 0) {
        len += (size_t)n;
        if (is_body_complete(s)) {
            n = 0;
            break;
        }
    }
    if (n < 0 && n != -EAGAIN && n != -EBUSY)
        return n;
    *ret_end = n == 0;
    ssize_t counted = count_sent(req, len, *ret_end);
    return counted || n != -EBUSY ? counted : n;
}

uint64_t mk__h2_response_file_bytes(const struct mk__h2_stream *s)
{
    const struct mk_request *req = s->req;
    bool is_file = req->response_state != MK__RESPONSE_FAILED && !req->tunnel && !req->bodyless && !req->filter &&
                   req->first && req->first->kind == MK__PART_FILE;
    return is_file ? req->first->left : 0;
}

size_t mk__h2_response_peek(const struct mk__h2_stream *s, const struct iovec *to, int pieces)
{
    assert(mk__h2_response_file_bytes(s));
    return mk__parts_peek(&s->parts, to, pieces);
}

ssize_t mk__h2_response_skip(struct mk__h2_stream *s, size_t bytes, bool *ret_end)
{
    assert(bytes <= mk__h2_response_file_bytes(s));
    mk__parts_skip(&s->parts, bytes);
    *ret_end = is_body_complete(s);
    return count_sent(s->req, bytes, *ret_end);
}

/* ── the fields ── */

/* Adds a field by the index of its name; 0: by the name. */
static inline void add_item(struct mk__h2_headers *f, unsigned name_index, struct mk_str name, struct mk_str value)
{
    if (f->n == MK__H2_HEADERS_MAX)
        return;
    struct mk__hpack_header *item = &f->items[f->n++];
    item->name_index = name_index;
    item->name = name;
    item->value = value;
    f->bytes += name.len + value.len;
}

static inline void add_known(struct mk__h2_headers *f, unsigned name_index, struct mk_str value)
{
    add_item(f, name_index, MK_STR_NONE, value);
}

/* Adds headers, except those of HTTP/1 connections, and TE, which only requests may have (RFC 9113 section 8.2.2). */
static void add_headers(struct mk__h2_headers *f, const struct mk_header_field *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!mk__h2_request_head_is_of_connection(items[i].name) && !mk_str_ieq(items[i].name, MK_STR("te")))
            add_item(f, 0, items[i].name, items[i].value);
}

bool mk__h2_response_trailers(const struct mk__h2_stream *s, struct mk__h2_headers *f)
{
    const struct mk__trailers *t = s->req->trailers;
    f->n = 0;
    f->bytes = 0;
    if (t && !s->req->bodyless)
        add_headers(f, t->items, t->n);
    return f->n;
}

/* Adds Server, of "Server: Monkey\r\n", and Date. */
static void add_server_headers(struct mk__h2_headers *f, const struct mk_request *req)
{
    const struct mk_str line = req->http->settings->server_line;
    const size_t name_len = strlen("Server: ");
    if (line.len)
        add_known(f, MK__HPACK_SERVER, mk_str(line.p + name_len, line.len - name_len - strlen("\r\n")));
    add_known(f, MK__HPACK_DATE, mk__extra_has_date(req) ? req->extra->date : mk__context_date(req->http));
}

/* Adds the lines of the block that are sent. */
static void add_block_lines(struct mk__h2_headers *f, const struct mk_request *req)
{
    static const uint8_t names[MK_BLOCK_LINES] = {
        [MK_BLOCK_LAST_MODIFIED] = MK__HPACK_LAST_MODIFIED, [MK_BLOCK_ETAG] = MK__HPACK_ETAG,
        [MK_BLOCK_CONTENT_TYPE] = MK__HPACK_CONTENT_TYPE,   [MK_BLOCK_CONTENT_ENCODING] = MK__HPACK_CONTENT_ENCODING,
        [MK_BLOCK_ACCEPT_RANGES] = MK__HPACK_ACCEPT_RANGES,
    };
    const struct mk_response_block *block = req->block;
    uint32_t end = 0;
    for (unsigned i = 0; block && i < MK_BLOCK_LINES; i++) {
        struct mk_str value = mk__block_take_value(block, i, &end);
        if (value.len && end <= req->block_len)
            add_known(f, names[i], value);
    }
}

static void add_status(struct mk__h2_headers *f, unsigned status)
{
    assert(status >= 100 && status <= 999);
    f->status[0] = (char)('0' + status / 100);
    f->status[1] = (char)('0' + status / 10 % 10);
    f->status[2] = (char)('0' + status % 10);
    add_known(f, MK__HPACK_STATUS, mk_str(f->status, sizeof(f->status)));
}

void mk__h2_response_interim(const struct mk__interim *interim, struct mk__h2_headers *f)
{
    struct mk_str lines = mk__interim_lines(interim);
    struct mk_header_field header;
    f->n = 0;
    f->bytes = 0;
    add_status(f, interim->status);
    while (mk__block_next(&lines, &header.name, &header.value))
        add_headers(f, &header, 1);
}

void mk__h2_response_headers(const struct mk__h2_stream *s, struct mk__h2_headers *f)
{
    struct mk_request *req = s->req;
    f->n = 0;
    f->bytes = 0;
    add_status(f, req->status);
    add_server_headers(f, req);
    add_headers(f, req->headers, req->headers_len);
    add_block_lines(f, req);
    if (req->framing == MK__FRAMING_LENGTH && mk__status_has_body(req->status) && !req->tunnel)
        add_known(f, MK__HPACK_CONTENT_LENGTH,
                  mk_str(f->length, (size_t)(mk__digits_write(f->length, req->length) - f->length)));
}
