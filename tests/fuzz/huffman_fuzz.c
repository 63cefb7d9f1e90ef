// SPDX-License-Identifier: Apache-2.0
/*
 * The Huffman code of HPACK: what can be decoded is encoded to the same bytes again, and what is encoded is decoded to
 * what it was.
 */
#include "http/h2/huffman.h"

#include <stdint.h>
#include <stdlib.h>

enum { BYTES_MAX = 4096 };

static void decode_and_encode(struct mk_str in)
{
    static char text[2 * BYTES_MAX], again[4 * BYTES_MAX];
    ssize_t len = mk__huffman_decode(in, text, sizeof(text));
    if (mk__huffman_decode(in, NULL, 0) != len)
        abort();
    if (len < 0)
        return;
    struct mk_str decoded = mk_str(text, (size_t)len);
    size_t n = (size_t)(mk__huffman_encode(again, decoded) - again);
    if (n != mk__huffman_encoded_len(decoded) || !mk_str_eq(mk_str(again, n), in))
        abort();
}

static void encode_and_decode(struct mk_str in)
{
    static char coded[4 * BYTES_MAX], text[BYTES_MAX];
    size_t n = (size_t)(mk__huffman_encode(coded, in) - coded);
    ssize_t len = mk__huffman_decode(mk_str(coded, n), text, sizeof(text));
    if (len < 0 || !mk_str_eq(mk_str(text, (size_t)len), in))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > BYTES_MAX)
        return 0;
    decode_and_encode(mk_str((const char *)data, size));
    encode_and_decode(mk_str((const char *)data, size));
    return 0;
}
