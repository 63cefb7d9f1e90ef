// SPDX-License-Identifier: Apache-2.0
/* SipHash-1-3 of <monkey/base/siphash.h>: one round for each word of 8 bytes, three at the end. */
#include <monkey/base/siphash.h>

#include <monkey/base/random.h>

#include <endian.h>
#include <string.h>

int mk_siphash_key(uint64_t key[2])
{
    return mk_random(key, 2 * sizeof(key[0]));
}

static inline uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void mix_hash(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0], v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2], v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static inline void mix_word(uint64_t v[4], uint64_t word)
{
    word = le64toh(word);
    v[3] ^= word;
    mix_hash(v);
    v[0] ^= word;
}

MK_HOT uint64_t mk_siphash(const uint64_t key[2], const void *data, size_t len)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    const uint8_t *p = data;
    uint64_t word;
    size_t left = len;
    for (; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        mix_word(v, word);
    }
    uint8_t last[sizeof(word)] = {[sizeof(word) - 1] = (uint8_t)len};
    if (left)
        memcpy(last, p, left);
    memcpy(&word, last, sizeof(word));
    mix_word(v, word);
    v[2] ^= 0xff;
    for (unsigned i = 0; i < 3; i++)
        mix_hash(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
