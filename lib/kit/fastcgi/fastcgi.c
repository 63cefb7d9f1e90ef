// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes FastCGI (<monkey/kit/fastcgi.h>).
 */
#include <monkey/kit/fastcgi.h>

#include <errno.h>
#include <string.h>

enum { VERSION = 1, REQUEST_ID = 1, LENGTH_SHORT_MAX = 127 };

/* ── reading records ── */

static unsigned read_16(const uint8_t *from)
{
    return (unsigned)from[0] << 8 | from[1];
}

static bool is_from_application(uint8_t type)
{
    return type == MK_FASTCGI_END_REQUEST || type == MK_FASTCGI_STDOUT || type == MK_FASTCGI_STDERR;
}

/* Reads a complete header. Returns 0 or -EINVAL. */
static int begin_record(struct mk_fastcgi_reader *r)
{
    const uint8_t *h = r->header;
    r->header_len = 0;
    r->fault = h[0] != VERSION                ? "it sends a record of another version than 1, or no FastCGI at all"
               : !is_from_application(h[1])   ? "it sends a record of a type that no application sends"
               : read_16(h + 2) != REQUEST_ID ? "it sends a record of another request"
                                              : NULL;
    if (r->fault)
        return -EINVAL;
    r->type = h[1];
    r->content_left = (uint16_t)read_16(h + 4);
    r->padding_left = h[6];
    return 0;
}

static ssize_t read_header(struct mk_fastcgi_reader *r, struct mk_str in, struct mk_fastcgi_part *ret)
{
    size_t room = (size_t)MK_FASTCGI_HEADER_BYTES - r->header_len, n = in.len < room ? in.len : room;
    memcpy(r->header + r->header_len, in.p, n);
    r->header_len = (uint8_t)(r->header_len + n);
    if (r->header_len < MK_FASTCGI_HEADER_BYTES)
        return (ssize_t)n;
    if (begin_record(r) < 0)
        return -EINVAL;
    if (!r->content_left)
        *ret = (struct mk_fastcgi_part){.type = r->type, .is_last = true, .bytes = {in.p + n, 0}};
    return (ssize_t)n;
}

static ssize_t read_content(struct mk_fastcgi_reader *r, struct mk_str in, struct mk_fastcgi_part *ret)
{
    size_t n = in.len < r->content_left ? in.len : r->content_left;
    r->content_left = (uint16_t)(r->content_left - n);
    *ret = (struct mk_fastcgi_part){.type = r->type, .is_last = !r->content_left, .bytes = {in.p, n}};
    return (ssize_t)n;
}

ssize_t mk_fastcgi_read(struct mk_fastcgi_reader *r, struct mk_str in, struct mk_fastcgi_part *ret)
{
    *ret = (struct mk_fastcgi_part){0};
    if (r->content_left)
        return read_content(r, in, ret);
    if (!r->padding_left)
        return read_header(r, in, ret);
    size_t n = in.len < r->padding_left ? in.len : r->padding_left;
    r->padding_left = (uint8_t)(r->padding_left - n);
    return (ssize_t)n;
}

/* ── writing records ── */

void mk_fastcgi_write_header(char to[MK_FASTCGI_HEADER_BYTES], enum mk_fastcgi_type type, size_t content_len)
{
    const uint8_t bytes[MK_FASTCGI_HEADER_BYTES] = {
        VERSION, (uint8_t)type, 0, REQUEST_ID, (uint8_t)(content_len >> 8), (uint8_t)content_len};
    memcpy(to, bytes, sizeof(bytes));
}

