// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs of a query or a form, as the objects `qs` and `form` show them. They are read at the first call.
 */
#ifndef DUDA_CORE_REQUEST_PAIRS_H
#define DUDA_CORE_REQUEST_PAIRS_H

#include "request/urlencoded.h"

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

/* What the functions of an object get from a call that was a mistake. */
extern const struct pairs pairs_none;

/* Defines an object of that name whose pairs `read(dr)` returns. */
#define PAIRS_OBJECT(object, label, read) \
    static const struct pairs *check(duda_request_t *dr, const char *call) \
    { \
        return request_check(dr, call) < 0 ? &pairs_none : read(dr); \
    } \
    static int count(duda_request_t *dr) \
    { \
        return check(dr, label "->count()")->n; \
    } \
    static const char *get(duda_request_t *dr, const char *key) \
    { \
        return pairs_get(check(dr, label "->get()"), key); \
    } \
    static const char *get_id(duda_request_t *dr, int n) \
    { \
        return pairs_get_id(check(dr, label "->get_id()"), n); \
    } \
    static const char *get_name(duda_request_t *dr, int n) \
    { \
        return pairs_name(check(dr, label "->name()"), n); \
    } \
    static int compare(duda_request_t *dr, const char *key, const char *text) \
    { \
        return pairs_cmp(check(dr, label "->cmp()"), key, text); \
    } \
    static const char *get_next(duda_request_t *dr, const char *key, int *at) \
    { \
        return pairs_next(check(dr, label "->next()"), key, at); \
    } \
    static int get_number(duda_request_t *dr, const char *key, long *ret) \
    { \
        return pairs_get_number(check(dr, label "->get_number()"), key, ret); \
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
