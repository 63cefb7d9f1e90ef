// SPDX-License-Identifier: Apache-2.0
/*
 * A set of hashes that were seen lately, of bounded size: 4 bytes for each. Threads share it without locks; an update
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
    void *map;
    _Atomic uint32_t *entries; /* of the map, in groups of a cache line, which are found by the hash */
    _Atomic uint64_t group_mask;
    _Atomic uint64_t added;
};

enum { MK__FINGERPRINTS_MAX = 1 << 21 };

/* Maps a set without places. Pages take memory when they are used. Returns 0 or -ENOMEM. */
int mk__fingerprints_open(struct mk__fingerprints *f);
void mk__fingerprints_close(struct mk__fingerprints *f);
/*
 * Gives the set places for about `n` hashes, at most MK__FINGERPRINTS_MAX. Other threads may use it meanwhile; it
 * forgets some of what it has, or all. Returns the bytes of the places.
 */
uint64_t mk__fingerprints_resize(struct mk__fingerprints *f, uint64_t n);

bool mk__fingerprints_has(const struct mk__fingerprints *f, uint64_t hash);
/* Adds a hash, or makes it new again. Returns true if it was seen before. */
bool mk__fingerprints_add(struct mk__fingerprints *f, uint64_t hash);
void mk__fingerprints_remove(struct mk__fingerprints *f, uint64_t hash);

#endif
