// SPDX-License-Identifier: Apache-2.0
/*
 * Writes requests for responders (<monkey/kit/fastcgi.h>).
 */
#include <monkey/kit/fastcgi.h>

#include <errno.h>

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
