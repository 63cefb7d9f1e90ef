// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces headers of a request, for the plugins that are called later. The new lines are written behind the head, so
 * that method and target keep their places, and parsed as all heads are: values are valid, and each line has its ID.
 *
 *     base ─►│ the head that was received │ GET / HTTP/1.0 CRLF, new lines, CRLF │
 */
#include "http/request.h"

#include "http/message/parse.h"

#include <monkey/buf.h>

#include <errno.h>

static const struct mk_str first_line = MK_STR_INIT("GET / HTTP/1.0\r\n");

/* What decides where the request ends, where it goes to, and what becomes of its connection. */
static const struct mk_str reserved[] = {
    MK_STR_INIT("te"),
    MK_STR_INIT("host"),
    MK_STR_INIT("expect"),
    MK_STR_INIT("trailer"),
    MK_STR_INIT("upgrade"),
    MK_STR_INIT("connection"),
    MK_STR_INIT("keep-alive"),
    MK_STR_INIT("content-length"),
    MK_STR_INIT("http2-settings"),
    MK_STR_INIT("proxy-connection"),
    MK_STR_INIT("transfer-encoding"),
};

static char fold(char c)
{
    return c == '_' ? '-' : mk_lower(c);
}

bool mk_header_same_name(struct mk_str a, struct mk_str b)
{
    size_t i = 0;
    while (i < a.len && a.len == b.len && fold(a.p[i]) == fold(b.p[i]))
        i++;
    return a.len == b.len && i == a.len;
}

bool mk_request_header_reserved(struct mk_str name)
{
    size_t i = 0;
    while (i < MK_COUNT_OF(reserved) && !mk_header_same_name(reserved[i], name))
        i++;
    return i < MK_COUNT_OF(reserved);
}

static bool is_replaced(struct mk_str name, const struct mk_header_field *headers, unsigned n)
{
    unsigned i = 0;
    while (i < n && !mk_header_same_name(headers[i].name, name))
        i++;
    return i < n;
}

/* Tells whether a line is removed or added. */
static bool has_changes(const struct mk_request *req, const struct mk_header_field *headers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (headers[i].value.p)
            return true;
    for (unsigned i = 0; i < req->parse.n_fields; i++)
        if (is_replaced(mk_span_str(req->base, req->fields[i].name), headers, n))
            return true;
    return false;
}

/* Writes the lines that are added, as a head. Returns their number. */
static unsigned write_lines(struct mk_buf *out, const struct mk_header_field *headers, unsigned n)
{
    unsigned added = 0;
    mk_buf_adds(out, first_line);
    for (unsigned i = 0; i < n; i++) {
        if (!headers[i].value.p)
            continue;
        mk_buf_adds(out, headers[i].name);
        mk_buf_adds(out, MK_STR(": "));
        mk_buf_adds(out, headers[i].value);
        mk_buf_adds(out, MK_STR("\r\n"));
        added++;
    }
    mk_buf_adds(out, MK_STR("\r\n"));
    return added;
}

/* Returns the bytes of the lines at most; SIZE_MAX if a name cannot be set. */
static size_t count_bytes(const struct mk_header_field *headers, unsigned n)
{
    size_t bytes = first_line.len + 2;
    for (unsigned i = 0; i < n; i++) {
        if (mk_request_header_reserved(headers[i].name) || !mk__parse_is_token(headers[i].name))
            return SIZE_MAX;
        bytes += headers[i].name.len + headers[i].value.len + 4;
    }
    return bytes;
}

/* Copies the lines that stay. Returns their number. */
static unsigned copy_fields(const struct mk_request *req, struct mk_field *to, const struct mk_header_field *headers,
                            unsigned n, uint32_t *seen)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < req->parse.n_fields; i++) {
        const struct mk_field *field = &req->fields[i];
        if (is_replaced(mk_span_str(req->base, field->name), headers, n))
            continue;
        to[kept++] = *field;
        *seen |= 1u << field->id;
    }
    return kept;
}

/* Reads the lines behind the head. Returns 0, or -EINVAL (they are not these lines). */
static int read_added(struct mk_field *to, unsigned added, struct mk_str lines, uint16_t at, uint32_t *seen)
{
    struct mk_head_parser parser = {0};
    const struct mk__parse_limits limits = {.line_bytes_max = (uint32_t)first_line.len,
                                            .head_bytes_max = UINT16_MAX,
                                            .fields_max = added};
    if (mk__parse_head(&parser, to, &limits, lines) != 0 || parser.n_fields != added || parser.head_len != lines.len)
        return -EINVAL;
    for (unsigned i = 0; i < added; i++) {
        to[i].name.at = (uint16_t)(to[i].name.at + at);
        to[i].value.at = (uint16_t)(to[i].value.at + at);
    }
    *seen |= parser.seen;
    return 0;
}

int mk_request_replace_headers(struct mk_request *req, const struct mk_header_field *headers, unsigned n)
{
    size_t bytes = count_bytes(headers, n), head = req->parse.head_len + req->appended_bytes;
    struct mk_buf lines;
    uint32_t seen = 0;
    if (bytes == SIZE_MAX)
        return -EINVAL;
    if (!has_changes(req, headers, n))
        return 0;
    if (head + bytes > UINT16_MAX)
        return -ENOBUFS;
    mk_request_client(req); /* is found in the headers once, and does not change */
    struct mk_field *fields = mk_arena_alloc(&req->arena, (req->parse.n_fields + n + 1) * sizeof(*fields));
    char *base = fields ? mk_arena_alloc(&req->arena, head + bytes) : NULL;
    if (!base)
        return -ENOMEM;
    memcpy(base, req->base, head);
    mk_buf_init_fixed(&lines, base + head, bytes);
    unsigned kept = copy_fields(req, fields, headers, n, &seen), added = write_lines(&lines, headers, n);
    int err = lines.err ? lines.err : read_added(fields + kept, added, mk_buf_str(&lines), (uint16_t)head, &seen);
    if (err < 0)
        return err;
    req->base = base;
    req->fields = fields;
    req->parse.n_fields = (uint16_t)(kept + added);
    req->parse.seen = seen;
    req->appended_bytes = (uint16_t)(req->appended_bytes + lines.len);
    req->joined = NULL; /* it counts the lines that were there before */
    req->head_copied = true;
    return 0;
}
