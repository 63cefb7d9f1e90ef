// SPDX-License-Identifier: Apache-2.0
/*
 * The response of an exchange: status, headers, the queue of parts, and complete responses that many handlers need
 * (errors, redirects, Allow). The protocol sends it.
 */
#include "http/block.h"
#include "http/request_extra.h"
#include "http/message/date.h"
#include "http/file_read.h"
#include "http/request.h"
#include "http/message/status.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

enum {
    FILE_PART_COST = 4096, /* it holds a descriptor */
    GATHERED_BYTES_MAX = 256,
    GATHER_BYTES = 4096,
};

/* ── status and headers ── */

int mk_response_set_status(struct mk_request *req, int status)
{
    if (status < 200 || status > 999)
        return -EINVAL;
    if (mk_response_head_sent(req))
        return -EALREADY;
    req->status = (uint16_t)status;
    return 0;
}

bool mk_response_head_sent(const struct mk_request *req)
{
    return req->output_state >= MK__OUTPUT_HEAD;
}

int mk_response_get_status(const struct mk_request *req)
{
    return req->status;
}

/* The server itself sends the fields that control framing and connection. */
bool mk_response_header_reserved(struct mk_str name)
{
    static const struct mk_str own[] = {MK_STR("connection"), MK_STR("content-length"), MK_STR("date"),
                                        MK_STR("keep-alive"), MK_STR("server"),         MK_STR("transfer-encoding")};
    static const uint32_t lengths = 1u << 4 | 1u << 6 | 1u << 10 | 1u << 14 | 1u << 17; /* of these names */
    if (name.len >= 32 || !(lengths >> name.len & 1))
        return false;
    return mk_str_is_any(name, own, MK_COUNT_OF(own));
}

static int grow_headers(struct mk_request *req)
{
    unsigned max = req->headers_max ? req->headers_max * 2u : MK__HEADERS_INLINE;
    if (max > MK__HEADERS_MAX)
        return -ENOMEM;
    struct mk_header_field *headers = mk_arena_alloc(&req->arena, max * sizeof(*headers));
    if (!headers)
        return -ENOMEM;
    if (req->headers_len)
        memcpy(headers, req->headers, req->headers_len * sizeof(*headers));
    req->headers = headers;
    req->headers_max = (uint8_t)max;
    return 0;
}

bool mk__response_is_valid_field(struct mk_str name, struct mk_str value)
{
    return mk__parse_is_token(name) && mk__parse_has_value_bytes(value) && !mk_response_header_reserved(name);
}

int mk__response_add_header(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    assert(mk__response_is_valid_field(name, value));
    if (req->output_state >= MK__OUTPUT_HEAD)
        return -EALREADY;
    if (req->headers_len == req->headers_max && grow_headers(req) < 0)
        return -ENOMEM;
    req->headers[req->headers_len++] = (struct mk_header_field){name, value};
    return 0;
}

int mk_response_header_ref(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    if (req->output_state >= MK__OUTPUT_HEAD)
        return -EALREADY;
    return mk__response_is_valid_field(name, value) ? mk__response_add_header(req, name, value) : -EINVAL;
}

int mk_response_header_parsed(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    return mk__response_add_header(req, name, value);
}

int mk_response_header(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    struct mk_str copy = mk_arena_dup(&req->arena, value);
    return copy.p ? mk_response_header_ref(req, name, copy) : -ENOMEM;
}

int mk_response_header_date(struct mk_request *req, struct mk_str name, int64_t seconds)
{
    char date[MK__DATE_BYTES + 1];
    return mk_response_header(req, name, mk_str(date, mk__date_format(seconds, date)));
}

void mk_date_write(struct mk_buf *out, int64_t seconds)
{
    char date[MK__DATE_BYTES + 1];
    mk_buf_add(out, date, mk__date_format(seconds, date));
}

/* ── the block ── */

void mk__response_set_block(struct mk_request *req, const struct mk_response_block *block)
{
    assert(!req->block && block->length_at <= block->text.len);
    req->block = block;
    req->block_len = block->length_at;
    mk_response_set_length(req, block->content_length);
}

