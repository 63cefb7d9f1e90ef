// SPDX-License-Identifier: Apache-2.0
/*
 * Names and values of query strings and forms (application/x-www-form-urlencoded, URL Standard section 5.1), and
 * decimal numbers: pure functions; and what a request keeps of its query and of its form.
 */
#ifndef DUDA_CORE_REQUEST_URLENCODED_H
#define DUDA_CORE_REQUEST_URLENCODED_H

#include <monkey/base/arena.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum { URLENCODED_PAIRS_MAX = 1000 };

/* Both are C strings. */
struct urlencoded_pair {
    const char *name, *value;
};

/* Returns how many pairs a text has at most; 0 for an empty one. */
size_t urlencoded_bound(const char *text, size_t len);

/*
 * Splits a text at "&" and the first "=" of each pair, and decodes escapes and "+", in place; text[len] must be a NUL.
 * Keeps a "%" that two hexadecimal digits do not follow. Skips empty pairs; a name without "=" has the value "".
 * Returns the number of pairs, -E2BIG (more than `max`) or -EINVAL (a NUL, encoded or not).
 */
int urlencoded_decode(char *text, size_t len, struct urlencoded_pair *pairs, size_t max);

/*
 * Splits a text in the same way, but decodes nothing, skips what has no "=", and ignores what follows the pair `max`.
 * Returns the number of pairs.
 */
int urlencoded_split(char *text, size_t len, struct urlencoded_pair *pairs, size_t max);

/*
 * Reads a decimal number of digits only, with or without a sign.
 * Returns 0, -EINVAL or -ERANGE; `*ret` is then unchanged.
 */
int urlencoded_number(const char *text, long *ret);

/* ── the pairs of a query or a form, which are read at the first call ── */

struct pairs {
    bool is_read;
    int n; /* or -errno */
    struct urlencoded_pair *items;
};

/* Reads pairs, decoded or not, from a copy of the text. */
void pairs_read(struct pairs *p, struct mk_arena *arena, struct mk_str text, bool decoded);

/* Adds a pair to those of this function only; both texts must last as long as the arena. Returns 0 or -ENOMEM. */
int pairs_add(struct pairs *p, struct mk_arena *arena, const char *name, const char *value);

/* Return as the functions of struct duda_api_pairs. */
const char *pairs_get(const struct pairs *p, const char *name);
const char *pairs_get_id(const struct pairs *p, int n);
const char *pairs_name(const struct pairs *p, int n);
int pairs_cmp(const struct pairs *p, const char *name, const char *text);
const char *pairs_next(const struct pairs *p, const char *name, int *at);
int pairs_get_number(const struct pairs *p, const char *name, long *ret);

#endif
