// SPDX-License-Identifier: Apache-2.0
/*
 * The Range field. Responsible for its syntax, for clamping to a size, and for merging; whether a range may
 * be served at all (method, If-Range, validators) is the caller's decision.
 */
#include "http/range.h"

enum spec { GARBLED, UNSATISFIABLE, WHOLE_OF_NOTHING, SATISFIABLE };

/* Cuts the digits off `s`. A number beyond 64 bits is as good as the largest one. False without a digit. */
static bool cut_number(struct mk_str *s, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < s->len && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->p[i] - '0');
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            value = UINT64_MAX;
    }
    *s = mk_str(s->p + i, s->len - i);
    *ret_value = value;
    return i > 0;
}

static bool cut_dash(struct mk_str *s)
{
    if (!s->len || s->p[0] != '-')
        return false;
    *s = mk_str(s->p + 1, s->len - 1);
    return true;
}

static enum spec read_suffix(struct mk_str s, uint64_t size, struct mk__range *r)
{
    uint64_t len;
    if (!cut_number(&s, &len) || s.len)
        return GARBLED;
    if (!len)
        return UNSATISFIABLE;
    if (!size)
        return WHOLE_OF_NOTHING;
    *r = (struct mk__range){.first = len < size ? size - len : 0, .last = size - 1};
    return SATISFIABLE;
}

static enum spec read_spec(struct mk_str s, uint64_t size, struct mk__range *r)
{
    if (cut_dash(&s))
        return read_suffix(s, size, r);
    r->last = UINT64_MAX;
    if (!cut_number(&s, &r->first) || !cut_dash(&s))
        return GARBLED;
    if (s.len && (!cut_number(&s, &r->last) || s.len || r->last < r->first))
        return GARBLED;
    if (r->first >= size)
        return UNSATISFIABLE;
    if (r->last >= size)
        r->last = size - 1;
    return SATISFIABLE;
}

enum mk__range_result mk__range_parse(struct mk_str value, uint64_t size, struct mk__range *ranges, unsigned max,
                                      unsigned *ret_n)
{
    const struct mk_str unit = MK_STR("bytes=");
    struct mk_str rest, item;
    unsigned n = 0, specs = 0;
    bool whole = false;

    *ret_n = 0;
    if (value.len < unit.len || !mk_str_ieq(mk_str(value.p, unit.len), unit))
        return MK__RANGE_IGNORE;
    rest = mk_str(value.p + unit.len, value.len - unit.len);
    while (mk_str_next(&rest, &item)) {
        struct mk__range r;
        enum spec spec = read_spec(item, size, &r);
        if (spec == GARBLED || ++specs > max)
            return MK__RANGE_IGNORE;
        if (spec == SATISFIABLE)
            ranges[n++] = r;
        whole |= spec == WHOLE_OF_NOTHING;
    }
    if (whole || !specs)
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

static struct mk__range unite(struct mk__range a, struct mk__range b)
{
    return (struct mk__range){
        .first = a.first < b.first ? a.first : b.first,
        .last = a.last > b.last ? a.last : b.last,
    };
}

/*
 * Adds `r` to `n` ranges that are far from each other. Whoever is near to the union is near to `r` itself,
 * since nobody was near to the others: one pass is enough.
 */
static unsigned add_merged(struct mk__range *kept, unsigned n, struct mk__range r, uint64_t gap)
{
    unsigned place = n, left = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!are_near(&kept[i], &r, gap)) {
            kept[left++] = kept[i];
            continue;
        }
        r = unite(r, kept[i]);
        if (place == n)
            place = left++;
    }
    if (place == n)
        place = left++;
    kept[place] = r;
    return left;
}

unsigned mk__range_merge(struct mk__range *ranges, unsigned n, uint64_t gap)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++)
        kept = add_merged(ranges, kept, ranges[i], gap);
    return kept;
}
