// SPDX-License-Identifier: Apache-2.0
/*
 * What an application of FastCGI sends: the first byte is the size of pieces. One piece, and pieces of that size, must
 * leave the same output, error output and result, and no more bytes than have come.
 */
#include <monkey/kit/fastcgi.h>

#include <stdlib.h>

enum { BYTES_MAX = 4096 };

struct outcome {
    char output[BYTES_MAX], errors[BYTES_MAX];
    size_t output_len, errors_len;
    int result;
};

static void add(char to[BYTES_MAX], size_t *len, const char *bytes, size_t n)
{
    if (n > BYTES_MAX - *len)
        abort();
    if (n)
        memcpy(to + *len, bytes, n);
    *len += n;
}

static void add_errors(struct mk_str bytes, void *ctx)
{
    struct outcome *o = ctx;
    add(o->errors, &o->errors_len, bytes.p, bytes.len);
}

static void decode(const char *in, size_t size, size_t piece, struct outcome *o)
{
    struct mk_fastcgi_decoder decoder = {0};
    char buffer[BYTES_MAX];
    *o = (struct outcome){0};
    for (size_t at = 0; at < size && o->result == 0; at += piece) {
        size_t n = size - at < piece ? size - at : piece, len = n, left = 0;
        memcpy(buffer, in + at, n);
        o->result = mk_fastcgi_decode(&decoder, buffer, &len, &left, add_errors, o);
        if (o->result < 0)
            return;
        if (len > n || left > n - len || (o->result == 0 && left))
            abort();
        add(o->output, &o->output_len, buffer, len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole, pieces;
    if (size < 2 || size > BYTES_MAX)
        return 0;
    decode((const char *)data + 1, size - 1, BYTES_MAX, &whole);
    decode((const char *)data + 1, size - 1, data[0] + 1u, &pieces);
    if (whole.result != pieces.result)
        abort();
    if (whole.errors_len != pieces.errors_len || memcmp(whole.errors, pieces.errors, whole.errors_len) != 0)
        abort();
    if (whole.result >= 0 &&
        (whole.output_len != pieces.output_len || memcmp(whole.output, pieces.output, whole.output_len) != 0))
        abort();
    return 0;
}
