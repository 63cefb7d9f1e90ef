// SPDX-License-Identifier: Apache-2.0
/*
 * Receives bodies (received.h).
 */
#include "received.h"

#include <errno.h>

enum { SMALL_BYTES = 64 * 1024 }; /* a body of a known length up to this reserves no more than it needs */

/* ── receiving ── */

static void fail_receive(struct mk__gw_received *r, int err)
{
    r->has_failed = true;
    mk__gw_received_release(r);
    r->ready(r, err);
}

/* The body is there once it can be read: a part may still be on its way to the file. */
static void complete_receive(struct mk__gw_received *r)
{
    struct mk_str piece;
    ssize_t n = mk_spool_peek(r->spooled->spool, &piece);
    if (n == -EAGAIN)
        return;
    r->is_complete = n >= 0;
    if (n < 0)
        fail_receive(r, (int)n);
    else
        r->ready(r, 0);
}

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct mk__gw_received *r = ctx;
    if (r->has_failed)
        return;
    int err = mk_spool_add(r->spooled->spool, piece, r->bytes_max);
    if (err >= 0 && end)
        err = mk_spool_end(r->spooled->spool);
    if (err < 0)
        fail_receive(r, err);
    else if (end)
        complete_receive(r);
    else if (err == MK_AGAIN)
        mk_request_pause(req);
}

static void on_ready(void *user, unsigned what)
{
    struct mk__gw_received *r = user;
    if (r->is_complete) {
        r->ready(r, 0);
        return;
    }
    if (what & MK_SPOOL_READABLE) {
        complete_receive(r);
        return;
    }
    int err = mk_spool_room(r->spooled->spool);
    if (err < 0)
        fail_receive(r, err);
    else
        mk_request_resume(r->req);
}

/* Bodies that are small, as most are, need neither a file nor the memory for one. */
static struct mk__gw_spooled_limits choose_limits(bool has_length, uint64_t length, uint64_t bytes_max)
{
    if (has_length && length <= SMALL_BYTES)
        return (struct mk__gw_spooled_limits){.memory_max = (size_t)(length + length / 32 + 1024), .is_kept = true};
    return (struct mk__gw_spooled_limits){.memory_max = MK_SPOOL_MEMORY_MIN, .file_max = bytes_max, .is_kept = true};
}

int mk__gw_received_begin(struct mk__gw_received *r, struct mk_request *req, uint64_t bytes_max,
                          mk__gw_received_fn ready)
{
    uint64_t length = 0;
    bool has_length = mk_request_body_length(req, &length);
    if (length > bytes_max)
        return -EFBIG;
    *r = (struct mk__gw_received){.req = req, .bytes_max = bytes_max, .ready = ready};
    const struct mk__gw_spooled_limits limits = choose_limits(has_length, length, bytes_max);
    int err = mk__gw_spooled_open(mk_request_worker(req), &limits, on_ready, r, &r->spooled);
    if (err == 0)
        mk_request_read(req, take_piece, r);
    return err;
}

void mk__gw_received_release(struct mk__gw_received *r)
{
    mk__gw_spooled_close(r->spooled);
    r->spooled = NULL;
}

/* ── sending ── */

uint64_t mk__gw_received_length(const struct mk__gw_received *r)
{
    return mk_spool_length(r->spooled->spool);
}

int mk__gw_received_send(struct mk__gw_received *r, struct mk__gw_upload *u, struct mk_io *io)
{
    while (r->spooled && !mk__gw_upload_is_blocked(u) && !mk__gw_upload_is_taken(u)) {
        struct mk_str piece;
        ssize_t n = mk_spool_peek(r->spooled->spool, &piece);
        if (n == -EAGAIN)
            return mk__gw_upload_flush(u, io);
        if (n < 0)
            return -EDQUOT;
        int err = mk__gw_upload_piece(u, io, piece, mk_spool_left(r->spooled->spool) == (uint64_t)n);
        if (err < 0)
            return err;
        mk_spool_skip(r->spooled->spool, (size_t)n);
    }
    return 0;
}

int mk__gw_received_rewind(struct mk__gw_received *r)
{
    return mk_spool_rewind(r->spooled->spool);
}

void mk__gw_received_move(struct mk__gw_received *to, struct mk__gw_received *from, mk__gw_received_fn ready)
{
    *to = *from;
    to->ready = ready;
    if (to->spooled)
        to->spooled->user = to;
    *from = (struct mk__gw_received){0};
}
