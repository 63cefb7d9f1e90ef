// SPDX-License-Identifier: Apache-2.0
/*
 * What only some exchanges need (http/request_extra.h): the date of an origin, their own wait, notes.
 */
#include "http/request_extra.h"

#include "http/message/date.h"

#include <errno.h>

static void release_extra(void *ctx)
{
    struct mk_request *req = ctx;
    while (req->extra->first_interim)
        mk__interim_drop_first(req);
    mk_buf_release(&req->extra->trailers);
}

struct mk__extra *mk__extra_get(struct mk_request *req)
{
    if (req->extra)
        return req->extra;
    struct mk__extra *extra = mk_arena_zalloc(&req->arena, sizeof(*extra));
    if (!extra || mk_arena_defer(&req->arena, release_extra, req) < 0)
        return NULL;
    return req->extra = extra;
}

/* ── the date of an origin ── */

int mk_response_set_date(struct mk_request *req, struct mk_str date)
{
    int64_t seconds;
    if (req->output_state >= MK__OUTPUT_HEAD)
        return -EALREADY;
    /* most origins have the right time, which the server has formatted for this second */
    if (!mk_str_eq(date, mk__context_date(req->http)) &&
        mk__date_parse(date, mk_loop_wall_seconds(req->http->loop), &seconds) < 0)
        return -EINVAL;
    struct mk__extra *extra = mk__extra_get(req);
    struct mk_str copy = extra ? mk_arena_dup(&req->arena, date) : MK_STR_NONE;
    if (!copy.p)
        return -ENOMEM;
    extra->date = copy;
    return 0;
}

/* ── its own wait ── */

void mk__extra_set_limits(struct mk_request *req, const struct mk__http_limits *limits)
{
    struct mk__extra *extra = req->extra;
    if (limits != &extra->limits)
        extra->limits = *limits;
    extra->limits.timeout_ms[MK__TIMEOUT_HANDLER] = extra->wait_ms;
    req->limits = &extra->limits;
}

int mk_request_wait(struct mk_request *req, uint32_t ms)
{
    if (ms == 0 || ms > MK_REQUEST_WAIT_MAX_MS)
        return -EINVAL;
    struct mk__extra *extra = mk__extra_get(req);
    if (!extra)
        return -ENOMEM;
    extra->wait_ms = ms;
    mk__extra_set_limits(req, req->limits);
    req->ops->restart_timer(req);
    return 0;
}

/* ── notes ── */

static struct mk__note *find_note(const struct mk_request *req, struct mk_str name)
{
    struct mk__note *note = req->extra ? req->extra->notes : NULL;
    while (note && !mk_str_eq(note->name, name))
        note = note->next;
    return note;
}

/* Adds a note without a value. Returns 0, -ENOBUFS or -ENOMEM. */
static int add_note(struct mk_request *req, struct mk_str name, struct mk__note **ret_note)
{
    struct mk__extra *extra = mk__extra_get(req);
    if (extra && extra->n_notes == MK_NOTES_MAX)
        return -ENOBUFS;
    struct mk__note *note = extra ? mk_arena_alloc(&req->arena, sizeof(*note)) : NULL;
    if (!note)
        return -ENOMEM;
    *note = (struct mk__note){.next = extra->notes, .name = name};
    extra->notes = *ret_note = note;
    extra->n_notes++;
    return 0;
}

/* Makes room for a value: notes that are replaced again and again take no more memory than their longest value. */
static int reserve_value(struct mk_request *req, struct mk__note *note, size_t size)
{
    if (note->value.p && size <= note->size)
        return 0;
    char *storage = mk_arena_alloc(&req->arena, size);
    if (!storage)
        return -ENOMEM;
    note->value = mk_str(storage, 0);
    note->size = size;
    return 0;
}

int mk_request_note(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    if (!name.len)
        return -EINVAL;
    if (value.len > MK_NOTE_BYTES_MAX)
        return -EMSGSIZE;
    struct mk__note *note = find_note(req, name);
    int err = note ? 0 : add_note(req, name, &note);
    if (err == 0)
        err = reserve_value(req, note, value.len + 1);
    if (err < 0)
        return err;
    char *storage = (char *)(uintptr_t)note->value.p;
    if (value.len)
        memmove(storage, value.p, value.len);
    note->value = mk_str(storage, value.len);
    return 0;
}

struct mk_str mk_request_get_note(const struct mk_request *req, struct mk_str name)
{
    const struct mk__note *note = find_note(req, name);
    return note ? note->value : MK_STR_NONE;
}

void mk_request_end_with_client(struct mk_request *req)
{
    req->ends_with_client = true;
}

void mk_request_splice(struct mk_request *req, mk_body_fn fn, mk_body_splice_fn splice, void *ctx)
{
    bool is_plain = req->ops->major == 1 && !req->ops->io(req)->transport->handshake;
    mk_request_read(req, fn, ctx);
    if (is_plain && req->head.body == MK__BODY_LENGTH)
        req->body_splice = splice;
}
