// SPDX-License-Identifier: Apache-2.0
/*
 * Builds the texts around several ranges before the first byte is sent, so that the length of the body is known. The
 * caller sends the ranges themselves.
 */
#include "http/message/multipart.h"

#include <monkey/base/buf.h>
#include <monkey/base/random.h>

#include <assert.h>
#include <errno.h>

/* The most that precedes a part, without type and boundary: fixed text and three numbers. */
enum { HEAD_BYTES = 112 };

int mk__multipart_make_boundary(char *ret_boundary)
{
    const char *digits = "abcdefghijklmnopqrstuvwxyz234567";
    int err = mk_random(ret_boundary, MK__BOUNDARY_BYTES);
    for (unsigned i = 0; err == 0 && i < MK__BOUNDARY_BYTES; i++)
        ret_boundary[i] = digits[ret_boundary[i] & 31];
    return err;
}

/*
 * A line end belongs to the delimiter that follows it (RFC 2046 section 5.1.1). The first delimiter needs none, but
 * other servers send one, and clients such as zsync skip a line there.
 */
static void add_head(struct mk_buf *b, struct mk_str boundary, struct mk_str type, const struct mk__range *r,
                     uint64_t size)
{
    mk_buf_addf(b, "\r\n--%.*s\r\nContent-Type: %.*s\r\n", MK_STR_ARG(boundary), MK_STR_ARG(type));
    mk_buf_addf(b, "Content-Range: bytes %llu-%llu/%llu\r\n\r\n", (unsigned long long)r->first,
                (unsigned long long)r->last, (unsigned long long)size);
}

/* Returns what was appended after `*from`. The buffer is fixed, so that its bytes do not move. */
static struct mk_str take_appended(const struct mk_buf *b, size_t *from)
{
    assert(*from <= b->len);
    struct mk_str piece = mk_str(b->data + *from, b->len - *from);
    *from = b->len;
    return piece;
}

int mk__multipart_build(struct mk__multipart *m, struct mk_arena *arena, struct mk_str boundary,
                        const struct mk__range *ranges, unsigned n, struct mk_str type, uint64_t size)
{
    struct mk_buf b;
    size_t from = 0, max = (n + 2) * (HEAD_BYTES + boundary.len + type.len);
    char *storage = mk_arena_alloc(arena, max);
    assert(n > 0 && n <= MK__MULTIPART_MAX);
    if (!storage)
        return -ENOMEM;
    mk_buf_init_fixed(&b, storage, max);
    mk_buf_addf(&b, "multipart/byteranges; boundary=%.*s", MK_STR_ARG(boundary));
    m->type = take_appended(&b, &from);
    m->bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        assert(ranges[i].first <= ranges[i].last && ranges[i].last < size);
        add_head(&b, boundary, type, &ranges[i], size);
        m->heads[i] = take_appended(&b, &from);
        m->bytes += m->heads[i].len + ranges[i].last - ranges[i].first + 1;
    }
    mk_buf_addf(&b, "\r\n--%.*s--\r\n", MK_STR_ARG(boundary));
    m->heads[n] = take_appended(&b, &from);
    m->bytes += m->heads[n].len;
    return b.err;
}
