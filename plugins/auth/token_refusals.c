// SPDX-License-Identifier: Apache-2.0
/*
 * A list for one request (token_refusals.h). It has as many entries as the host has sections of tokens, and a few more
 * if keys change meanwhile.
 */
#include "token_refusals.h"

#include <assert.h>

bool token_refusals_has(const struct token_refusal *first, const struct claims_rules *rules, const struct key_set *keys)
{
    struct mk_str id = key_set_id(keys);
    for (; first; first = first->next)
        if (first->rules == rules && memcmp(first->keys, id.p, sizeof(first->keys)) == 0)
            return true;
    return false;
}

struct token_refusal *token_refusals_add(struct token_refusal *first, const struct claims_rules *rules,
                                         const struct key_set *keys, struct mk_arena *arena)
{
    struct mk_str id = key_set_id(keys);
    struct token_refusal *refusal = mk_arena_alloc(arena, sizeof(*refusal));
    if (!refusal)
        return NULL;
    assert(id.len == sizeof(refusal->keys));
    *refusal = (struct token_refusal){.next = first, .rules = rules};
    memcpy(refusal->keys, id.p, id.len);
    return refusal;
}
