// SPDX-License-Identifier: Apache-2.0
/*
 * Decisions about tokens with a cache: a hit saves the signature and the parsing of the claims.
 *
 * What was refused is not kept, so that a flood of bad tokens replaces nothing. An entry takes part in no decision with
 * other rules or other keys: one that is revoked by a change of the key files is not used any more.
 */
#ifndef AUTH_TOKEN_CACHE_H
#define AUTH_TOKEN_CACHE_H

#include "bearer.h"
#include "jws.h"
#include "text_cache.h"

enum { TOKEN_CACHE_SETS = 64, TOKEN_CACHE_BYTES_MAX = 4 * JWS_BYTES_MAX };

/*
 * Does bearer_decide() with a cache of tokens that were valid. `rules` must be at another address than other rules, as
 * long as the cache lives. `cache` may be NULL.
 */
void token_cache_decide(struct text_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena);

#endif
