// SPDX-License-Identifier: Apache-2.0
/*
 * A buffer that grows up to a maximum, which is set when it is initialized.
 *
 *     data ──►│ bytes in use │ room │
 *             0             len    size ≤ max
 *
 * The first error is sticky: -ENOMEM, -ENOBUFS (beyond the maximum) or -EINVAL (a bad format). Later appends do
 * nothing, so that many appends need one check of `err`. A buffer belongs to one thread at a time.
 */
#ifndef MONKEY_BUF_H
#define MONKEY_BUF_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../status.h"
#include "str.h"

MK_C_BEGIN

struct mk_buf {
    char *data;
    size_t len, size, max;
    int err;    /* 0, or the first -errno */
    bool fixed; /* the storage is the caller's and never grows */
};

/* Initializes an empty buffer on the heap that may grow to `bytes_max` bytes. Allocates nothing yet. */
static inline void mk_buf_init(struct mk_buf *b, size_t bytes_max)
{
    memset(b, 0, sizeof(*b));
    b->max = bytes_max;
}

/*
 * Initializes an empty buffer in the caller's storage; it never allocates. mk_buf_addf() needs one byte more than the
 * text, for a NUL.
 */
static inline void mk_buf_init_fixed(struct mk_buf *b, char *storage, size_t size)
{
    assert(storage || !size);
    mk_buf_init(b, size);
    b->data = storage;
    b->size = size;
    b->fixed = true;
}

/*
 * Declares the empty buffer `name`, with `bytes` bytes on the stack, as mk_buf_init_fixed(). MK_UNINITIALIZED before it
 * is for its bytes.
 */
#define MK_BUF_ON_STACK(name, bytes) \
    char name##_storage[bytes]; \
    struct mk_buf name; \
    mk_buf_init_fixed(&name, name##_storage, sizeof(name##_storage))

/* Returns the bytes in use; valid until the next append. */
static inline struct mk_str mk_buf_str(const struct mk_buf *b)
{
    struct mk_str s = {b->data, b->len};
    return s;
}

/* Frees the bytes of a heap buffer and clears the error; the buffer can be used again. */
MK_API void mk_buf_release(struct mk_buf *b);

/* Grows a buffer that has no room for `n` more bytes, for mk_buf_reserve(). Returns 0 or the sticky error. */
MK_API int mk_buf_grow(struct mk_buf *b, size_t n);

/* Makes room for `n` more bytes. Returns 0 or the sticky error. */
static inline int mk_buf_reserve(struct mk_buf *b, size_t n)
{
    assert(b->len <= b->size && b->size <= b->max);
    return !b->err && n <= b->size - b->len ? 0 : mk_buf_grow(b, n);
}

/* Append bytes, or formatted text as printf() does. Errors are sticky. */
MK_API void mk_buf_add(struct mk_buf *b, const void *data, size_t len);
MK_API void mk_buf_addf(struct mk_buf *b, const char *format, ...) MK_PRINTF(2, 3);
MK_API void mk_buf_vaddf(struct mk_buf *b, const char *format, va_list args) MK_PRINTF(2, 0);

/* Appends a string. Errors are sticky. */
static inline void mk_buf_adds(struct mk_buf *b, struct mk_str s)
{
    mk_buf_add(b, s.p, s.len);
}

/* Appends one byte. Errors are sticky. */
static inline void mk_buf_addc(struct mk_buf *b, char c)
{
    mk_buf_add(b, &c, 1);
}

/* Drops the first `n` bytes (n <= len). */
MK_API void mk_buf_drop(struct mk_buf *b, size_t n);

/* Puts a NUL, which does not count, after the bytes. Returns the bytes, or "" after an error. */
MK_API const char *mk_buf_cstr(struct mk_buf *b);

MK_C_END

#endif
