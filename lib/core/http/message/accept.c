// SPDX-License-Identifier: Apache-2.0
/*
 * What a client prefers: Accept-Encoding, and Accept (<monkey/base/accept.h>). Pure.
 */
#include "http/message/parse.h"

#include <monkey/base/accept.h>
#include <monkey/request.h>

/* ── weights (RFC 9110 section 12.4.2) ── */

enum { WEIGHT_MAX = 1000 };

/* Returns a qvalue in thousandths: "1", "0.5", "1.000"; -1 if it is malformed. */
static int parse_weight(struct mk_str s)
{
    int value = 0;
    if (!s.len || s.len > 5 || (s.len > 1 && s.p[1] != '.'))
        return -1;
    for (size_t i = 0; i < 5; i++) {
        char c = i < s.len ? s.p[i] : '0';
        if (i == 1)
            continue;
        if (c < '0' || c > '9')
            return -1;
        value = value * 10 + (c - '0');
    }
    return value <= WEIGHT_MAX ? value : -1;
}

/* ── Accept-Encoding (RFC 9110 section 12.5.3): a weight for each known coding ── */

enum { WEIGHT_MIN = 1, WEIGHT_UNSET = 0xffff, ANY = MK_CODING_COUNT, UNKNOWN };

static const char names[][12] = {
    [MK_CODING_IDENTITY] = "identity",
    [MK_CODING_GZIP] = "gzip",
    [MK_CODING_BR] = "br",
    [MK_CODING_ZSTD] = "zstd",
    [ANY] = "*",
    [UNKNOWN] = "x-gzip",
};

struct mk_str mk_coding_name(enum mk_coding coding)
{
    return mk_str_c(names[coding]);
}

/* Returns the row of a coding. x-gzip is equivalent to gzip (RFC 9110 section 8.4.1.3). */
static unsigned find_coding(struct mk_str name)
{
    unsigned i = 0;
    while (i <= UNKNOWN && !mk_str_ieq(mk_str_c(names[i]), name))
        i++;
    return i == UNKNOWN ? MK_CODING_GZIP : i < UNKNOWN ? i : UNKNOWN;
}

/* Reads one element: coding [ OWS ";" OWS "q=" qvalue ]. Returns false if it is malformed. */
static bool read_coding(struct mk_str element, uint16_t weights[])
{
    const char *semicolon = memchr(element.p, ';', element.len);
    struct mk_str name = mk_str_trim(mk_str(element.p, semicolon ? (size_t)(semicolon - element.p) : element.len));
    int weight = WEIGHT_MAX;
    if (semicolon) {
        struct mk_str q = mk_str_trim(mk_str(semicolon + 1, (size_t)(element.p + element.len - semicolon - 1)));
        if (q.len < 2 || mk_lower(q.p[0]) != 'q' || q.p[1] != '=')
            return false;
        weight = parse_weight(mk_str_after(q, 2));
    }
    if (weight < 0 || !mk__parse_is_token(name))
        return false;
    weights[find_coding(name)] = (uint16_t)weight;
    return true;
}

void mk_accept_encoding(struct mk_str value, struct mk_accept *ret)
{
    uint16_t weights[UNKNOWN + 1];
    struct mk_str element;

    *ret = (struct mk_accept){.weight = {[MK_CODING_IDENTITY] = WEIGHT_MAX}};
    if (!value.p)
        return;
    memset(weights, 0xff, sizeof(weights));
    while (mk_str_next(&value, &element))
        if (!read_coding(element, weights))
            return;
    bool any = weights[ANY] != WEIGHT_UNSET;
    for (unsigned i = 0; i < MK_CODING_COUNT; i++) {
        uint16_t default_weight = any ? weights[ANY] : i == MK_CODING_IDENTITY ? WEIGHT_MIN : 0;
        ret->weight[i] = weights[i] != WEIGHT_UNSET ? weights[i] : default_weight;
    }
}

bool mk_accept_next(struct mk_accept *accept, const uint8_t *offered, unsigned n, enum mk_coding *ret)
{
    unsigned best = accept->weight[MK_CODING_IDENTITY], found = MK_CODING_IDENTITY;
    best -= best > 0; /* an equal weight is enough */
    for (unsigned i = 0; i < n; i++) {
        if (accept->weight[offered[i]] <= best)
            continue;
        found = offered[i];
        best = accept->weight[found];
    }
    accept->weight[found] = found ? 0 : accept->weight[found];
    *ret = found;
    return found != MK_CODING_IDENTITY;
}

/* ── Accept ── */

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
    if (!mk_str_istarts(parameter, name) || parameter.len == name.len || parameter.p[name.len] != '=')
        return false;
    struct mk_str value = mk_str(parameter.p + name.len + 1, parameter.len - name.len - 1);
    bool quoted = value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"';
    *ret_value = quoted ? mk_str(value.p + 1, value.len - 2) : value;
    return true;
}

static struct range read_range(struct mk_str element)
{
    struct range r = {.type = split_parameter(&element), .weight = WEIGHT_MAX};
    struct mk_str value;
    while (element.len) {
        struct mk_str parameter = split_parameter(&element);
        if (split_name(parameter, MK_STR("q"), &value))
            r.weight = parse_weight(value);
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