void mk__response_drop_block_content(struct mk_request *req)
{
    uint32_t content_at = mk__block_content_at(req->block);
    if (req->block_len > content_at)
        req->block_len = content_at;
}

/* Makes rows of the lines, because one of them is to change. Without memory the response is aborted. */
static void expand_block(struct mk_request *req)
{
    struct mk_str lines = mk__request_block_lines(req), name, value;
    req->block = NULL;
    while (mk__block_next(&lines, &name, &value))
        if (mk__response_add_header(req, name, value) < 0)
            mk_response_abort(req);
}

static struct mk_str find_in_block(const struct mk_request *req, struct mk_str name)
{
    return req->block ? mk__block_find(mk__request_block_lines(req), name) : MK_STR_NONE;
}

/* ── reading and removing headers ── */

struct mk_str mk_response_get_header(const struct mk_request *req, struct mk_str name)
{
    struct mk_str value = find_in_block(req, name);
    if (value.p)
        return value;
    for (unsigned i = 0; i < req->headers_len; i++)
        if (mk_str_ieq(req->headers[i].name, name))
            return req->headers[i].value;
    return MK_STR_NONE;
}

int mk_response_trailer(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    if (req->output_state == MK__OUTPUT_COMPLETE)
        return -EALREADY;
    if (!mk__response_is_valid_field(name, value))
        return -EINVAL;
    if (!req->trailers)
        req->trailers = mk_arena_zalloc(&req->arena, sizeof(*req->trailers));
    struct mk_str copy = mk_arena_dup(&req->arena, value);
    if (!copy.p || !req->trailers || req->trailers->n == MK__TRAILERS_MAX)
        return -ENOMEM;
    req->trailers->items[req->trailers->n++] = (struct mk_header_field){name, copy};
    return 0;
}

bool mk_response_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value)
{
    struct mk_str lines = mk__request_block_lines(req);
    while (mk__block_next(&lines, ret_name, ret_value))
        if (n-- == 0)
            return true;
    if (n >= req->headers_len)
        return false;
    *ret_name = req->headers[n].name;
    *ret_value = req->headers[n].value;
    return true;
}

static void remove_rows(struct mk_request *req, struct mk_str name)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < req->headers_len; i++)
        if (!mk_str_ieq(req->headers[i].name, name))
            req->headers[kept++] = req->headers[i];
    req->headers_len = (uint8_t)kept;
}

void mk_response_header_remove(struct mk_request *req, struct mk_str name)
{
    if (req->output_state < MK__OUTPUT_HEAD && find_in_block(req, name).p)
        expand_block(req);
    remove_rows(req, name);
}

int mk_response_set_length(struct mk_request *req, uint64_t bytes)
{
    if (req->output_state >= MK__OUTPUT_HEAD)
        return -EALREADY;
    req->length = bytes;
    req->framing = MK__FRAMING_LENGTH;
    return 0;
}

bool mk_response_get_length(const struct mk_request *req, uint64_t *ret_bytes)
{
    uint64_t sum = 0;
    *ret_bytes = req->length;
    if (req->framing == MK__FRAMING_LENGTH || req->response_state == MK__RESPONSE_OPEN || req->filter || req->trailers)
        return req->framing == MK__FRAMING_LENGTH; /* trailers need the chunked coding */
    for (const struct mk__part *part = req->first; part; part = part->next) {
        if (part->kind == MK__PART_GENERATOR)
            return false;
        sum += part->left;
    }
    *ret_bytes = sum;
    return true;
}

void mk_response_close_connection(struct mk_request *req)
{
    req->close_wanted = true;
}

/* Removes the headers of the 200 that a 304 does not repeat, whichever handler has set them (RFC 9110 section 15.4.5).
 */
static void remove_content_headers(struct mk_request *req)
{
    req->framing = MK__FRAMING_NONE;
    if (req->block)
        mk__response_drop_block_content(req);
    remove_rows(req, MK_STR("Content-Type"));
    remove_rows(req, MK_STR("Content-Encoding"));
    remove_rows(req, MK_STR("Accept-Ranges"));
}

