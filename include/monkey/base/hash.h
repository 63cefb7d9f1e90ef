// SPDX-License-Identifier: Apache-2.0
/*
 * FNV-1a, 64 bits: a number of some bytes that is the same in each process and version. For tables and sums of what
 * clients do not choose: bytes with equal numbers are easy to make.
 */
#ifndef MONKEY_HASH_H
#define MONKEY_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

/* The number of no bytes. */
#define MK_HASH_EMPTY UINT64_C(0xcbf29ce484222325)

/* Returns the number of the bytes after those of `hash`. Any thread. */
static inline uint64_t mk_hash_add(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

MK_C_END

#endif
