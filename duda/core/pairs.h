// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs of a query or a form, as the objects `qs` and `form` show them. They are read at the first call.
 */
#ifndef DUDA_CORE_PAIRS_H
#define DUDA_CORE_PAIRS_H

#include "urlencoded.h"

#include <monkey/arena.h>

struct pairs {
    bool is_read;
    int n; /* or -errno */
    const struct urlencoded_pair *items;
};

/* Reads pairs, decoded or not, from a copy of the text. */
void pairs_read(struct pairs *p, struct mk_arena *arena, struct mk_str text, bool decoded);

/* Return as the functions of struct duda_api_pairs. */
const char *pairs_get(const struct pairs *p, const char *name);
const char *pairs_get_id(const struct pairs *p, int n);
const char *pairs_name(const struct pairs *p, int n);
int pairs_cmp(const struct pairs *p, const char *name, const char *text);
const char *pairs_next(const struct pairs *p, const char *name, int *at);
int pairs_get_number(const struct pairs *p, const char *name, long *ret);

/* Defines an object whose pairs `read(dr)` returns. */
#define PAIRS_OBJECT(object, read) \
    static int count(duda_request_t *dr) \
    { \
        return read(dr)->n; \
    } \
    static const char *get(duda_request_t *dr, const char *name) \
    { \
        return pairs_get(read(dr), name); \
    } \
    static const char *get_id(duda_request_t *dr, int n) \
    { \
        return pairs_get_id(read(dr), n); \
    } \
    static const char *get_name(duda_request_t *dr, int n) \
    { \
        return pairs_name(read(dr), n); \
    } \
    static int compare(duda_request_t *dr, const char *name, const char *text) \
    { \
        return pairs_cmp(read(dr), name, text); \
    } \
    static const char *get_next(duda_request_t *dr, const char *name, int *at) \
    { \
        return pairs_next(read(dr), name, at); \
    } \
    static int get_number(duda_request_t *dr, const char *name, long *ret) \
    { \
        return pairs_get_number(read(dr), name, ret); \
    } \
    const struct duda_api_pairs object = { \
        .count = count, \
        .get = get, \
        .get_id = get_id, \
        .name = get_name, \
        .cmp = compare, \
        .next = get_next, \
        .get_number = get_number, \
    }

#endif
