// SPDX-License-Identifier: Apache-2.0
/*
 * The answers that wr-load reads: one piece, and pieces of a size that the first byte picks, must give the same body,
 * the same end and the same handshake_result.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tools/wr/load/answer.h"

struct outcome {
    uint64_t hash, body_bytes;
    size_t used;
    bool bad, close;
    int state, status;
};

static struct outcome parse(const char *in, size_t len, size_t piece, bool to_head)
{
    struct outcome o = {0};
    struct answer a;
    answer_init(&a, to_head);
    while (o.used < len && a.state != ANSWER_DONE && !o.bad) {
        size_t left = len - o.used;
        struct mk_str body;
        ssize_t n = answer_parse(&a, in + o.used, left < piece ? left : piece, &body);
        o.bad = n < 0;
        if (o.bad)
            break;
        if (n == 0 || (size_t)n > left || (body.len && (body.p < in || body.p + body.len > in + len)))
            abort();
        for (size_t i = 0; i < body.len; i++)
            o.hash = o.hash * 31 + (unsigned char)body.p[i];
        o.used += (size_t)n;
        if (a.total_bytes != o.used)
            abort();
    }
    o.state = a.state;
    if (!o.bad) {
        o.body_bytes = a.body_bytes;
        o.status = a.status;
        o.close = a.close;
    }
    if (o.bad)
        o.used = o.hash = 0; /* how far it came depends on the pieces */
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *in = (const char *)data + 1;
    bool to_head = data[0] & 128;
    struct outcome whole = parse(in, size - 1, SIZE_MAX, to_head);
    struct outcome pieces = parse(in, size - 1, (size_t)data[0] % 16 + 1, to_head);
    if (whole.hash != pieces.hash || whole.body_bytes != pieces.body_bytes || whole.used != pieces.used ||
        whole.bad != pieces.bad || whole.state != pieces.state || whole.status != pieces.status ||
        whole.close != pieces.close)
        abort();
    return 0;
}
