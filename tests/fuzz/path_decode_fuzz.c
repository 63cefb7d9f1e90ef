// SPDX-License-Identifier: Apache-2.0
/*
 * Escapes of paths: decoded as another decoder does it, never longer than they were, and the same again once they are
 * encoded. What does not fit is an error of the buffer.
 */
#include <monkey/base/escape.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

enum { BYTES_MAX = 4096 };

/* Decodes by the digits alone. Returns the number of bytes. */
static size_t decode(const char *in, size_t len, char *to, bool *ret_whole)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    size_t n = 0;
    *ret_whole = true;
    for (size_t i = 0; i < len; i++) {
        const char *high = len - i > 2 ? memchr(digits, in[i + 1], 32) : NULL;
        const char *low = len - i > 2 ? memchr(digits, in[i + 2], 32) : NULL;
        bool is_escape = in[i] == '%' && high && low;
        *ret_whole &= in[i] != '%' || is_escape;
        to[n++] = is_escape ? (char)((high - digits) % 16 * 16 + (low - digits) % 16) : in[i];
        i += is_escape ? 2 : 0;
    }
    return n;
}

static void check_again(struct mk_str decoded)
{
    struct mk_buf encoded, again;
    mk_buf_init(&encoded, 3 * BYTES_MAX + 1);
    mk_buf_init(&again, BYTES_MAX + 1);
    mk_path_encode(&encoded, decoded);
    assert(!encoded.err && mk_path_decode(&again, mk_buf_str(&encoded)));
    assert(mk_str_eq(mk_buf_str(&again), decoded));
    mk_buf_release(&encoded);
    mk_buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char expected[BYTES_MAX], storage[BYTES_MAX + 1];
    struct mk_buf out, small;
    bool is_whole;
    if (size > BYTES_MAX)
        return 0;
    struct mk_str path = mk_str((const char *)data, size);
    size_t n = decode(path.p, path.len, expected, &is_whole);
    mk_buf_init(&out, BYTES_MAX + 1);
    assert(mk_path_decode(&out, path) == is_whole);
    assert(!out.err && mk_str_eq(mk_buf_str(&out), mk_str(expected, n)));
    check_again(mk_buf_str(&out));
    if (n) {
        mk_buf_init_fixed(&small, storage, n - 1);
        mk_path_decode(&small, path);
        assert(small.err);
    }
    mk_buf_release(&out);
    return 0;
}
