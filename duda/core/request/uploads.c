// SPDX-License-Identifier: Apache-2.0
/*
 * The object `multipart`, and the fields that come with files (uploads.h).
 */
#include "common/heap.h"
#include "objects.h"
#include "request/multipart.h"
#include "request/request.h"
#include "request/uploads.h"
#include "route/dispatch.h"

#include <duda/multipart.h>
#include <monkey/base/buf.h>

#include <errno.h>
#include <stdint.h>

enum { PARTS_MAX = 1000, TEXT_BYTES_MAX = 256 * 1024, BLOCK_BYTES = 16 * 1024 };

/* In the arena of the request. */
struct uploads {
    duda_request_t *dr;
    struct multipart parser;
    int result; /* 0 or -errno */
    uint32_t n; /* files of a collected body */
    struct duda_file *items;

    unsigned parts;
    size_t text_bytes; /* of names and fields, which are in blocks on the heap */
    char *block;       /* what is left of the last one */
    size_t block_bytes;
    struct duda_file file; /* the part that is read, also if it is a field */
    bool is_file, has_content;
    struct mk_buf value; /* of a field */

    duda_file_fn fn; /* NULL: the body was collected */
    duda_event_fn end;
    void *data;
};

static struct pairs *get_form(const struct uploads *u)
{
    return &u->dr->dispatch->form;
}

/* Passes a piece of the file on, unless the service has ended the response. */
static void call_service(struct uploads *u, bool end)
{
    if (!request_is_answered(u->dr))
        u->fn(u->dr, &u->file, end, u->data);
}

/* Returns a copy that ends with a NUL and lasts as long as the request; NULL without memory. */
static const char *copy_text(struct uploads *u, struct mk_str text)
{
    if (text.len >= u->block_bytes) {
        size_t bytes = text.len < BLOCK_BYTES ? BLOCK_BYTES : text.len + 1;
        u->block = heap_alloc_until(mk_request_arena(u->dr->req), bytes);
        u->block_bytes = u->block ? bytes : 0;
    }
    char *copy = u->block;
    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    u->block += text.len + 1;
    u->block_bytes -= text.len + 1;
    return copy;
}

/* Counts text that is kept. Returns 0 or -E2BIG; a collected body has its own limit. */
static int count_text(struct uploads *u, size_t bytes)
{
    u->text_bytes += bytes;
    return u->fn && u->text_bytes > TEXT_BYTES_MAX ? -E2BIG : 0;
}

/* ── events of the parser ── */

static int begin_part(const struct multipart_part *part, void *ctx)
{
    static const struct mk_str binary = MK_STR_INIT("application/octet-stream");
    struct uploads *u = ctx;
    size_t bytes = part->name.len + part->file_name.len + part->type.len;
    if (u->parts++ == PARTS_MAX || count_text(u, bytes) < 0)
        return -E2BIG;
    u->file = (struct duda_file){.name = copy_text(u, part->name), .data = ""};
    u->is_file = part->is_file;
    u->has_content = false;
    u->value.len = 0;
    if (part->is_file) {
        u->file.file_name = copy_text(u, part->file_name);
        u->file.type = copy_text(u, part->type.p ? part->type : binary);
    }
    return u->file.name && (!u->is_file || (u->file.file_name && u->file.type)) ? 0 : -ENOMEM;
}

static int add_to_field(struct uploads *u, struct mk_str piece)
{
    if (memchr(piece.p, '\0', piece.len))
        return -EINVAL;
    int err = count_text(u, piece.len);
    if (err < 0)
        return err;
    mk_buf_add(&u->value, piece.p, piece.len);
    return u->value.err;
}

/* A collected body is fed at once, so that the content of a file is one piece of it. */
static int add_content(struct mk_str piece, void *ctx)
{
    struct uploads *u = ctx;
    if (!u->is_file)
        return add_to_field(u, piece);
    assert(u->fn || !u->has_content);
    u->has_content = true;
    u->file.data = piece.p;
    u->file.len = piece.len;
    if (u->fn)
        call_service(u, false);
    return 0;
}

