// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps texts until they expire: what valid tokens say, and answers of `Type Forward` that let requests pass. A cache
 * belongs to a worker under one generation, so a reload begins with an empty one. It does not keep what the texts
 * are found by, only a keyed hash:
 *
 *     SHA-256(random key of the cache, parts)
 *         │ first byte
 *         ▼
 *     sets of 4 entries: within a set the entry that was used longest ago is replaced
 *
 * One thread.
 */
#ifndef AUTH_TEXT_CACHE_H
#define AUTH_TEXT_CACHE_H

#include <monkey/arena.h>

enum { TEXT_CACHE_WAYS = 4, TEXT_CACHE_TEXTS_MAX = 17, TEXT_CACHE_DIGEST_BYTES = 32 };

struct text_cache;

/*
 * Returns an empty cache with a new key, whose memory is taken from `account`; NULL without memory or random bytes.
 * `sets`: 256 at most, as one byte of the digest chooses it. `bytes_max`: of the texts of an entry, below 65535.
 */
struct text_cache *text_cache_new(struct mk_account *account, unsigned sets, size_t bytes_max);
/* Wipes and frees it; NULL is allowed. */
void text_cache_free(struct text_cache *cache);

/* Makes the digest of an entry. Returns false if libcrypto fails: then nothing is kept. */
bool text_cache_hash(const struct text_cache *cache, const struct mk_str *parts, unsigned n,
                     unsigned char digest[TEXT_CACHE_DIGEST_BYTES]);

/*
 * Returns whether there is an entry that has not expired. `ret_texts`: its `n` texts, as many as were added, valid
 * until the next call of an add. `ret_end_ms` may be NULL.
 */
bool text_cache_find(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t now_ms,
                     struct mk_str *ret_texts, unsigned n, int64_t *ret_end_ms);
/* Keeps texts, of which `.p` may be NULL, until `end_ms`, unless they are too long or there is no memory. */
void text_cache_add(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t end_ms,
                    const struct mk_str *texts, unsigned n);

/* Returns how many entries were found. */
uint64_t text_cache_hits(const struct text_cache *cache);

#endif
