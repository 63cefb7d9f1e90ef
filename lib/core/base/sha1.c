// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-1 (<monkey/base/sha1.h>), by method 2 of RFC 3174 section 6.2: a schedule of 16 words that is renewed in place.
 */
#include <monkey/base/sha1.h>

#include <assert.h>
#include <string.h>

enum { BLOCK = 64, LENGTH_BYTES = 8, WORDS = 5 };

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static uint32_t read_word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void write_word(uint8_t *to, uint32_t word)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(word >> (24 - 8 * i));
}

/* The function f(t; B, C, D) and the constant K(t), which change every 20 steps (sections 5 and 6). */
static uint32_t mix_words(unsigned step, uint32_t b, uint32_t c, uint32_t d)
{
    switch (step / 20) {
    case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
}

static void add_block(uint32_t h[WORDS], const uint8_t *p)
{
    uint32_t w[16], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned i = 0; i < 16; i++)
        w[i] = read_word(p + 4 * i);
    for (unsigned i = 0; i < 80; i++) {
        if (i >= 16)
            w[i % 16] = rotate_left(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^ w[i % 16], 1);
        uint32_t next = rotate_left(a, 5) + mix_words(i, b, c, d) + e + w[i % 16];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void mk_sha1(uint8_t to[MK_SHA1_BYTES], const void *data, size_t len)
{
    uint32_t h[WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t last[2 * BLOCK] = {0};
    const uint8_t *p = data;
    size_t rest = len % BLOCK, whole = len - rest, last_len = rest + 1 + LENGTH_BYTES <= BLOCK ? BLOCK : 2 * BLOCK;
    assert(data || !len);
    for (size_t i = 0; i < whole; i += BLOCK)
        add_block(h, p + i);

    if (rest)
        memcpy(last, p + whole, rest);
    last[rest] = 0x80;
    write_word(last + last_len - 8, (uint32_t)((uint64_t)len >> 29)); /* the number of bits */
    write_word(last + last_len - 4, (uint32_t)((uint64_t)len << 3));
    for (size_t i = 0; i < last_len; i += BLOCK)
        add_block(h, last + i);
    for (unsigned i = 0; i < WORDS; i++)
        write_word(to + 4 * i, h[i]);
}
