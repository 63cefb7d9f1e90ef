// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `qs` and "qs.1": the pairs of the query string.
 */
#include "objects.h"
#include "request/request.h"
#include "route/dispatch.h"

static const struct pairs *read_query(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->query;
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), mk_request_query(dr->req), true);
    return p;
}

PAIRS_OBJECT(object_qs, "qs", read_query);

/* ── levels 0 to 2 ── */

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
