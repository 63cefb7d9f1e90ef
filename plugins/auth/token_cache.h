// SPDX-License-Identifier: Apache-2.0
/*
 * A cache of tokens that were valid, until they expire: a hit saves the signature and the parsing of the claims. It
 * keeps no token, only a keyed hash of it, and the claims.
 *
 *     SHA-256(random key of the cache, rules, id of the keys, token)
 *         │ first bits
 *         ▼
 *     64 sets of 4 entries: within a set the entry that was used longest ago is replaced
 *
 * What was refused is not kept, so that a flood of bad tokens replaces nothing. An entry takes part in no decision with
 * other rules or other keys: one that is revoked by a change of the key files is not used any more. A cache belongs to
 * one thread.
 */
#ifndef AUTH_TOKEN_CACHE_H
#define AUTH_TOKEN_CACHE_H

#include <monkey/arena.h>

#include "bearer.h"

enum { TOKEN_CACHE_SETS = 64, TOKEN_CACHE_WAYS = 4 };

struct token_cache;

/* Returns an empty cache, whose memory is taken from `account`; NULL without memory or random bytes. */
struct token_cache *token_cache_new(struct mk_account *account);
/* Frees it and wipes what it holds; `cache` may be NULL. */
void token_cache_free(struct token_cache *cache);

/*
 * Does bearer_decide() with a cache. `rules` must be at another address than other rules, as long as the cache lives.
 * `cache` may be NULL.
 */
void token_cache_decide(struct token_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena);

/* Returns the number of decisions that came from the cache. */
uint64_t token_cache_hits(const struct token_cache *cache);

#endif
