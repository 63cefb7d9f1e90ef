// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs of a query or a form (pairs.h).
 */
#include "request/pairs.h"

#include "common/heap.h"

enum { ARENA_TEXT_BYTES_MAX = 4096 };

/* Returns a copy that ends with a NUL and is freed with the arena; NULL without memory. */
static char *copy_text(struct mk_arena *arena, struct mk_str text)
{
    bool is_large = text.len >= ARENA_TEXT_BYTES_MAX;
    char *copy = is_large ? heap_alloc_until(arena, text.len + 1) : mk_arena_alloc(arena, text.len + 1);
    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    return copy;
}

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
    char *copy = copy_text(arena, text);
    p->n = -ENOMEM;
    if (!items || !copy)
        return;
    p->n = (decoded ? urlencoded_decode : urlencoded_split)(copy, text.len, items, max);
    assert(p->n <= (int)max);
    p->items = items;
}

int pairs_add(struct pairs *p, struct mk_arena *arena, const char *name, struct mk_str value)
{
    assert(p->is_read && p->n >= 0);
    struct urlencoded_pair *items = mk_arena_grow(arena, p->items, (uint32_t)p->n, sizeof(*items));
    char *copy = items ? copy_text(arena, value) : NULL;
    if (!copy)
        return -ENOMEM;
    items[p->n++] = (struct urlencoded_pair){name, copy};
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
