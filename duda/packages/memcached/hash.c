// SPDX-License-Identifier: Apache-2.0
/*
 * Which server has a key (hash.h): FNV-1a of the bytes, and the finalizer of SplitMix64 to mix it with the server's.
 */
#include "hash.h"

#include <monkey/base/hash.h>

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t mc_hash(struct mk_str text)
{
    return mix_bits(mk_hash_add(MK_HASH_EMPTY, text.p, text.len));
}

uint64_t mc_score(uint64_t server, uint64_t key)
{
    return mix_bits(server ^ key);
}
