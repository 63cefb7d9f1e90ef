// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `qs`, "qs.1" and `form`: the pairs of the query string, and those of a body.
 */
#include "objects.h"
#include "request/request.h"
#include "request/uploads.h"
#include "request/urlencoded.h"
#include "route/dispatch.h"

/* Defines object_NAME, whose pairs `read(dr)` returns. */
#define PAIRS_OBJECT(which, read) \
    REQUEST_CALL(int which##_count(duda_request_t *dr), request_check, #which "->count()", -EINVAL, read(dr)->n) \
    REQUEST_CALL(const char *which##_get(duda_request_t *dr, const char *key), request_check, #which "->get()", NULL, \
                 pairs_get(read(dr), key)) \
    REQUEST_CALL(const char *which##_get_id(duda_request_t *dr, int n), request_check, #which "->get_id()", NULL, \
                 pairs_get_id(read(dr), n)) \
    REQUEST_CALL(const char *which##_name(duda_request_t *dr, int n), request_check, #which "->name()", NULL, \
                 pairs_name(read(dr), n)) \
    REQUEST_CALL(int which##_cmp(duda_request_t *dr, const char *key, const char *text), request_check, \
                 #which "->cmp()", -1, pairs_cmp(read(dr), key, text)) \
    REQUEST_CALL(const char *which##_next(duda_request_t *dr, const char *key, int *at), request_check, \
                 #which "->next()", NULL, pairs_next(read(dr), key, at)) \
    REQUEST_CALL(int which##_get_number(duda_request_t *dr, const char *key, long *ret), request_check, \
                 #which "->get_number()", -ENOENT, pairs_get_number(read(dr), key, ret)) \
    const struct duda_api_pairs object_##which = { \
        .count = which##_count, \
        .get = which##_get, \
        .get_id = which##_get_id, \
        .name = which##_name, \
        .cmp = which##_cmp, \
        .next = which##_next, \
        .get_number = which##_get_number, \
    }

/* ── the query ── */

static const struct pairs *read_query(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->query;
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), mk_request_query(dr->req), true);
    return p;
}

PAIRS_OBJECT(qs, read_query);

/* ── the query, of levels 0 to 2 ── */

static const struct pairs *read_raw_query(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->raw_query;
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), mk_request_query(dr->req), false);
    return p;
}

REQUEST_CALL(int count_raw(duda_request_t *dr), request_check, "qs->count()", 0,
             read_raw_query(dr)->n > 0 ? read_raw_query(dr)->n : 0)

REQUEST_CALL(char *get_raw(duda_request_t *dr, const char *name), request_check, "qs->get()", NULL,
             (char *)(uintptr_t)pairs_get(read_raw_query(dr), name))

REQUEST_CALL(char *get_raw_id(duda_request_t *dr, int n), request_check, "qs->get_id()", NULL,
             (char *)(uintptr_t)pairs_get_id(read_raw_query(dr), n))

REQUEST_CALL(int compare_raw(duda_request_t *dr, const char *name, const char *text), request_check, "qs->cmp()", -1,
             pairs_cmp(read_raw_query(dr), name, text))

const struct duda_api_qs_1 object_qs_1 = {
    .count = count_raw,
    .get = get_raw,
    .get_id = get_raw_id,
    .cmp = compare_raw,
};

/* ── the body ── */

static const struct mk_str form_type = MK_STR_INIT("application/x-www-form-urlencoded");

static const struct pairs *read_form(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->form;
    if (p->is_read || !dr->has_body) /* a callback before the handler may ask before there is a body */
        return p;
    uploads_read(dr);
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), request_has_type(dr, form_type) ? dr->body : MK_STR_NONE, true);
    return p;
}

PAIRS_OBJECT(form, read_form);