MK_HOT void mk__response_run_hooks(struct mk_request *req)
{
    if (req->output_state >= MK__OUTPUT_HOOKED)
        return;
    req->output_state = MK__OUTPUT_HOOKED;
    req->http->app->on_response(req, req->http->app_ctx);
    if (req->status == 304)
        remove_content_headers(req);
    if (req->no_ranges)
        mk_response_header_remove(req, MK_STR("Accept-Ranges"));
}

MK_HOT void mk__response_decide_body(struct mk_request *req)
{
    bool has_body = mk__status_has_body(req->status);
    assert(req->output_state == MK__OUTPUT_HOOKED);
    req->framing = mk_response_get_length(req, &req->length) ? MK__FRAMING_LENGTH : MK__FRAMING_NONE;
    if (req->status == 205) { /* has no content, but may have a length: RFC 9110 section 15.3.6 */
        req->length = 0;
        req->framing = MK__FRAMING_LENGTH;
    }
    req->bodyless = req->parse.method == MK_HEAD || req->status == 205 || !has_body;
}

/* ── the queue ── */

/* Returns why add_part() failed. */
static int get_part_error(const struct mk_request *req)
{
    return req->response_state == MK__RESPONSE_OPEN ? -ENOMEM : -EALREADY;
}

static MK_HOT struct mk__part *add_part(struct mk_request *req, enum mk__part_kind kind)
{
    assert(!req->first == !req->last && (!req->last || !req->last->next));
    if (req->response_state != MK__RESPONSE_OPEN)
        return NULL;
    struct mk__part *part = req->free_parts;
    if (part)
        req->free_parts = part->next;
    else
        part = mk_arena_alloc(&req->arena, sizeof(*part));
    if (!part)
        return NULL;
    *part = (struct mk__part){.kind = (uint8_t)kind, .fd = -1};
    if (req->last)
        req->last->next = part;
    else
        req->first = part;
    req->last = part;
    return part;
}

/* Counts `cost` bytes more for the last part, and has it sent. */
static int queue_part(struct mk_request *req, struct mk__part *part, size_t cost)
{
    assert(part == req->last);
    part->cost += cost;
    req->queued_bytes += cost;
    req->ops->wake(req);
    if (req->queued_bytes <= MK__QUEUED_BYTES_HIGH)
        return 0;
    req->writable_wanted = true;
    return MK_AGAIN;
}

/*
 * Small pieces after others in memory are gathered in parts of GATHER_BYTES, because each part takes room in the arena
 * of the exchange, which is small.
 */
static bool is_gathered(const struct mk_request *req, size_t len)
{
    return req->last && req->last->kind == MK__PART_MEMORY && len <= GATHERED_BYTES_MAX;
}

/* Returns where `len` bytes can be added to the last part; NULL if it has no room for them. */
static char *get_room(const struct mk_request *req, size_t len)
{
    const struct mk__part *part = req->last;
    if (!part || part->kind != MK__PART_MEMORY || !part->gathers || req->response_state != MK__RESPONSE_OPEN)
        return NULL;
    size_t used = (size_t)(part->data - part->heap) + part->left;
    return part->heap_bytes - used >= len ? part->heap + used : NULL;
}

MK_HOT int mk_response_write_ref(struct mk_request *req, struct mk_str data)
{
    if (data.len == 0)
        return 0;
    if (is_gathered(req, data.len))
        return mk_response_write(req, data);
    struct mk__part *part = add_part(req, MK__PART_MEMORY);
    if (!part)
        return get_part_error(req);
    part->data = data.p;
    part->left = data.len;
    return queue_part(req, part, data.len);
}

/* Adds a part of `size` bytes, whose first ones are `data`. */
static int write_part(struct mk_request *req, struct mk_str data, size_t size)
{
    char *heap = mk_account_alloc(req->http->account, size);
    struct mk__part *part = heap ? add_part(req, MK__PART_MEMORY) : NULL;
    if (!part) {
        mk_account_free(req->http->account, heap, size);
        return get_part_error(req);
    }
    memcpy(heap, data.p, data.len);
    part->data = part->heap = heap;
    part->heap_bytes = size;
    part->left = data.len;
    part->gathers = true;
    return queue_part(req, part, data.len);
}

