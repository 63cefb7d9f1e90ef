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
static struct mk_str split_word(struct mk_str *rest, char end)
{
    const char *at = rest->len ? memchr(rest->p, end, rest->len) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->len;
    struct mk_str text = mk_str(rest->p, n);
    *rest = at ? mk_str(at + 1, rest->len - n - 1) : mk_str(rest->p ? rest->p + n : NULL, 0);
    return text;
}

struct query query_parse(struct mk_str text)
{
    struct query q = {.sort = -1, .order = -1};
    while (text.len) {
        struct mk_str value = split_word(&text, '&'), name = split_word(&value, '=');
        if (mk_str_eq(name, MK_STR("sort")) && q.sort < 0)
            q.sort = find_word(order_sorts, value);
        else if (mk_str_eq(name, MK_STR("order")) && q.order < 0)
            q.order = find_word(order_directions, value);
        else if (mk_str_eq(name, MK_STR("archive")) && !q.archive.p)
            q.archive = value;
    }
    return q;
}
