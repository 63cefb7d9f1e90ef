// SPDX-License-Identifier: Apache-2.0
/*
 * The ID of a request, which connects the log lines of several machines: taken from X-Request-Id, or random.
 */
#include "http/request.h"

#include <monkey/base/escape.h>

enum { ID_BYTES_MAX = 128, RANDOM_BYTES = 16 };

/* Allows letters, digits and a few marks of common ID formats: no byte that needs an escape in a log. */
static bool is_valid_id(struct mk_str s)
{
    return s.len <= ID_BYTES_MAX && mk_str_is_name(s, "-_.:/+=@");
}

static struct mk_str make_id(struct mk_request *req)
{
    unsigned char bytes[RANDOM_BYTES];
    char *text = mk_arena_alloc(&req->arena, 2 * RANDOM_BYTES);
    if (!text || mk__random_pool_take(&req->http->random, bytes, sizeof(bytes)) < 0)
        return MK_STR_NONE;
    mk_hex_write(text, bytes, sizeof(bytes));
    return mk_str(text, 2 * RANDOM_BYTES);
}

struct mk_str mk_request_id(struct mk_request *req)
{
    if (req->id.p)
        return req->id;
    struct mk_str sent_id = req->base ? mk_request_header_by_name(req, MK_STR("X-Request-Id")) : MK_STR_NONE;
    req->id = is_valid_id(sent_id) ? mk_arena_dup(&req->arena, sent_id) : make_id(req);
    return req->id;
}
