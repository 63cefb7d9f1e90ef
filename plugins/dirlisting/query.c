// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the query (query.h). The values that count need no percent-encoding, so nothing is decoded.
 */
#include "query.h"

#include "order.h"

static int find_word(const char *const *words, struct mk_str text)
{
    for (int i = 0; words[i]; i++)
        if (mk_str_eq(mk_str_c(words[i]), text))
            return i;
    return -1;
}

/* Cuts the text before `end` off `rest`. */
struct query query_parse(struct mk_str text)
{
    struct query q = {.sort = -1, .order = -1};
    while (text.len) {
        struct mk_str value = mk_str_split(&text, '&'), name = mk_str_split(&value, '=');
        if (mk_str_eq(name, MK_STR("sort")) && q.sort < 0)
            q.sort = find_word(order_sorts, value);
        else if (mk_str_eq(name, MK_STR("order")) && q.order < 0)
            q.order = find_word(order_directions, value);
        else if (mk_str_eq(name, MK_STR("archive")) && !q.archive.p)
            q.archive = value;
    }
    return q;
}
