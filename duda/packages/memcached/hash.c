// SPDX-License-Identifier: Apache-2.0
/*
 * Which server has a key (hash.h): FNV-1a of the bytes, and the finalizer of SplitMix64 to mix it with the server's.
 */
#include "hash.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t mc_hash(struct mk_str text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3;
    return mix(hash);
}

uint64_t mc_score(uint64_t server, uint64_t key)
{
    return mix(server ^ key);
}
