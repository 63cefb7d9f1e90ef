// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces headers of a request, for the plugins that are called later. The new lines are written after the head, so
 * that method and target keep their places, and parsed as those of a head are: values are valid, and each line has its
 * ID.
 *
 *     base ─►│ the head that was received │ new lines │
 */
#include "http/request.h"

#include "http/message/parse.h"

#include <monkey/base/buf.h>

#include <assert.h>
#include <errno.h>

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

static char fold_char(char c)
{
    return c == '_' ? '-' : mk_lower(c);
}

bool mk_header_same_name(struct mk_str a, struct mk_str b)
{
    size_t i = 0;
    while (i < a.len && a.len == b.len && fold_char(a.p[i]) == fold_char(b.p[i]))
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

/* Returns the bytes of the lines at most; SIZE_MAX if a name cannot be set. */
static size_t count_bytes(const struct mk_header_field *headers, unsigned n)
{
    size_t bytes = 0;
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

/* Writes a line after those in `out`, and reads it. Returns 0 or -EINVAL (it is not one line). */
static int add_line(struct mk_buf *out, const char *base, struct mk_str name, struct mk_str value, struct mk_field *ret)
{
    const char *line = out->data + out->len;
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, value);
    mk_buf_adds(out, MK_STR("\r\n"));
    const char *end = out->data + out->len;
    return mk__parse_field(ret, base, line, end) == end ? 0 : -EINVAL;
}

/* Adds the new lines. Returns their number or -EINVAL. */
static int add_lines(struct mk_buf *out, const char *base, const struct mk_header_field *headers, unsigned n,
                     struct mk_field *to, uint32_t *seen)
{
    int added = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!headers[i].value.p)
            continue;
        if (add_line(out, base, headers[i].name, headers[i].value, &to[added]) < 0)
            return -EINVAL;
        *seen |= 1u << to[added++].id;
    }
    return added;
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
    unsigned kept = copy_fields(req, fields, headers, n, &seen);
    int added = add_lines(&lines, base, headers, n, fields + kept, &seen);
    if (added < 0)
        return added;
    assert(!lines.err); /* count_bytes() has counted them */
    req->base = base;
    req->fields = fields;
    req->parse.n_fields = (uint16_t)(kept + (unsigned)added);
    req->parse.seen = seen;
    req->appended_bytes = (uint16_t)(req->appended_bytes + lines.len);
    req->joined = NULL; /* it counts the lines that were there before */
    req->head_copied = true;
    return 0;
}
