// SPDX-License-Identifier: Apache-2.0
/*
 * Sorts entries. The order is total, because no two names of a folder are the same: the sorting algorithm
 * need not be stable.
 */
#include "listing.h"

#include <stdlib.h>

/*
 * Reads the query. The values that count need no percent-encoding, so nothing is decoded.
 */
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

const char *const order_sorts[] = {
    [LISTING_BY_NAME] = "name", [LISTING_BY_SIZE] = "size", [LISTING_BY_DATE] = "date", NULL};
const char *const order_directions[] = {"asc", "desc", NULL};

static struct mk_str trim_zeros(struct mk_str s)
{
    while (s.len > 1 && s.p[0] == '0' && mk_is_digit(s.p[1]))
        s = mk_str_after(s, 1);
    return s;
}

static size_t count_digits(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_is_digit(s.p[n]))
        n++;
    return n;
}

/* Compares the numbers with which both begin, and cuts them off if they are equal. */
static int compare_numbers(struct mk_str *a, struct mk_str *b)
{
    struct mk_str x = trim_zeros(*a), y = trim_zeros(*b);
    size_t n = count_digits(x), m = count_digits(y);
    int r = n != m ? (n < m ? -1 : 1) : memcmp(x.p, y.p, n);
    *a = mk_str_after(x, n);
    *b = mk_str_after(y, m);
    return r;
}

int order_compare_names(struct mk_str a, struct mk_str b)
{
    struct mk_str x = a, y = b;
    while (x.len && y.len) {
        int r;
        if (mk_is_digit(*x.p) && mk_is_digit(*y.p)) {
            r = compare_numbers(&x, &y);
        } else {
            r = (unsigned char)mk_lower(*x.p) - (unsigned char)mk_lower(*y.p);
            x = mk_str_after(x, 1);
            y = mk_str_after(y, 1);
        }
        if (r)
            return r;
    }
    return x.len || y.len ? (x.len > 0) - (y.len > 0) : mk_str_compare(a, b);
}

struct sort_key {
    enum listing_sort sort;
    bool descending;
};

static int compare_numbers_of(const struct listing_entry *a, const struct listing_entry *b, enum listing_sort sort)
{
    if (sort == LISTING_BY_SIZE)
        return (a->bytes > b->bytes) - (a->bytes < b->bytes);
    if (sort == LISTING_BY_DATE)
        return (a->mtime_seconds > b->mtime_seconds) - (a->mtime_seconds < b->mtime_seconds);
    return 0;
}

static int compare_entries(const void *left, const void *right, void *ctx)
{
    const struct listing_entry *a = *(struct listing_entry *const *)left, *b = *(struct listing_entry *const *)right;
    const struct sort_key *key = ctx;
    if (a->is_dir != b->is_dir)
        return a->is_dir ? -1 : 1;
    int r = compare_numbers_of(a, b, key->sort),
        by_name = order_compare_names(mk_str(a->name, a->name_len), mk_str(b->name, b->name_len));
    if (key->sort == LISTING_BY_NAME)
        return key->descending ? -by_name : by_name;
    return r == 0 ? by_name : key->descending ? -r : r;
}

void order_sort(struct listing *listing, enum listing_sort sort, bool descending)
{
    struct sort_key key = {sort, descending};
    if (listing->n)
        qsort_r(listing->entries, listing->n, sizeof(struct listing_entry *), compare_entries, &key);
}