static int add_file(struct uploads *u)
{
    struct duda_file *items = mk_arena_grow(mk_request_arena(u->dr->req), u->items, u->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    u->items = items;
    items[u->n++] = u->file;
    return 0;
}

static int end_part(void *ctx)
{
    struct uploads *u = ctx;
    if (!u->is_file) {
        const char *value = copy_text(u, mk_buf_str(&u->value));
        return value ? pairs_add(get_form(u), mk_request_arena(u->dr->req), u->file.name, value) : -ENOMEM;
    }
    if (!u->has_content && !*u->file.file_name)
        return 0; /* no file was chosen */
    if (!u->fn)
        return add_file(u);
    u->file.data = "";
    u->file.len = 0;
    call_service(u, true);
    return 0;
}

static int parse_piece(struct uploads *u, struct mk_str piece, bool end)
{
    static const struct multipart_events events = {begin_part, add_content, end_part};
    int err = multipart_feed(&u->parser, piece, &events, u);
    return err == 0 && end && !multipart_is_complete(&u->parser) ? -EBADMSG : err;
}

/* ── a collected body ── */

static void release_value(void *ctx)
{
    mk_buf_release(&((struct uploads *)ctx)->value);
}

static struct uploads *new_uploads(duda_request_t *dr)
{
    struct mk_arena *arena = mk_request_arena(dr->req);
    struct uploads *u = mk_arena_zalloc(arena, sizeof(*u));
    if (!u)
        return NULL;
    u->dr = dr;
    mk_buf_init(&u->value, SIZE_MAX / 2);
    return mk_arena_defer(arena, release_value, u) < 0 ? NULL : u;
}

static int begin_body(struct uploads *u)
{
    int err = multipart_init(&u->parser, mk_request_header(u->dr->req, MK_HEADER_CONTENT_TYPE));
    if (err == 0)
        *get_form(u) = (struct pairs){.is_read = true};
    return err;
}

const struct uploads *uploads_read(duda_request_t *dr)
{
    struct dispatch *d = dr->dispatch;
    if (d->uploads || !dr->has_body || !request_has_type(dr, MK_STR("multipart/form-data")))
        return d->uploads;
    struct uploads *u = d->uploads = new_uploads(dr);
    if (!u) {
        d->form = (struct pairs){.is_read = true, .n = -ENOMEM};
        return NULL;
    }
    u->result = begin_body(u) < 0 ? -EBADMSG : parse_piece(u, dr->body, true);
    if (u->result < 0) {
        u->n = 0;
        *get_form(u) = (struct pairs){.is_read = true, .n = u->result};
    }
    return u;
}

static int count_files(duda_request_t *dr)
{
    const struct uploads *u = uploads_read(dr);
    if (!u)
        return dr->dispatch->form.n == -ENOMEM ? -ENOMEM : 0;
    return u->result < 0 ? u->result : (int)u->n;
}

static const struct duda_file *find_file(duda_request_t *dr, int n)
{
    const struct uploads *u = uploads_read(dr);
    return u && n >= 0 && (uint32_t)n < u->n ? &u->items[n] : NULL;
}

static const struct duda_file *find_next(duda_request_t *dr, const char *name, int *at)
{
    const struct duda_file *file = NULL;
    while (name && at && (file = find_file(dr, *at))) {
        (*at)++;
        if (strcmp(file->name, name) == 0)
            return file;
    }
    return NULL;
}

static const struct duda_file *find_first(duda_request_t *dr, const char *name)
{
    int at = 0;
    return find_next(dr, name, &at);
}

REQUEST_CALL(int count_received(duda_request_t *dr), request_check, "multipart->count()", -EINVAL, count_files(dr))

REQUEST_CALL(const struct duda_file *get_file(duda_request_t *dr, const char *name), request_check, "multipart->get()",
             NULL, find_first(dr, name))

REQUEST_CALL(const struct duda_file *get_id(duda_request_t *dr, int n), request_check, "multipart->get_id()", NULL,
             find_file(dr, n))

REQUEST_CALL(const struct duda_file *get_next(duda_request_t *dr, const char *name, int *at), request_check,
             "multipart->next()", NULL, find_next(dr, name, at))

/* ── a body in pieces ── */

/* Returns the status for the error of a body. */
static int get_status(int err)
{
    return err == -ENOMEM ? 503 : err == -E2BIG || err == -EMSGSIZE ? 413 : 400;
}

static void read_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct uploads *u = data;
    if (u->result < 0)
        return;
    u->result = parse_piece(u, mk_str(piece, len), end);
    if (request_is_answered(dr))
        return;
    if (u->result < 0)
        body_reject(dr, get_status(u->result));
    else if (end)
        u->end(dr, u->data);
}

static int begin_read(duda_request_t *dr, uint64_t bytes_max, duda_file_fn fn, duda_event_fn end, void *data)
{
    int err = body_check(dr, "multipart->read()", fn && end);
    if (err < 0)
        return err;
    struct uploads *u = new_uploads(dr);
    if (!u)
        return -ENOMEM;
    u->fn = fn;
    u->end = end;
    u->data = data;
    if (begin_body(u) < 0)
        return -ENOTSUP;
    dr->dispatch->uploads = u;
    return body_read(dr, bytes_max, read_piece, u);
}

const struct duda_api_multipart object_multipart = {
    .count = count_received,
    .get = get_file,
    .get_id = get_id,
    .next = get_next,
    .read = begin_read,
};
