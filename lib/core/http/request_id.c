// SPDX-License-Identifier: Apache-2.0
/*
 * The ID of a request, which connects the log lines of several machines: taken from X-Request-Id, or random.
 */
#include "http/request.h"

#include <monkey/base/escape.h>

enum { ID_BYTES_MAX = 128, RANDOM_BYTES = 16 };

struct mk_str mk_request_id(struct mk_request *req)
{
    if (req->id.p)
        return req->id;
    struct mk_str sent_id = req->base ? mk_request_header_by_name(req, MK_STR("X-Request-Id")) : MK_STR_NONE;
    /* letters, digits and a few marks of common ID formats: no byte that needs an escape in a log */
    if (sent_id.len <= ID_BYTES_MAX && mk_str_is_name(sent_id, "-_.:/+=@"))
        return req->id = mk_arena_dup(&req->arena, sent_id);
    unsigned char bytes[RANDOM_BYTES];
    char *text = mk_arena_alloc(&req->arena, 2 * RANDOM_BYTES);
    if (!text || mk__random_pool_take(&req->http->random, bytes, sizeof(bytes)) < 0)
        return MK_STR_NONE;
    mk_hex_write(text, bytes, sizeof(bytes));
    return req->id = mk_str(text, 2 * RANDOM_BYTES);
}
