// SPDX-License-Identifier: Apache-2.0
/*
 * The rules and keys by which the token of one request was refused: it is verified once for each of them, however many
 * paths a listing or an archive asks about. The worker's cache (token_cache.h) has tokens that were valid only.
 */
#ifndef AUTH_TOKEN_REFUSALS_H
#define AUTH_TOKEN_REFUSALS_H

#include <monkey/arena.h>

#include "claims.h"
#include "key_set.h"

struct token_refusal {
    struct token_refusal *next;
    const struct claims_rules *rules;
    char keys[KEY_SET_ID_BYTES]; /* the keys may be loaded again before the request ends */
};

/* Returns true if a list has these rules and keys; `first` NULL: it is empty. */
bool token_refusals_has(const struct token_refusal *first, const struct claims_rules *rules,
                        const struct key_set *keys);

/* Adds rules and keys to a list in `arena`. Returns the new first entry, or NULL without memory: the list is as before.
 */
struct token_refusal *token_refusals_add(struct token_refusal *first, const struct claims_rules *rules,
                                         const struct key_set *keys, struct mk_arena *arena);

#endif