int mk_response_write(struct mk_request *req, struct mk_str data)
{
    if (data.len == 0)
        return 0;
    char *room = get_room(req, data.len);
    bool gathered = !room && is_gathered(req, data.len);
    if (!room && !gathered && data.len <= GATHERED_BYTES_MAX && data.len <= (size_t)(req->arena.end - req->arena.at)) {
        /* a few bytes fit into what is left of the arena's chunk */
        const char *copy = memcpy(mk_arena_alloc(&req->arena, data.len), data.p, data.len);
        return mk_response_write_ref(req, mk_str(copy, data.len));
    }
    if (!room)
        return write_part(req, data, gathered ? GATHER_BYTES : data.len);
    memcpy(room, data.p, data.len);
    req->last->left += data.len;
    return queue_part(req, req->last, data.len);
}

static struct mk__part *add_file_part(struct mk_request *req, uint64_t offset, uint64_t length)
{
    struct mk__part *part = length ? add_part(req, MK__PART_FILE) : NULL;
    if (!part)
        return NULL;
    part->at = part->cached_until = offset;
    part->left = length;
    return part;
}

int mk__response_write_borrowed_file(struct mk_request *req, int fd, uint64_t offset, uint64_t length)
{
    struct mk__part *part = add_file_part(req, offset, length);
    if (!part)
        return length ? get_part_error(req) : 0;
    part->fd = fd;
    part->borrowed = true;
    return queue_part(req, part, FILE_PART_COST);
}

int mk_response_write_file(struct mk_request *req, int fd, uint64_t offset, uint64_t length)
{
    struct mk__part *part = add_file_part(req, offset, length);
    if (!part) {
        close(fd);
        return length ? get_part_error(req) : 0;
    }
    part->fd = fd;
    return queue_part(req, part, FILE_PART_COST);
}

int mk__response_write_same_file(struct mk_request *req, struct mk__part *before, uint64_t offset, uint64_t length)
{
    struct mk__part *part = add_file_part(req, offset, length);
    if (!part)
        return length ? get_part_error(req) : 0;
    assert(before->kind == MK__PART_FILE && !before->fd_heir);
    before->fd_heir = part;
    return queue_part(req, part, 0);
}

int mk_response_generate(struct mk_request *req, mk_generate_fn fn, void *ctx)
{
    struct mk__part *part = add_part(req, MK__PART_GENERATOR);
    assert(fn);
    if (!part)
        return get_part_error(req);
    part->generate = fn;
    part->ctx = ctx;
    return queue_part(req, part, 0);
}

int mk_response_splice(struct mk_request *req, mk_generate_fn fn, mk_splice_fn splice, void *ctx)
{
    int r = mk_response_generate(req, fn, ctx);
    if (r >= 0)
        req->last->splice = splice;
    return r;
}

MK_HOT void mk__response_drop_part(struct mk_request *req)
{
    struct mk__part *part = req->first;
    assert(part && part->cost <= req->queued_bytes);
    if (req->file_read)
        mk__file_read_cancel(req->file_read); /* it reads for this part */
    req->file_read = NULL;
    req->first = part->next;
    if (!req->first)
        req->last = NULL;
    req->queued_bytes -= part->cost;
    /* while a disk thread reads for the part, the read job owns the descriptor (fd is -1) and closes it */
    assert(part->fd < 0 || part->kind == MK__PART_FILE ||
           part->kind == MK__PART_MEMORY); /* a read job makes it memory */
    if (part->fd >= 0 && part->fd_heir) {
        part->fd_heir->fd = part->fd;
        part->fd_heir->borrowed = part->borrowed;
    } else if (part->fd >= 0 && !part->borrowed) {
        close(part->fd);
    }
    if (part->heap)
        mk_account_free(req->http->account, part->heap, part->heap_bytes);
    part->next = req->free_parts;
    req->free_parts = part;
}

void mk__response_drop_parts(struct mk_request *req)
{
    while (req->first)
        mk__response_drop_part(req);
}

void mk_response_wake(struct mk_request *req)
{
    req->ops->wake(req);
}

