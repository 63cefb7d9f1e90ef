// SPDX-License-Identifier: Apache-2.0
/*
 * Passes trailers of requests on (trailers.h).
 */
#include "trailers.h"

#include "headers.h"

#include <monkey/base/buf.h>

static struct mk_str get_announced(struct mk_request *req)
{
    return mk_request_header_by_name(req, MK_STR("Trailer"));
}

bool trailers_are_announced(struct mk_request *req)
{
    return get_announced(req).len > 0;
}

/* A header that the section sets must not come as a trailer of the client, either. */
static bool is_passed(const struct field_changes *changes, struct mk_str name)
{
    return header_may_be_trailer(name) && !fields_replace(changes, name);
}

void trailers_announce(struct mk_buf *out, struct mk_request *req, const struct field_changes *changes)
{
    struct mk_str announced = get_announced(req), name;
    const char *before = "Trailer: ";
    while (mk_str_next(&announced, &name)) {
        if (!mk_str_is_token(name) || !is_passed(changes, name))
            continue;
        mk_buf_addf(out, "%s%.*s", before, MK_STR_ARG(name));
        before = ", ";
    }
    if (*before == ',')
        mk_buf_adds(out, MK_STR("\r\n"));
}

struct mk_str trailers_make_chunk(struct mk_request *req, const struct field_changes *changes)
{
    enum { CHUNK_BYTES_MAX = MK_REQUEST_TRAILER_BYTES_MAX + 4 * MK_REQUEST_TRAILERS_MAX + 16 };
    struct mk_str announced = get_announced(req), name, value;
    struct mk_buf chunk;
    mk_buf_init(&chunk, CHUNK_BYTES_MAX);
    mk_buf_adds(&chunk, MK_STR("0\r\n"));
    for (unsigned n = 0; mk_request_trailer_at(req, n, &name, &value); n++)
        if (is_passed(changes, name) && mk_str_list_has(announced, name))
            mk_buf_addf(&chunk, "%.*s: %.*s\r\n", MK_STR_ARG(name), MK_STR_ARG(value));
    mk_buf_adds(&chunk, MK_STR("\r\n"));
    struct mk_str copy = chunk.err ? MK_STR_NONE : mk_arena_dup(mk_request_arena(req), mk_buf_str(&chunk));
    mk_buf_release(&chunk);
    return copy;
}
