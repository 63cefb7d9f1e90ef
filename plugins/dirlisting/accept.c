// SPDX-License-Identifier: Apache-2.0
/*
 * Reads Accept (accept.h). Parameters of media types other than q are ignored.
 */
#include "accept.h"

/* Cuts the text before the next semicolon off `rest`; trimmed. */
static struct mk_str cut_parameter(struct mk_str *rest)
{
    const char *end = rest->len ? memchr(rest->p, ';', rest->len) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->len;
    struct mk_str text = mk_str_trim(mk_str(rest->p, n));
    *rest = mk_str(rest->p + n + (end != NULL), rest->len - n - (end != NULL));
    return text;
}

/* Reads a weight in thousandths: "1", "0.5", "1.000". Returns -1 if it is malformed. */
static int read_weight(struct mk_str s)
{
    uint64_t fraction = 0;
    if (!s.len || (s.p[0] != '0' && s.p[0] != '1') || s.len > 5)
        return -1;
    if (s.len > 1 && s.p[1] != '.')
        return -1;
    if (s.len > 2 && !mk_str_u64(mk_str(s.p + 2, s.len - 2), 999, &fraction))
        return -1;
    for (size_t i = s.len; i < 5; i++)
        fraction *= s.len > 2 ? 10 : 0;
    int weight = (s.p[0] - '0') * 1000 + (int)fraction;
    return weight > 1000 ? -1 : weight;
}

/* Returns the weight in the parameters of a media range: 1000 if there is none. */
static int find_weight(struct mk_str parameters)
{
    while (parameters.len) {
        struct mk_str one = cut_parameter(&parameters);
        if (one.len >= 2 && mk_lower(one.p[0]) == 'q' && one.p[1] == '=') {
            int weight = read_weight(mk_str(one.p + 2, one.len - 2));
            return weight < 0 ? 0 : weight;
        }
    }
    return 1000;
}

/* Returns how specifically a media range names a type: 3 (it is the same), 2 (type/ *), 1 (* / *) or 0 (not at all). */
static int rate_range(struct mk_str range, struct mk_str type)
{
    if (mk_str_ieq(range, type))
        return 3;
    if (mk_str_eq(range, MK_STR("*/*")))
        return 1;
    size_t n = range.len < 2 || memcmp(range.p + range.len - 2, "/*", 2) != 0 ? 0 : range.len - 1;
    return n && n <= type.len && mk_str_ieq(mk_str(range.p, n), mk_str(type.p, n)) ? 2 : 0;
}

static int get_weight(struct mk_str value, struct mk_str type)
{
    struct mk_str element;
    int weight = 0, best = 0;
    while (mk_str_next(&value, &element)) {
        struct mk_str range = cut_parameter(&element);
        int rate = rate_range(range, type);
        if (rate > best) {
            best = rate;
            weight = find_weight(element);
        }
    }
    return weight;
}

bool accept_prefers_json(struct mk_str value)
{
    return value.p && get_weight(value, MK_STR("application/json")) > get_weight(value, MK_STR("text/html"));
}
