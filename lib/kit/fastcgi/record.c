// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes records (<monkey/kit/fastcgi.h>).
 */
#include <monkey/kit/fastcgi.h>

#include <errno.h>
#include <string.h>

enum { VERSION = 1, REQUEST_ID = 1, LENGTH_SHORT_MAX = 127 };

/* ── reading ── */

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

/* ── writing ── */

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
