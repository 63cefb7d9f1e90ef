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

static const struct pairs *read_raw_query(duda_request_t *dr, const char *call)
{
    if (request_check(dr, call) < 0)
        return &pairs_none;
    struct pairs *p = &dr->dispatch->raw_query;
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), mk_request_query(dr->req), false);
    return p;
}

static int count_raw(duda_request_t *dr)
{
    int n = read_raw_query(dr, "qs->count()")->n;
    return n < 0 ? 0 : n;
}

static char *get_raw(duda_request_t *dr, const char *name)
{
    return (char *)(uintptr_t)pairs_get(read_raw_query(dr, "qs->get()"), name);
}

static char *get_raw_id(duda_request_t *dr, int n)
{
    return (char *)(uintptr_t)pairs_get_id(read_raw_query(dr, "qs->get_id()"), n);
}

static int compare_raw(duda_request_t *dr, const char *name, const char *text)
{
    return pairs_cmp(read_raw_query(dr, "qs->cmp()"), name, text);
}

const struct duda_api_qs_1 object_qs_1 = {
    .count = count_raw,
    .get = get_raw,
    .get_id = get_raw_id,
    .cmp = compare_raw,
};
