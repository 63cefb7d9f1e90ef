// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs of a query or a form (pairs.h).
 */
#include "request/pairs.h"

#include "common/heap.h"

enum { ARENA_TEXT_BYTES_MAX = 4096 };

void pairs_read(struct pairs *p, struct mk_arena *arena, struct mk_str text, bool decoded)
{
    size_t bound = urlencoded_bound(text.p, text.len), max = bound;
    if (max > URLENCODED_PAIRS_MAX)
        max = URLENCODED_PAIRS_MAX;
    p->is_read = true;
    p->n = 0;
    if (!bound)
        return;
    struct urlencoded_pair *items = mk_arena_alloc(arena, max * sizeof(*items));
    bool is_large = text.len >= ARENA_TEXT_BYTES_MAX;
    char *copy = is_large ? heap_alloc_until(arena, text.len + 1) : mk_arena_alloc(arena, text.len + 1);
    p->n = -ENOMEM;
    if (!items || !copy)
        return;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    p->n = (decoded ? urlencoded_decode : urlencoded_split)(copy, text.len, items, max);
    assert(p->n <= (int)max);
    p->items = items;
}

int pairs_add(struct pairs *p, struct mk_arena *arena, const char *name, const char *value)
{
    assert(p->is_read && p->n >= 0);
    struct urlencoded_pair *items = mk_arena_grow(arena, p->items, (uint32_t)p->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[p->n++] = (struct urlencoded_pair){name, value};
    p->items = items;
    return 0;
}

const char *pairs_next(const struct pairs *p, const char *name, int *at)
{
    while (name && at && *at >= 0 && *at < p->n) {
        const struct urlencoded_pair *pair = &p->items[(*at)++];
        if (strcmp(pair->name, name) == 0)
            return pair->value;
    }
    return NULL;
}

const char *pairs_get(const struct pairs *p, const char *name)
{
    int at = 0;
    return pairs_next(p, name, &at);
}

const char *pairs_get_id(const struct pairs *p, int n)
{
    return n >= 0 && n < p->n ? p->items[n].value : NULL;
}

const char *pairs_name(const struct pairs *p, int n)
{
    return n >= 0 && n < p->n ? p->items[n].name : NULL;
}

int pairs_cmp(const struct pairs *p, const char *name, const char *text)
{
    const char *value = pairs_get(p, name);
    return value && text && strcmp(value, text) == 0 ? 0 : -1;
}

int pairs_get_number(const struct pairs *p, const char *name, long *ret)
{
    const char *value = pairs_get(p, name);
    if (!ret)
        return -EINVAL;
    return value ? urlencoded_number(value, ret) : -ENOENT;
}
