// SPDX-License-Identifier: Apache-2.0
/*
 * The object `param`: the parts of the path that ":name" and "*name" of the route's pattern match. Values are decoded,
 * end with a NUL, and are valid until the request ends.
 */
#ifndef DUDA_PARAM_H
#define DUDA_PARAM_H

#include "types.h"

struct duda_api_param {
    /* Returns the value of a parameter; NULL if the pattern does not have that name. */
    const char *(*get)(duda_request_t *dr, const char *name);
    /*
     * Reads a value as a decimal number, of digits with or without a sign.
     * Returns 0, -ENOENT (no such parameter), -EINVAL (not a number) or -ERANGE; `*ret` is then unchanged.
     */
    int (*get_number)(duda_request_t *dr, const char *name, long *ret);
    /* Returns the number of parameters. */
    int (*count)(duda_request_t *dr);
    /* Returns the length of a value, or -ENOENT. */
    int (*len)(duda_request_t *dr, const char *name);
    /* Return the value and the name of the n-th parameter of the pattern, from 0; NULL if there are not that many. */
    const char *(*get_id)(duda_request_t *dr, int n);
    const char *(*name)(duda_request_t *dr, int n);
};

/* Levels 0 and 1, by the name "param.1": parameters of map->method_new(), by their number from 0. */
struct duda_api_param_1 {
    /* Returns a new string, which the caller frees, or NULL. */
    char *(*get)(duda_request_t *dr, short n);
    /* Returns 0, or -1; `*ret` is then unchanged. */
    int (*get_number)(duda_request_t *dr, short n, long *ret);
    short (*count)(duda_request_t *dr);
    /* Returns -1 if there are not that many. */
    short (*len)(duda_request_t *dr, short n);
};

/* Level 2, by the name "param.2". */
struct duda_api_param_2 {
    /* Returns a string that is valid until the request ends, or NULL. */
    char *(*get)(duda_request_t *dr, const char *name);
    /* Returns 0, or -1; `*ret` is then unchanged. */
    int (*get_number)(duda_request_t *dr, const char *name, long *ret);
    short (*count)(duda_request_t *dr);
};

DUDA_OBJECT(struct duda_api_param, param)

#endif
