// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs of a query or a form, as the objects `qs` and `form` show them. They are read at the first call.
 */
#ifndef DUDA_CORE_REQUEST_PAIRS_H
#define DUDA_CORE_REQUEST_PAIRS_H

#include "request/urlencoded.h"

#include <monkey/base/arena.h>

#include <errno.h>

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

/* Defines an object of that name whose pairs `read(dr)` returns. */
#define PAIRS_OBJECT(object, label, read) \
    REQUEST_CALL(int count(duda_request_t *dr), request_check, label "->count()", -EINVAL, read(dr)->n) \
    REQUEST_CALL(const char *get(duda_request_t *dr, const char *key), request_check, label "->get()", NULL, \
                 pairs_get(read(dr), key)) \
    REQUEST_CALL(const char *get_id(duda_request_t *dr, int n), request_check, label "->get_id()", NULL, \
                 pairs_get_id(read(dr), n)) \
    REQUEST_CALL(const char *get_name(duda_request_t *dr, int n), request_check, label "->name()", NULL, \
                 pairs_name(read(dr), n)) \
    REQUEST_CALL(int compare(duda_request_t *dr, const char *key, const char *text), request_check, label "->cmp()", \
                 -1, pairs_cmp(read(dr), key, text)) \
    REQUEST_CALL(const char *get_next(duda_request_t *dr, const char *key, int *at), request_check, label "->next()", \
                 NULL, pairs_next(read(dr), key, at)) \
    REQUEST_CALL(int get_number(duda_request_t *dr, const char *key, long *ret), request_check, \
                 label "->get_number()", -ENOENT, pairs_get_number(read(dr), key, ret)) \
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
