// SPDX-License-Identifier: Apache-2.0
/*
 * Writes server-sent events as text (sse.h).
 */
#include "request/sse.h"

#include <errno.h>

static bool has_line_end(struct mk_str s)
{
    return s.len && (memchr(s.p, '\n', s.len) || memchr(s.p, '\r', s.len));
}

/* Cuts the next line off `rest`; the last one may have no end. */
static struct mk_str split_line(struct mk_str *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->p[n] != '\r' && rest->p[n] != '\n')
        n++;
    struct mk_str line = mk_str(rest->p, n);
    bool is_crlf = n + 1 < rest->len && rest->p[n] == '\r' && rest->p[n + 1] == '\n';
    size_t used = n == rest->len ? n : n + 1 + is_crlf;
    *rest = mk_str_after(*rest, used);
    return line;
}

static void add_field(struct mk_buf *out, struct mk_str name, struct mk_str value)
{
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, value);
    mk_buf_addc(out, '\n');
}

int sse_format(struct mk_buf *out, struct mk_str type, struct mk_str id, struct mk_str data)
{
    if (has_line_end(type) || has_line_end(id))
        return -EINVAL;
    if (type.p)
        add_field(out, MK_STR("event"), type);
    if (id.p)
        add_field(out, MK_STR("id"), id);
    bool ends_line; /* a text that ends with a line end has an empty last line */
    do {
        struct mk_str line = split_line(&data);
        ends_line = line.p + line.len < data.p;
        add_field(out, MK_STR("data"), line);
    } while (data.len || ends_line);
    mk_buf_addc(out, '\n');
    return out->err;
}
