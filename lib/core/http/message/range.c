// SPDX-License-Identifier: Apache-2.0
/*
 * The Range field: its syntax, clamping to a size, and merging. The caller decides whether ranges may be served at all
 * (method, If-Range, validators).
 */
#include "http/message/range.h"

#include <assert.h>

enum range_spec { SPEC_INVALID, SPEC_UNSATISFIABLE, SPEC_SUFFIX_OF_EMPTY, SPEC_SATISFIABLE };

/* Removes the digits from `s`. Numbers above 64 bits become UINT64_MAX. Returns false if there is no digit. */
static bool read_number(struct mk_str *s, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < s->len && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->p[i] - '0');
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            value = UINT64_MAX;
    }
    *s = mk_str_after(*s, i);
    *ret_value = value;
    return i > 0;
}

static bool skip_dash(struct mk_str *s)
{
    if (!s->len || s->p[0] != '-')
        return false;
    *s = mk_str_after(*s, 1);
    return true;
}

static enum range_spec read_suffix(struct mk_str s, uint64_t size, struct mk__range *r)
{
    uint64_t len;
    if (!read_number(&s, &len) || s.len)
        return SPEC_INVALID;
    if (!len)
        return SPEC_UNSATISFIABLE;
    if (!size)
        return SPEC_SUFFIX_OF_EMPTY;
    *r = (struct mk__range){.first = len < size ? size - len : 0, .last = size - 1};
    return SPEC_SATISFIABLE;
}

static enum range_spec read_spec(struct mk_str s, uint64_t size, struct mk__range *r)
{
    if (skip_dash(&s))
        return read_suffix(s, size, r);
    r->last = UINT64_MAX;
    if (!read_number(&s, &r->first) || !skip_dash(&s))
        return SPEC_INVALID;
    if (s.len && (!read_number(&s, &r->last) || s.len || r->last < r->first))
        return SPEC_INVALID;
    if (r->first >= size)
        return SPEC_UNSATISFIABLE;
    if (r->last >= size)
        r->last = size - 1;
    return SPEC_SATISFIABLE;
}

enum mk__range_result mk__range_parse(struct mk_str value, uint64_t size, struct mk__range *ranges, unsigned max,
                                      unsigned *ret_n)
{
    const struct mk_str unit = MK_STR("bytes=");
    struct mk_str rest, item;
    unsigned n = 0, specs = 0;
    bool is_empty = false;

    *ret_n = 0;
    if (!mk_str_istarts(value, unit))
        return MK__RANGE_IGNORE;
    rest = mk_str_after(value, unit.len);
    while (mk_str_next(&rest, &item)) {
        struct mk__range r;
        enum range_spec range_spec = read_spec(item, size, &r);
        if (range_spec == SPEC_INVALID || ++specs > max)
            return MK__RANGE_IGNORE;
        assert(range_spec != SPEC_SATISFIABLE || (n < max && r.first <= r.last && r.last < size));
        if (range_spec == SPEC_SATISFIABLE)
            ranges[n++] = r;
        is_empty |= range_spec == SPEC_SUFFIX_OF_EMPTY;
    }
    if (is_empty || !specs)
        return MK__RANGE_IGNORE;
    *ret_n = n;
    return n ? MK__RANGE_OK : MK__RANGE_UNSATISFIABLE;
}

/* ── merging (RFC 9110 section 15.3.7.2) ── */

static bool are_near(const struct mk__range *a, const struct mk__range *b, uint64_t gap)
{
    if (a->first > b->first)
        return are_near(b, a, gap);
    return b->first <= a->last || b->first - a->last - 1 < gap;
}

static struct mk__range join_ranges(struct mk__range a, struct mk__range b)
{
    return (struct mk__range){
        .first = a.first < b.first ? a.first : b.first,
        .last = a.last > b.last ? a.last : b.last,
    };
}

/*
 * Adds `r` to `n` ranges, of which no two are near each other. A range that is near the union is near `r` itself,
 * because it was not near the others: one pass is enough. Returns the new number.
 */
static unsigned add_merged(struct mk__range *kept, unsigned n, struct mk__range r, uint64_t gap)
{
    unsigned at = n, left = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!are_near(&kept[i], &r, gap)) {
            kept[left++] = kept[i];
            continue;
        }
        r = join_ranges(r, kept[i]);
        if (at == n)
            at = left++;
    }
    if (at == n)
        at = left++;
    assert(at < left && left <= n + 1);
    kept[at] = r;
    return left;
}

unsigned mk__range_merge(struct mk__range *ranges, unsigned n, uint64_t gap)
{
    unsigned kept = 0;
    assert(gap > 0);
    for (unsigned i = 0; i < n; i++)
        kept = add_merged(ranges, kept, ranges[i], gap);
    return kept;
}
