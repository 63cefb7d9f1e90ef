// SPDX-License-Identifier: Apache-2.0
/*
 * The chunked coding: one piece, and pieces of a size that the first byte picks, must give the same data,
 * the same end and the same handshake_result.
 */
#include <stdint.h>
#include <stdlib.h>

#include <monkey/base/chunked.h>

struct outcome {
    uint64_t hash;
    size_t data_bytes, used;
    bool bad, done;
};

static struct outcome decode(const char *in, size_t len, size_t piece, bool recovers)
{
    static const struct mk_chunked_limits limits = {64, 200, 200, 8};
    struct outcome o = {0};
    struct mk_chunked c;

    mk_chunked_init(&c, &limits);
    c.recovers = recovers;
    while (o.used < len && !c.done && !o.bad) {
        size_t left = len - o.used;
        struct mk_str data;
        ssize_t n = mk_chunked_decode(&c, in + o.used, left < piece ? left : piece, &data);
        o.bad = n < 0;
        if (o.bad)
            break;
        if (n == 0 || (size_t)n > left || (data.len && (data.p < in || data.p + data.len > in + len)))
            abort();
        for (size_t i = 0; i < data.len; i++)
            o.hash = o.hash * 31 + (unsigned char)data.p[i];
        o.data_bytes += data.len;
        o.used += (size_t)n;
    }
    o.done = c.done;
    if (o.bad)
        o.used = 0; /* how far it came depends on the pieces */
    return o;
}

static struct outcome check_pieces(const uint8_t *data, size_t size, bool recovers)
{
    const char *in = (const char *)data + 1;
    struct outcome whole = decode(in, size - 1, SIZE_MAX, recovers),
                   pieces = decode(in, size - 1, (size_t)data[0] % 16 + 1, recovers);
    if (whole.hash != pieces.hash || whole.data_bytes != pieces.data_bytes || whole.used != pieces.used ||
        whole.bad != pieces.bad || whole.done != pieces.done)
        abort();
    return whole;
}

/* What is well-formed means the same where faults are recovered from. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct outcome strict = check_pieces(data, size, false), recovered = check_pieces(data, size, true);
    if (!strict.bad && (recovered.bad || strict.hash != recovered.hash || strict.used != recovered.used))
        abort();
    return 0;
}