void mk_response_on_writable(struct mk_request *req, mk_writable_fn fn, void *ctx)
{
    req->writable_fn = fn;
    req->writable_ctx = ctx;
}

void mk__response_call_writable(struct mk_request *req)
{
    assert(mk__request_wants_writable(req));
    req->writable_wanted = false;
    req->writable_fn(req, req->writable_ctx);
}

static void end_response(struct mk_request *req)
{
    if (req->response_state == MK__RESPONSE_OPEN)
        req->response_state = MK__RESPONSE_ENDED;
}

void mk_response_end(struct mk_request *req)
{
    end_response(req);
    req->ops->wake(req);
}

void mk_response_abort(struct mk_request *req)
{
    req->response_state = MK__RESPONSE_FAILED;
    req->ops->wake(req);
}

/* ── complete responses ── */

static void reset_body(struct mk_request *req)
{
    mk__response_drop_parts(req);
    req->framing = MK__FRAMING_NONE;
    req->is_default_error = false;
    req->filter = NULL;
    req->trailers = NULL;
}

static void reset_response(struct mk_request *req, int status)
{
    reset_body(req);
    req->headers_len = 0;
    req->block = NULL;
    req->status = (uint16_t)status;
    mk__extra_reset_date(req);
}

void mk__response_reset_to_status(struct mk_request *req, int status)
{
    assert(req->output_state < MK__OUTPUT_HEAD && status >= 200 && status <= 599);
    reset_response(req, status);
    req->length = 0;
    req->framing = MK__FRAMING_LENGTH;
    end_response(req);
}

/*
 * Discards what was prepared of the response. Returns false if the response has ended already, which stays as it is, or
 * if its head was sent: it is aborted then.
 */
static bool restart_response(struct mk_request *req, int status)
{
    if (req->response_state != MK__RESPONSE_OPEN)
        return false;
    if (req->output_state >= MK__OUTPUT_HEAD) {
        mk_response_abort(req);
        return false;
    }
    reset_response(req, status);
    return true;
}

static void add_error_page(struct mk_request *req)
{
    struct mk_buf page;
    char *storage = mk_arena_alloc(&req->arena, MK__STATUS_PAGE_BYTES);
    if (!storage || !mk__status_has_body(req->status) || req->status == 205)
        return; /* no page */
    mk_buf_init_fixed(&page, storage, MK__STATUS_PAGE_BYTES);
    mk__status_write_page(&page, req->status);
    if (page.err == 0 && mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) == 0)
        req->is_default_error = mk_response_write_ref(req, mk_buf_str(&page)) >= 0;
}

bool mk_response_is_default_error(const struct mk_request *req)
{
    return req->is_default_error;
}

int mk_response_replace(struct mk_request *req, struct mk_str type, struct mk_str body)
{
    uint8_t state = req->response_state;
    if (req->output_state >= MK__OUTPUT_HEAD || state == MK__RESPONSE_FAILED)
        return -EALREADY;
    reset_body(req);
    mk_response_header_remove(req, MK_STR("Content-Type"));
    mk_response_header_remove(req, MK_STR("Content-Encoding"));
    req->response_state = MK__RESPONSE_OPEN;
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), type);
    if (err == 0)
        err = mk_response_write_ref(req, body);
    req->response_state = state;
    return err < 0 ? err : 0;
}

void mk_response_error(struct mk_request *req, int status)
{
    assert(status >= 200 && status <= 599);
    if (!restart_response(req, status))
        return;
    add_error_page(req);
    mk_response_end(req);
}

void mk_response_redirect(struct mk_request *req, int status, struct mk_str location)
{
    if (!restart_response(req, status))
        return;
    if (mk_response_header(req, MK_STR("Location"), location) < 0)
        req->status = 500;
    add_error_page(req);
    mk_response_end(req);
}

void mk_response_method_not_allowed(struct mk_request *req, struct mk_str methods)
{
    int status = mk_request_method(req) == MK_OPTIONS ? 204 : 405;
    if (!restart_response(req, status))
        return;
    if (mk_response_header(req, MK_STR("Allow"), methods) < 0)
        req->status = 500;
    add_error_page(req);
    mk_response_end(req);
}
