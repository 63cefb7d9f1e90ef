// SPDX-License-Identifier: Apache-2.0
/*
 * Blocks of 64 bytes, each of which changes the eight words of the state (sha256.h).
 */
#include "sha256.h"

enum { BLOCK_BYTES = 64, ROUNDS = 64, LENGTH_BYTES = 8 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void expand_block(const unsigned char *block, uint32_t w[ROUNDS])
{
    for (unsigned i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (unsigned i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] =
            w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[ROUNDS], s[8];
    expand_block(block, w);
    memcpy(s, state, sizeof(s));
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t a = s[0], e = s[4];
        uint32_t t1 =
            s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + constants[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

/* Adds the last bytes, a bit 1, and the length in bits at the end of a block (section 5.1.1). */
static void add_padding(uint32_t state[8], struct mk_str rest, uint64_t length)
{
    unsigned char last[2 * BLOCK_BYTES] = {0};
    size_t size = rest.len + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    if (rest.len)
        memcpy(last, rest.p, rest.len);
    last[rest.len] = 0x80;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        last[size - 1 - i] = (unsigned char)(length * 8 >> 8 * i);
    for (size_t at = 0; at < size; at += BLOCK_BYTES)
        add_block(state, last + at);
}

void sha256_digest(struct mk_str text, unsigned char ret[SHA256_BYTES])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint64_t length = text.len;
    for (; text.len >= BLOCK_BYTES; text = mk_str(text.p + BLOCK_BYTES, text.len - BLOCK_BYTES))
        add_block(state, (const unsigned char *)text.p);
    add_padding(state, text, length);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        ret[i] = (unsigned char)(state[i / 4] >> (24 - i % 4 * 8));
}
