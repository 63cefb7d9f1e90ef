// SPDX-License-Identifier: Apache-2.0
/*
 * Masks payloads 64 bytes at a time, with the vectors of the compiler, which every machine has in some form (mask.h).
 */
#include "mask.h"

#include <string.h>

/* At any address, of bytes of any type. */
typedef uint64_t vector __attribute__((vector_size(16), aligned(1), may_alias));

enum { BLOCK_BYTES = 4 * sizeof(vector) };

/* All vectors are loaded before one is stored: `to` and `from` may be the same. */
static void mask_block(uint8_t *to, const uint8_t *from, uint64_t key)
{
    const vector *in = (const vector *)from, wide = {key, key};
    vector *out = (vector *)to, a = in[0] ^ wide, b = in[1] ^ wide, c = in[2] ^ wide, d = in[3] ^ wide;
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* Returns the key as it applies to the bytes from `offset` on, repeated. */
static uint64_t rotate_key(uint32_t key, size_t offset)
{
    uint8_t twice[2 * sizeof(key)];
    memcpy(twice, &key, sizeof(key));
    memcpy(twice + sizeof(key), &key, sizeof(key));
    uint32_t rotated;
    memcpy(&rotated, twice + offset % sizeof(key), sizeof(rotated));
    return (uint64_t)rotated << 32 | rotated;
}

void mk__ws_mask(void *to, const void *from, size_t n, uint32_t key, size_t offset)
{
    uint64_t wide = rotate_key(key, offset), word;
    const uint8_t *in = from;
    uint8_t *out = to, bytes[sizeof(wide)];
    for (; n >= BLOCK_BYTES; n -= BLOCK_BYTES, in += BLOCK_BYTES, out += BLOCK_BYTES)
        mask_block(out, in, wide);
    for (; n >= sizeof(word); n -= sizeof(word), in += sizeof(word), out += sizeof(word)) {
        memcpy(&word, in, sizeof(word));
        word ^= wide;
        memcpy(out, &word, sizeof(word));
    }
    memcpy(bytes, &wide, sizeof(bytes));
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] ^ bytes[i];
}
