// SPDX-License-Identifier: Apache-2.0
/*
 * Accept (<monkey/base/accept.h>).
 */
#include <monkey/base/accept.h>

#include "http/message/weight.h"

/* One element of the list. */
struct range {
    struct mk_str type, version;
    int weight; /* in thousandths */
};

/* Cuts the text before the next semicolon that is not in a quoted string off `rest`; trimmed. */
static struct mk_str split_parameter(struct mk_str *rest)
{
    bool quoted = false;
    size_t n = 0;
    for (; n < rest->len && (quoted || rest->p[n] != ';'); n++) {
        if (rest->p[n] == '"')
            quoted = !quoted;
        else if (quoted && rest->p[n] == '\\' && n + 1 < rest->len)
            n++;
    }
    struct mk_str one = mk_str_trim(mk_str(rest->p, n));
    n += n < rest->len; /* the semicolon */
    *rest = mk_str_after(*rest, n);
    return one;
}

/* Returns false if a parameter has another name. The value is without the quotes around it. */
static bool split_name(struct mk_str parameter, struct mk_str name, struct mk_str *ret_value)
{
    if (parameter.len <= name.len || parameter.p[name.len] != '=' || !mk_str_ieq(mk_str(parameter.p, name.len), name))
        return false;
    struct mk_str value = mk_str(parameter.p + name.len + 1, parameter.len - name.len - 1);
    bool quoted = value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"';
    *ret_value = quoted ? mk_str(value.p + 1, value.len - 2) : value;
    return true;
}

static struct range read_range(struct mk_str element)
{
    struct range r = {.type = split_parameter(&element), .weight = MK__WEIGHT_MAX};
    struct mk_str value;
    while (element.len) {
        struct mk_str parameter = split_parameter(&element);
        if (split_name(parameter, MK_STR("q"), &value))
            r.weight = mk__weight_parse(value);
        else if (split_name(parameter, MK_STR("version"), &value))
            r.version = value;
    }
    return r;
}

/* Returns how specifically a range names an offer: 0 (not at all) to 4 (type and version). */
static unsigned rate_range(const struct range *r, const struct mk_accept_offer *offer)
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

/* Returns the weight of an offer; 0 or less: it is not acceptable. */
static int find_weight(struct mk_str value, const struct mk_accept_offer *offer)
{
    struct mk_str element;
    unsigned best = 0;
    int weight = 0;
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

unsigned mk_accept_choose(struct mk_str value, const struct mk_accept_offer *offers, unsigned n, unsigned fallback)
{
    unsigned chosen = fallback;
    int highest = 0;
    for (unsigned i = 0; value.p && i < n; i++) {
        int weight = find_weight(value, &offers[i]);
        if (weight > highest) {
            highest = weight;
            chosen = i;
        }
    }
    return chosen;
}
