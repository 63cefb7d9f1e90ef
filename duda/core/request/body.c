// SPDX-License-Identifier: Apache-2.0
/*
 * The body of a request in pieces: request->read(), pause(), resume().
 */
#include "common/api_error.h"
#include "common/current.h"
#include "request/output.h"
#include "request/request.h"
#include "route/dispatch.h"

#include <errno.h>

struct piece_reader {
    struct duda_request *dr;
    duda_piece_fn fn; /* NULL: the body is too long */
    void *data;
    uint64_t bytes, bytes_max;
};

void body_reject(struct duda_request *dr, int status)
{
    output_stop(dr);
    mk_response_error(dr->req, status);
}

static void reject_length(struct piece_reader *r)
{
    r->fn = NULL;
    body_reject(r->dr, 413);
}

static void pass_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct piece_reader *r = ctx;
    (void)req;
    if (!r->fn)
        return;
    assert(r->dr->is_read && r->bytes <= r->bytes_max);
    if (piece.len > r->bytes_max - r->bytes) {
        reject_length(r);
        return;
    }
    r->bytes += piece.len;
    r->dr->is_reading = !end;
    struct current outer = request_enter(r->dr);
    r->fn(r->dr, piece.len ? piece.p : "", piece.len, end, r->data);
    current_leave(outer);
}

static bool is_announced_longer(struct mk_request *req, uint64_t bytes_max)
{
    uint64_t bytes;
    struct mk_str value = mk_request_header(req, MK_HEADER_CONTENT_LENGTH);
    return value.p && mk_str_u64(value, UINT64_MAX, &bytes) && bytes > bytes_max;
}

/* Returns true in callbacks before a handler that gets the whole body: it is read for the handler. */
static bool is_too_early(const struct duda_request *dr)
{
    const struct dispatch *d = dr->dispatch;
    return d->route && !d->route->stream_body && !d->is_handled;
}

int body_check(const struct duda_request *dr, const char *call, bool has_functions)
{
    int err = request_check_lasting(dr, call);
    if (err == 0 && (!has_functions || is_too_early(dr)))
        err = api_error_report(dr->worker, call, -EINVAL);
    if (err < 0)
        return err;
    return dr->is_read || dr->output.state == OUTPUT_ENDED ? -EALREADY : 0;
}

int body_read(duda_request_t *dr, uint64_t bytes_max, duda_piece_fn fn, void *data)
{
    int err = body_check(dr, "request->read()", fn);
    if (err < 0)
        return err;
    struct piece_reader *r = mk_arena_alloc(mk_request_arena(dr->req), sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct piece_reader){dr, fn, data, 0, bytes_max ? bytes_max : UINT64_MAX};
    dr->is_read = dr->is_reading = true;
    if (is_announced_longer(dr->req, r->bytes_max))
        reject_length(r);
    else if (dr->has_body)
        pass_piece(dr->req, dr->body, true, r);
    else
        mk_request_read(dr->req, pass_piece, r);
    return 0;
}

void body_pause(duda_request_t *dr)
{
    if (request_check_lasting(dr, "request->pause()") == 0)
        mk_request_pause(dr->req);
}

void body_resume(duda_request_t *dr)
{
    if (request_check_lasting(dr, "request->resume()") == 0)
        mk_request_resume(dr->req);
}
