// SPDX-License-Identifier: Apache-2.0
/*
 * Accept-Encoding (RFC 9110 section 12.5.3): parses the field into a weight for each known coding, and selects codings
 * in the order of their weights. Pure.
 */
#include "http/message/parse.h"
#include "http/message/weight.h"

#include <monkey/request.h>

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
    int weight = MK__WEIGHT_MAX;
    if (semicolon) {
        struct mk_str q = mk_str_trim(mk_str(semicolon + 1, (size_t)(element.p + element.len - semicolon - 1)));
        if (q.len < 2 || mk_lower(q.p[0]) != 'q' || q.p[1] != '=')
            return false;
        weight = mk__weight_parse(mk_str_after(q, 2));
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

    *ret = (struct mk_accept){.weight = {[MK_CODING_IDENTITY] = MK__WEIGHT_MAX}};
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
