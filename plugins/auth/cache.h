// SPDX-License-Identifier: Apache-2.0
/*
 * Remembers for a short time which credentials were right, so that not each request costs a hash. An entry is only the
 * HMAC-SHA-256, with a random key of the process, of the stored hash, the name and the password: no password can be
 * read or computed from it, and an entry is useless once the user's line in the file has changed. One cache for the
 * process, with room for a fixed number of entries. Any thread.
 */
#ifndef AUTH_CACHE_H
#define AUTH_CACHE_H

#include <monkey/str.h>

struct cache;

enum { CACHE_KEY_BYTES = 32, CACHE_ENTRIES = 8192 };

struct cache_key {
    uint8_t bytes[CACHE_KEY_BYTES];
};

/* Returns an empty cache with a new key, or NULL without memory or random bytes. */
struct cache *cache_new(void);
/* Wipes and frees it; NULL is allowed. */
void cache_free(struct cache *c);

/* Makes the key of an entry. Returns false if libcrypto fails: then nothing is cached. */
bool cache_make_key(const struct cache *c, struct mk_str stored, struct mk_str user, struct mk_str password,
                    struct cache_key *ret);

/* Returns true if the entry is there and not older than its time. Compares in constant time. */
bool cache_has(struct cache *c, const struct cache_key *key, uint64_t now_ms);
/* Adds an entry for `ms`; it may take the place of an older one. */
void cache_add(struct cache *c, const struct cache_key *key, uint64_t now_ms, uint32_t ms);
/* Returns true if two keys are the same, in constant time. */
bool cache_is_same(const struct cache_key *a, const struct cache_key *b);

/* Returns a number from 0 to `n` - 1 for a name: always the same in this process, and unknown to others. */
uint32_t cache_pick(const struct cache *c, struct mk_str name, uint32_t n);

#endif