static size_t write_length(char *to, size_t len)
{
    if (len <= LENGTH_SHORT_MAX) {
        to[0] = (char)len;
        return 1;
    }
    const uint8_t bytes[] = {(uint8_t)(len >> 24 | 0x80), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    memcpy(to, bytes, sizeof(bytes));
    return sizeof(bytes);
}

size_t mk_fastcgi_write_lengths(char to[MK_FASTCGI_NAME_LENGTHS_MAX], size_t name_len, size_t value_len)
{
    size_t n = write_length(to, name_len);
    return n + write_length(to + n, value_len);
}

/* ── requests for responders ── */

void mk_fastcgi_add_header(struct mk_buf *out, enum mk_fastcgi_type type, size_t content_len)
{
    char header[MK_FASTCGI_HEADER_BYTES];
    mk_fastcgi_write_header(header, type, content_len);
    mk_buf_add(out, header, sizeof(header));
}

size_t mk_fastcgi_begin(struct mk_buf *out, bool keep_conn)
{
    enum { ROLE_RESPONDER = 1, KEEP_CONN = 1 };
    const char begin[] = {0, ROLE_RESPONDER, keep_conn ? KEEP_CONN : 0, 0, 0, 0, 0, 0};
    mk_fastcgi_add_header(out, MK_FASTCGI_BEGIN_REQUEST, sizeof(begin));
    mk_buf_add(out, begin, sizeof(begin));
    size_t params = out->len;
    mk_fastcgi_add_header(out, MK_FASTCGI_PARAMS, 0); /* its length is not known yet */
    return params;
}

int mk_fastcgi_add_pair(struct mk_str name, struct mk_str value, void *out)
{
    char lengths[MK_FASTCGI_NAME_LENGTHS_MAX];
    struct mk_buf *to = out;
    mk_buf_add(to, lengths, mk_fastcgi_write_lengths(lengths, name.len, value.len));
    mk_buf_adds(to, name);
    mk_buf_adds(to, value);
    return 0;
}

int mk_fastcgi_end_params(struct mk_buf *out, size_t params)
{
    size_t len = out->len - params - MK_FASTCGI_HEADER_BYTES;
    if (out->err || len > UINT16_MAX)
        return -ENOBUFS;
    mk_fastcgi_write_header(out->data + params, MK_FASTCGI_PARAMS, len);
    mk_fastcgi_add_header(out, MK_FASTCGI_PARAMS, 0);
    return out->err ? -ENOBUFS : 0;
}

/* ── the output of applications ── */

static void add_end(struct mk_fastcgi_decoder *d, struct mk_str bytes)
{
    size_t room = sizeof(d->end) - d->end_len, n = bytes.len < room ? bytes.len : room;
    memcpy(d->end + d->end_len, bytes.p, n);
    d->end_len = (uint8_t)(d->end_len + n);
}

/* The response has ended. Returns 1, -EBUSY, -ENOPROTOOPT or -EINVAL. */
static int read_end(struct mk_fastcgi_decoder *d)
{
    static const int results[] = {[MK_FASTCGI_COMPLETE] = 1,
                                  [MK_FASTCGI_CANT_MPX_CONN] = -EBUSY,
                                  [MK_FASTCGI_OVERLOADED] = -EBUSY,
                                  [MK_FASTCGI_UNKNOWN_ROLE] = -ENOPROTOOPT};
    unsigned status = d->end[4];
    d->fault = !mk_fastcgi_has_end(d)            ? "its FCGI_END_REQUEST is too short"
               : status >= MK_COUNT_OF(results)  ? "its FCGI_END_REQUEST has an unknown status"
               : results[status] == -ENOPROTOOPT ? "it does not serve requests of responders (FCGI_UNKNOWN_ROLE)"
                                                 : NULL;
    return !mk_fastcgi_has_end(d) || status >= MK_COUNT_OF(results) ? -EINVAL : results[status];
}

int mk_fastcgi_decode(struct mk_fastcgi_decoder *d, char *bytes, size_t *len, size_t *ret_left,
                      mk_fastcgi_stderr_fn on_stderr, void *ctx)
{
    struct mk_str in = mk_str(bytes, *len);
    struct mk_fastcgi_part part;
    int result = 0;
    *len = 0;
    while (in.len && result == 0) {
        ssize_t n = mk_fastcgi_read(&d->reader, in, &part);
        if (n < 0) {
            d->fault = d->reader.fault;
            return -EINVAL;
        }
        in = mk_str(in.p + n, in.len - (size_t)n);
        if (part.type == MK_FASTCGI_STDOUT && part.bytes.len) {
            memmove(bytes + *len, part.bytes.p, part.bytes.len);
            *len += part.bytes.len;
        }
        if (part.type == MK_FASTCGI_STDERR && part.bytes.len && on_stderr)
            on_stderr(part.bytes, ctx);
        if (part.type == MK_FASTCGI_END_REQUEST && part.bytes.len)
            add_end(d, part.bytes);
        if (part.type == MK_FASTCGI_END_REQUEST && part.is_last)
            result = read_end(d);
    }
    *ret_left = in.len;
    return result;
}

/* ── for mk_http_client ── */

static int unwrap_records(void *state, char *bytes, size_t *len)
{
    struct mk_fastcgi_response *r = state;
    size_t left;
    int result = mk_fastcgi_decode(&r->decoder, bytes, len, &left, NULL, NULL);
    return result == -EBUSY ? -EUSERS : result;
}

static int parse_head(void *state, struct mk_response_parser *p, struct mk_field *fields, struct mk_str head)
{
    struct mk_fastcgi_response *r = state;
    return mk_cgi_parse_response(&r->head, p, fields, head);
}

const struct mk_http_client_codec mk_fastcgi_codec = {.unwrap = unwrap_records, .parse_head = parse_head};
