// SPDX-License-Identifier: Apache-2.0
/* Keeps decisions (token_cache.h). */
#include "token_cache.h"

enum { TEXTS = 4 };

/* Returns true if `ret` is the decision of an entry that has not expired; false also without memory. */
static bool use_entry(struct text_cache *cache, const unsigned char *digest, struct bearer_decision *ret,
                      int64_t now_ms, struct mk_arena *arena)
{
    struct mk_str texts[TEXTS];
    int64_t end_ms;
    if (!text_cache_find(cache, digest, now_ms, texts, TEXTS, &end_ms))
        return false;
    for (unsigned i = 0; i < TEXTS; i++)
        if (texts[i].p && !(texts[i] = mk_arena_dup(arena, texts[i])).p)
            return false;
    *ret = (struct bearer_decision){TOKEN_OK, texts[0], texts[1], texts[2], texts[3], end_ms};
    return true;
}

void token_cache_decide(struct text_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena)
{
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES];
    const struct mk_str parts[] = {mk_str((const char *)&rules, sizeof(rules)), key_set_id(keys), token};
    bool hashed = cache && token.len <= JWS_BYTES_MAX && text_cache_hash(cache, parts, MK_COUNT_OF(parts), digest);
    if (hashed && use_entry(cache, digest, ret, now_ms, arena))
        return;
    bearer_decide(ret, token, keys, rules, now_ms, arena);
    if (hashed && ret->result == TOKEN_OK) {
        const struct mk_str texts[TEXTS] = {ret->subject, ret->issuer, ret->scope, ret->claims};
        text_cache_add(cache, digest, ret->end_ms, texts, TEXTS);
    }
}
