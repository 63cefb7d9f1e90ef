// SPDX-License-Identifier: Apache-2.0
/*
 * The object `qs`: the pairs of the query string, "?name=value&..." Names and values are decoded (percent-escapes, and
 * "+" for a blank), end with a NUL, and are valid until the request ends. A name without "=" has an empty value. A
 * query with more than 1,000 pairs, or with an encoded NUL, has no pairs: count() tells why.
 */
#ifndef DUDA_QS_H
#define DUDA_QS_H

#include "types.h"

/* Pairs of names and values; also of the object `form`. */
struct duda_api_pairs {
    /* Returns the number of pairs, -E2BIG (too many), -EINVAL (an encoded NUL) or -ENOMEM. */
    int (*count)(duda_request_t *dr);
    /* Returns the value of the first pair of that name; NULL if there is none. */
    const char *(*get)(duda_request_t *dr, const char *name);
    /* Return the value and the name of the n-th pair, from 0; NULL if there are not that many. */
    const char *(*get_id)(duda_request_t *dr, int n);
    const char *(*name)(duda_request_t *dr, int n);
    /* Compares the value of get() with a text. Returns 0 if they are equal, else -1. */
    int (*cmp)(duda_request_t *dr, const char *name, const char *text);
    /*
     * Returns the values of a name that is repeated, one for each call; then NULL. `*at` is 0 before the first call.
     *
     *     int at = 0;
     *     while ((tag = qs->next(dr, "tag", &at))) ...
     */
    const char *(*next)(duda_request_t *dr, const char *name, int *at);
    /*
     * Reads the value of get() as a decimal number, of digits with or without a sign.
     * Returns 0, -ENOENT (no such pair), -EINVAL (not a number) or -ERANGE; `*ret` is then unchanged.
     */
    int (*get_number)(duda_request_t *dr, const char *name, long *ret);
};

/* Levels 0 to 2, by the name "qs.1": nothing is decoded, and a name without "=" is no pair. */
struct duda_api_qs_1 {
    int (*count)(duda_request_t *dr);
    /* Return a string that is valid until the request ends, or NULL. */
    char *(*get)(duda_request_t *dr, const char *name);
    char *(*get_id)(duda_request_t *dr, int n);
    /* Returns 0 if the value is that text, else -1. */
    int (*cmp)(duda_request_t *dr, const char *name, const char *text);
};

DUDA_OBJECT(struct duda_api_pairs, qs)

#endif
