// SPDX-License-Identifier: Apache-2.0
/*
 * Heads of patterns, and the search for those that a path begins with (base/pattern_index.h).
 */
#include "base/pattern_index.h"

#include <assert.h>
#include <stdlib.h>

/* ── heads ── */

/* Returns the length of the text before the first of these bytes. */
static size_t count_before(struct mk_str text, const char *signs)
{
    return mk_str_until(text, signs).len;
}

/*
 * Returns whether an expression may have alternatives that do not begin with its head. True where that would take a
 * parser to say: then the expression has no head.
 */
static MK_COLD bool may_have_alternatives(struct mk_str text)
{
    unsigned depth = 0;
    if (!memchr(text.p, '|', text.len))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i], next = i + 1 < text.len ? text.p[i + 1] : '\0';
        bool is_data = c == '\\' && mk_is_name_byte(next, "") && !memchr("dDsSwWbBnrt", next, 11); /* \Q, \c, \x{ */
        if (c == '[' || is_data || (c == '(' && next == '*') ||
            (c == '(' && next == '?' && (i + 2 == text.len || text.p[i + 2] != ':')))
            return true;
        i += c == '\\';
        depth += c == '(';
        if (c == '|' && !depth)
            return true;
        depth -= c == ')' && depth;
    }
    return false;
}

/* Returns the head of an expression that begins with ^ and ordinary bytes. Those of ~* match other bytes, too. */
static MK_COLD struct mk_str find_expression_head(const struct mk_pattern *pattern)
{
    struct mk_str text = pattern->text, head = mk_str_after(text, 1);
    if (mk__pattern_index_ignores_case(pattern) || text.p[0] != '^' || may_have_alternatives(text))
        return mk_str(text.p, 0);
    size_t n = count_before(head, "\\^$.[|()?*+{");
    bool is_optional = n < head.len && strchr("?*{", head.p[n]);
    head.len = n - (n && is_optional);
    return head;
}

MK_COLD struct mk_str mk__pattern_index_head(const struct mk_pattern *pattern)
{
    struct mk_str text = pattern->text;
    switch (pattern->kind) {
    case MK_PATTERN_EXACT:
    case MK_PATTERN_PREFIX:
        return text;
    case MK_PATTERN_GLOB:
        return mk_str(text.p, count_before(text, "*?"));
    case MK_PATTERN_REGEX:
        return pattern->regex ? find_expression_head(pattern) : mk_str(text.p, 0);
    default:
        return mk_str(text.p, 0);
    }
}

struct mk_str mk__pattern_index_cover_head(const struct mk_pattern *later)
{
    /*
     * A pattern that matches all paths of `later` has a head that they all begin with: a part of the head of `later`,
     * or of the slash that each path begins with. mk_pattern_covers() proves nothing else for two different
     * expressions.
     */
    struct mk_str head = mk__pattern_index_head(later);
    return head.len ? head : MK_STR("/");
}

/* ── the index ── */

/* A head, and where in `numbers` the patterns with it stand, the first one first. */
struct head {
    struct mk_str text;
    uint32_t parent; /* the longest other head that this one begins with; UINT32_MAX: none */
    uint32_t first, n;
};

struct mk_pattern_index {
    uint32_t n, n_heads;
    struct head *heads; /* by text; NULL: the patterns are few */
    uint32_t *numbers;
};

struct numbered_head {
    struct mk_str text;
    uint32_t number;
};

static int compare_texts(struct mk_str a, struct mk_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int r = n ? memcmp(a.p, b.p, n) : 0;
    return r ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare_heads(const void *a, const void *b)
{
    const struct numbered_head *one = a, *other = b;
    int r = compare_texts(one->text, other->text);
    return r ? r : (one->number > other->number) - (one->number < other->number);
}

static uint32_t find_parent(const struct head *heads, uint32_t i)
{
    uint32_t parent = i ? i - 1 : UINT32_MAX;
    while (parent != UINT32_MAX && !mk_str_starts(heads[i].text, heads[parent].text))
        parent = heads[parent].parent;
    return parent;
}

static MK_COLD void add_heads(struct mk_pattern_index *index, const struct numbered_head *all, uint32_t n)
{
    struct head *head = NULL;
    for (uint32_t i = 0; i < n; i++) {
        index->numbers[i] = all[i].number;
        if (!head || !mk_str_eq(head->text, all[i].text)) {
            head = &index->heads[index->n_heads];
            *head = (struct head){.text = all[i].text, .first = i};
            head->parent = find_parent(index->heads, index->n_heads++);
        }
        head->n++;
    }
}

/* Fills the index. Returns whether there is memory. */
static MK_COLD bool index_patterns(struct mk_pattern_index *index, mk_pattern_get_fn get, const void *ctx,
                                   struct mk_arena *arena)
{
    uint32_t n = index->n;
    struct numbered_head *all = mk_account_alloc(NULL, n * sizeof(*all));
    index->heads = mk_arena_alloc(arena, n * sizeof(*index->heads));
    index->numbers = mk_arena_alloc(arena, n * sizeof(*index->numbers));
    bool has_memory = all && index->heads && index->numbers;
    for (uint32_t i = 0; has_memory && i < n; i++)
        all[i] = (struct numbered_head){mk__pattern_index_head(get(ctx, i)), i};
    if (has_memory) {
        qsort(all, n, sizeof(*all), compare_heads);
        add_heads(index, all, n);
    }
    mk_account_free(NULL, all, n * sizeof(*all));
    return has_memory;
}

MK_COLD const struct mk_pattern_index *mk_pattern_index_new(mk_pattern_get_fn get, const void *ctx, uint32_t n,
                                                            struct mk_arena *arena)
{
    struct mk_pattern_index *index = mk_arena_zalloc(arena, sizeof(*index));
    if (!index)
        return NULL;
    index->n = n;
    return n < MK__PATTERN_INDEX_MIN || index_patterns(index, get, ctx, arena) ? index : NULL;
}

/* Returns the number of heads that are not above the path. */
static uint32_t count_not_above(const struct mk_pattern_index *index, struct mk_str path)
{
    uint32_t low = 0, high = index->n_heads;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_texts(index->heads[middle].text, path) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the first number of a head from `from` on. */
static uint32_t find_number(const struct mk_pattern_index *index, const struct head *head, uint32_t from)
{
    const uint32_t *numbers = index->numbers + head->first;
    uint32_t low = 0, high = head->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (numbers[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < head->n ? numbers[low] : UINT32_MAX;
}

uint32_t mk_pattern_index_next(const struct mk_pattern_index *index, struct mk_str path, uint32_t from)
{
    if (!index->heads)
        return from < index->n ? from : UINT32_MAX;
    uint32_t result = UINT32_MAX, i = count_not_above(index, path);
    /* heads between the path and one that it begins with begin with that one, too */
    for (i = i ? i - 1 : UINT32_MAX; i != UINT32_MAX; i = index->heads[i].parent) {
        const struct head *head = &index->heads[i];
        uint32_t number = mk_str_starts(path, head->text) ? find_number(index, head, from) : UINT32_MAX;
        result = number < result ? number : result;
    }
    return result;
}

uint32_t mk_pattern_index_next_cover(const struct mk_pattern_index *index, const struct mk_pattern *later,
                                     uint32_t from)
{
    return mk_pattern_index_next(index, mk__pattern_index_cover_head(later), from);
}
