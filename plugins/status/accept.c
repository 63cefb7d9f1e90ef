// SPDX-License-Identifier: Apache-2.0
/*
 * Reads Accept (accept.h). Parameters other than `version` and `q` are ignored.
 */
#include "accept.h"

/* One element of the list. */
struct range {
    struct mk_str type, version;
    unsigned weight; /* in thousandths */
};

/* Cuts the text before the next semicolon off `rest`; trimmed. */
static struct mk_str cut_parameter(struct mk_str *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->p[n] != ';')
        n++;
    struct mk_str one = mk_str_trim(mk_str(rest->p, n));
    *rest = n < rest->len ? mk_str(rest->p + n + 1, rest->len - n - 1) : MK_STR_NONE;
    return one;
}

/* Returns a weight in thousandths: "1", "0.5", "1.000"; 0 if it is malformed. */
static unsigned read_weight(struct mk_str s)
{
    static const unsigned scale[] = {0, 100, 10, 1};
    uint64_t whole, fraction = 0;
    if (!s.len || !mk_str_u64(mk_str(s.p, 1), 1, &whole) || s.len > 5 || (s.len > 1 && s.p[1] != '.'))
        return 0;
    if (s.len > 2 && !mk_str_u64(mk_str(s.p + 2, s.len - 2), 999, &fraction))
        return 0;
    unsigned weight = (unsigned)(whole * 1000 + (s.len > 2 ? fraction * scale[s.len - 2] : 0));
    return weight <= 1000 ? weight : 0;
}

static bool cut_name(struct mk_str parameter, struct mk_str name, struct mk_str *ret_value)
{
    if (parameter.len <= name.len || parameter.p[name.len] != '=' || !mk_str_ieq(mk_str(parameter.p, name.len), name))
        return false;
    *ret_value = mk_str(parameter.p + name.len + 1, parameter.len - name.len - 1);
    if (ret_value->len >= 2 && ret_value->p[0] == '"' && ret_value->p[ret_value->len - 1] == '"')
        *ret_value = mk_str(ret_value->p + 1, ret_value->len - 2);
    return true;
}

static struct range read_range(struct mk_str element)
{
    struct range r = {.type = cut_parameter(&element), .weight = 1000};
    struct mk_str value;
    while (element.len) {
        struct mk_str parameter = cut_parameter(&element);
        if (cut_name(parameter, MK_STR("q"), &value))
            r.weight = read_weight(value);
        else if (cut_name(parameter, MK_STR("version"), &value))
            r.version = value;
    }
    return r;
}

/* Returns how specifically a range names the offer: 0 (not at all) to 4 (type and version). */
static unsigned rate_range(const struct range *r, const struct accept_offer *offer)
{
    if (mk_str_ieq(r->type, offer->type)) {
        if (!r->version.p || !offer->version.p)
            return 3;
        return mk_str_eq(r->version, offer->version) ? 4 : 0;
    }
    if (offer->only_by_name)
        return 0;
    if (mk_str_eq(r->type, MK_STR("*/*")))
        return 1;
    size_t n = r->type.len;
    bool is_wildcard = n > 2 && memcmp(r->type.p + n - 2, "/*", 2) == 0 && n - 1 <= offer->type.len;
    return is_wildcard && mk_str_ieq(mk_str(r->type.p, n - 1), mk_str(offer->type.p, n - 1)) ? 2 : 0;
}

/* The most specific range decides; among equals the highest weight. */
static unsigned find_weight(struct mk_str value, const struct accept_offer *offer)
{
    struct mk_str element;
    unsigned best = 0, weight = 0;
    while (mk_str_next(&value, &element)) {
        struct range r = read_range(element);
        unsigned rate = rate_range(&r, offer);
        if (rate > best || (rate && rate == best && r.weight > weight)) {
            best = rate;
            weight = r.weight;
        }
    }
    return weight;
}

unsigned accept_choose(struct mk_str value, const struct accept_offer *offers, unsigned n, unsigned fallback)
{
    unsigned chosen = fallback, highest = 0;
    for (unsigned i = 0; value.p && i < n; i++) {
        unsigned weight = find_weight(value, &offers[i]);
        if (weight > highest) {
            highest = weight;
            chosen = i;
        }
    }
    return chosen;
}
