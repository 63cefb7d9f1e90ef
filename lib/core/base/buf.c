// SPDX-License-Identifier: Apache-2.0
/*
 * The buffer of <monkey/base/buf.h>. Its size doubles up to its maximum, and never shrinks.
 */
#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { FIRST_BYTES = 64 };

void mk_buf_release(struct mk_buf *b)
{
    assert(b->len <= b->size);
    if (!b->fixed) {
        mk_account_free(NULL, b->data, b->size);
        b->data = NULL;
        b->size = 0;
    }
    b->len = 0;
    b->err = 0;
}

int mk_buf_grow(struct mk_buf *b, size_t n)
{
    if (b->err)
        return b->err;
    if (n > b->max - b->len)
        return b->err = -ENOBUFS;
    assert(!b->fixed);
    size_t need = b->len + n, size = b->size ? b->size : FIRST_BYTES;
    while (size < need)
        size = size > b->max / 2 ? b->max : size * 2;
    if (size > b->max)
        size = b->max;
    char *data = mk_account_alloc(NULL, size);
    if (!data)
        return b->err = -ENOMEM;
    if (b->len)
        memcpy(data, b->data, b->len);
    mk_account_free(NULL, b->data, b->size);
    b->data = data;
    b->size = size;
    return 0;
}

void mk_buf_add(struct mk_buf *b, const void *data, size_t len)
{
    assert(data || !len);
    if (len == 0 || mk_buf_reserve(b, len) < 0)
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void mk_buf_vaddf(struct mk_buf *b, const char *format, va_list args)
{
    assert(b->len <= b->size);
    va_list again;
    va_copy(again, args);
    size_t room = b->size - b->len;
    int n = vsnprintf(room ? b->data + b->len : NULL, room, format, args);
    /* vsnprintf() needs one more byte, for its NUL */
    if (n > 0 && (size_t)n >= room && mk_buf_reserve(b, (size_t)n + 1) == 0)
        vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
    va_end(again);
    if (n < 0 && !b->err)
        b->err = -EINVAL;
    if (n > 0 && !b->err)
        b->len += (size_t)n;
}

void mk_buf_addf(struct mk_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mk_buf_vaddf(b, format, args);
    va_end(args);
}

void mk_buf_drop(struct mk_buf *b, size_t n)
{
    assert(n <= b->len);
    b->len -= n;
    if (b->len)
        memmove(b->data, b->data + n, b->len);
}

const char *mk_buf_cstr(struct mk_buf *b)
{
    if (mk_buf_reserve(b, 1) < 0)
        return "";
    b->data[b->len] = '\0';
    return b->data;
}
