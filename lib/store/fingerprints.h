// SPDX-License-Identifier: Apache-2.0
/*
 * A set of hashes that were seen lately, of fixed size: 4 bytes for each. Threads share it without locks; an update
 * that is lost in a race only makes a hash look new. A hash counts as seen until about as many others as the set has
 * places have been added after it.
 */
#ifndef MK_STORE_FINGERPRINTS_H
#define MK_STORE_FINGERPRINTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mk__fingerprints {
    _Atomic uint32_t *entries; /* in groups of a cache line, which are found by the hash */
    uint64_t group_mask;
    _Atomic uint64_t added;
};

/* Returns the bytes of a set for about `n` hashes. */
size_t mk__fingerprints_bytes(uint64_t n);
/* `zeroed`: that many bytes, aligned to 64, which the caller frees. */
void mk__fingerprints_init(struct mk__fingerprints *f, void *zeroed, uint64_t n);

bool mk__fingerprints_has(const struct mk__fingerprints *f, uint64_t hash);
/* Adds a hash, or makes it new again. Returns true if it was seen before. */
bool mk__fingerprints_add(struct mk__fingerprints *f, uint64_t hash);
void mk__fingerprints_remove(struct mk__fingerprints *f, uint64_t hash);

#endif
