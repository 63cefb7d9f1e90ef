// SPDX-License-Identifier: Apache-2.0
/*
 * What handlers do with bodies and answers in the fuzz targets of connections.
 */
#ifndef MK_FUZZ_HANDLERS_H
#define MK_FUZZ_HANDLERS_H

#include <monkey/request.h>

#include "../unit/accessors.h"
#include "../unit/harness.h"

static void on_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)ctx;
    if (piece.len && (piece.p[0] & 15) == 1) {
        mk_request_pause(req);
        mk_request_resume(req);
    }
    if (end)
        mk_response_end(req);
}

static void on_body(struct mk_request *req, struct mk_str data, bool end, void *ctx)
{
    (void)end;
    (void)ctx;
    if (mk_response_write(req, data) < 0)
        mk_response_abort(req);
    else
        mk_response_end(req);
}

static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    unsigned *left = ctx;
    (void)req;
    if (*left == 0)
        return 0;
    --*left;
    memset(to, 'g', size);
    return (ssize_t)size;
}

/* The number of pieces that fit. */
static void stream(struct mk_request *req, unsigned pieces)
{
    unsigned *left = mk_arena_alloc(mk_request_arena(req), sizeof(*left));
    if (!left || mk_response_generate(req, generate, left) < 0) {
        mk_response_error(req, 503);
        return;
    }
    *left = pieces;
    mk_response_end(req);
}

/* As a plugin with logins: with names and values of the client. */
static inline void replace_headers(struct mk_request *req)
{
    struct mk_header_field headers[3] = {{MK_STR("X-User"), mk_request_query(req)}};
    for (unsigned i = 1; i < MK_COUNT_OF(headers); i++)
        if (!mk_request_header_at(req, i, &headers[i].name, &headers[i].value))
            headers[i] = (struct mk_header_field){MK_STR("X-Gone"), MK_STR_NONE};
    mk_request_replace_headers(req, headers, MK_COUNT_OF(headers));
}

/* As a plugin that forwards requests; the client is invited by what its path says. */
static inline void forward(struct mk_request *req)
{
    static const struct mk_header_field hint = {MK_STR_INIT("Link"), MK_STR_INIT("</a>")};
    struct mk_str path = mk_request_path(req);
    mk_request_wait(req, 1000);
    mk_request_keep_trailers(req);
    mk_request_hold_continue(req);
    mk_request_note(req, MK_STR("note"), mk_request_target(req));
    replace_headers(req);
    mk_response_set_date(req, MK_STR("Sun, 06 Nov 1994 08:49:37 GMT"));
    for (size_t n = path.len; n; n--)
        mk_response_interim(req, path.len % 3 ? 103 : 100, &hint, path.len % 2);
    mk_request_read(req, on_piece, NULL);
}

/* Of `mk_test_fixture`: the hooks of responses and of ends. */
static inline void on_hook(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    call_accessors(req);
}

/* One of seven ways to answer, by a number. */
static inline void answer(struct mk_request *req, unsigned way)
{
    switch (way % 7) {
    case 0:
        mk_request_read(req, on_piece, NULL);
        break;
    case 1:
        mk_request_collect(req, 0, on_body, NULL);
        break;
    case 2:
        stream(req, 3);
        break;
    case 3:
        mk_response_header(req, MK_STR("X-Path"), mk_request_path(req));
        mk_response_error(req, 404);
        break;
    case 4:
        break; /* never: the limit answers */
    case 5:
        forward(req);
        break;
    default:
        mk_response_write_ref(req, MK_STR("hello"));
        mk_response_end(req);
    }
}

#endif
