// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps answers of `Type Forward` that let requests pass, in a worker under one generation: a reload begins with an
 * empty cache. An answer is found by the SHA-256 of the section, of what the server was asked and of the headers that
 * decide, with a random key; so no header of a client is kept. Room for FORWARD_CACHE_SETS * FORWARD_CACHE_WAYS answers
 * of up to FORWARD_CACHE_TEXT_MAX bytes each: a new one takes the place of the one that was not used for longest. One
 * thread.
 */
#ifndef AUTH_FORWARD_CACHE_H
#define AUTH_FORWARD_CACHE_H

#include <monkey/arena.h>

#include "forward_conf.h"

enum {
    FORWARD_CACHE_SETS = 256, /* at most, as one byte of the digest chooses it */
    FORWARD_CACHE_WAYS = 4,
    FORWARD_CACHE_TEXT_MAX = 4096,
    FORWARD_DIGEST_BYTES = 32,
};

/* What a server has answered: the values of CopyHeaders, in their order, and the user. `.p` NULL: it sent none. */
struct forward_answer {
    struct mk_str values[FORWARD_HEADERS_MAX];
    struct mk_str user;
    uint32_t n;
};

struct forward_cache;

/* Returns an empty cache with a new key; NULL without memory or random bytes. */
struct forward_cache *forward_cache_new(struct mk_account *account);
/* Wipes and frees it; NULL is allowed. */
void forward_cache_free(struct forward_cache *cache);

/* Makes the digest of an answer of the section `owner`. Returns false if libcrypto fails: then nothing is kept. */
bool forward_cache_hash(const struct forward_cache *cache, const void *owner, struct mk_str subject,
                        struct mk_str deciding, unsigned char digest[FORWARD_DIGEST_BYTES]);

/* Returns whether there is an answer that has not expired; its strings are valid until the next call of an add. */
bool forward_cache_find(struct forward_cache *cache, const unsigned char digest[FORWARD_DIGEST_BYTES], uint64_t now_ms,
                        struct forward_answer *ret);
/* Keeps an answer until `end_ms`, unless it is too long or there is no memory. */
void forward_cache_add(struct forward_cache *cache, const unsigned char digest[FORWARD_DIGEST_BYTES], uint64_t end_ms,
                       const struct forward_answer *answer);

#endif
