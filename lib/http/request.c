// SPDX-License-Identifier: Apache-2.0
/*
 * The request of an exchange: its lifetime, its accessors, and its body on the way to the handler.
 */
#include "http/request.h"

#include <assert.h>
#include <errno.h>

enum { COLLECT_BYTES_FIRST = 1024, RATE_GRACE_MS = 5000 };

static_assert(sizeof(struct mk_request) + 128 <= MK__REQUEST_BYTES, "the block of an exchange has room for an arena");

/* ── lifetime ── */

struct mk_request *mk__request_new(struct mk__context *http, const struct mk__request_ops *ops, void *connection)
{
    struct mk_request *req = mk__pool_get(&http->requests);
    if (!req)
        return NULL;
    *req = (struct mk_request){.ops = ops,
                               .connection = connection,
                               .http = http,
                               .limits = &http->settings->limits,
                               .path = MK_STR(""),
                               .status = 200};
    mk_arena_init(&req->arena, http->account, MK__REQUEST_ARENA_MAX, req->storage,
                  MK__REQUEST_BYTES - offsetof(struct mk_request, storage));
    http->app->on_init(req, http->app_ctx);
    return req;
}

void mk__request_free(struct mk_request *req)
{
    while (req->first)
        mk__response_drop_part(req);
    mk_arena_release(&req->arena);
    req->http->app->on_free(req->worker);
    mk__pool_put(&req->http->requests, req);
}

int mk__request_copy_head(struct mk_request *req)
{
    size_t fields_bytes = req->parse.n_fields * sizeof(*req->fields);
    if (req->head_copied)
        return 0;
    char *copy = mk_arena_alloc(&req->arena, fields_bytes + req->parse.head_len + 1);
    if (!copy)
        return -ENOMEM;
    if (fields_bytes)
        memcpy(copy, req->fields, fields_bytes);
    memcpy(copy + fields_bytes, req->base, req->parse.head_len);
    req->fields = (const struct mk__field *)(void *)copy;
    req->base = copy + fields_bytes;
    req->head_copied = true;
    return 0;
}

int mk__request_decode_path(struct mk_request *req)
{
    struct mk_str raw = req->head.path.len ? mk__span_str(req->base, req->head.path) : MK_STR("/");
    if (req->head.asterisk || req->parse.method == MK_CONNECT) {
        req->path = req->head.asterisk ? MK_STR("*") : MK_STR("");
        return 0;
    }
    char *path = mk_arena_alloc(&req->arena, raw.len + 2);
    if (!path)
        return -503;
    ssize_t n = mk__uri_decode_path(raw, path, raw.len + 2);
    if (n < 0)
        return n == -ENOENT ? -404 : -400;
    req->path = mk_str(path, (size_t)n);
    return 0;
}

/* ── accessors ── */

enum mk_method mk_request_method(const struct mk_request *req)
{
    return req->parse.method;
}

struct mk_str mk_request_method_name(const struct mk_request *req)
{
    return mk__span_str(req->base, req->parse.method_name);
}

struct mk_str mk_request_target(const struct mk_request *req)
{
    return mk__span_str(req->base, req->parse.target);
}

struct mk_str mk_request_path(const struct mk_request *req)
{
    return req->path;
}

struct mk_str mk_request_query(const struct mk_request *req)
{
    return req->head.has_query ? mk__span_str(req->base, req->head.query) : MK_STR_NONE;
}

struct mk_str mk_request_host(const struct mk_request *req)
{
    return req->base ? mk__span_str(req->base, req->head.host) : MK_STR_NONE;
}

unsigned mk_request_major(const struct mk_request *req)
{
    return req->ops->major;
}

unsigned mk_request_minor(const struct mk_request *req)
{
    return req->ops->major == 1 ? req->parse.minor : 0;
}

uint64_t mk_request_began_us(const struct mk_request *req)
{
    return req->began_us;
}

uint64_t mk_response_began_us(const struct mk_request *req)
{
    return req->first_byte_us;
}

uint64_t mk_request_bytes_received(const struct mk_request *req)
{
    return req->parse.head_len + req->body_bytes;
}

uint64_t mk_request_head_bytes(const struct mk_request *req)
{
    return req->parse.head_len;
}

uint64_t mk_response_head_bytes(const struct mk_request *req)
{
    return req->head_bytes;
}

int mk_request_set_user(struct mk_request *req, struct mk_str name)
{
    struct mk_str copy = mk_arena_dup(&req->arena, name);
    if (!copy.p)
        return -ENOMEM;
    req->user = copy;
    return 0;
}

struct mk_str mk_request_user(const struct mk_request *req)
{
    return req->user;
}

struct mk_arena *mk_request_arena(struct mk_request *req)
{
    return &req->arena;
}

struct mk_loop *mk_request_loop(const struct mk_request *req)
{
    return req->http->loop;
}

struct mk_account *mk_request_account(const struct mk_request *req)
{
    return req->http->account;
}

struct mk_str mk_request_mime(const struct mk_request *req, struct mk_str path)
{
    return req->http->app->mime(req, path, req->http->app_ctx);
}

static bool has_name(const struct mk_request *req, const struct mk__field *field, enum mk_header_id id,
                     struct mk_str name)
{
    if (id != MK_HEADER_OTHER)
        return field->id == id;
    return mk_str_ieq(mk__span_str(req->base, field->name), name);
}

/* Returns the value of the field lines with one name; several are joined in the arena. */
static struct mk_str join_values(struct mk_request *req, enum mk_header_id id, struct mk_str name)
{
    struct mk_str found = MK_STR_NONE;
    for (unsigned i = 0; i < req->parse.n_fields; i++) {
        const struct mk__field *field = &req->fields[i];
        if (!has_name(req, field, id, name))
            continue;
        struct mk_str value = mk__span_str(req->base, field->value);
        if (!found.p) {
            found = value;
            continue;
        }
        char *joined = mk_arena_alloc(&req->arena, found.len + 2 + value.len);
        if (!joined)
            return found;
        memcpy(joined, found.p, found.len);
        memcpy(joined + found.len, field->id == MK_HEADER_COOKIE ? "; " : ", ", 2);
        memcpy(joined + found.len + 2, value.p, value.len);
        found = mk_str(joined, found.len + 2 + value.len);
    }
    return found;
}

struct mk_str mk_request_header(struct mk_request *req, enum mk_header_id field)
{
    if (field == MK_HEADER_OTHER || !(req->parse.seen & 1u << field))
        return MK_STR_NONE;
    return join_values(req, field, MK_STR_NONE);
}

struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name)
{
    return join_values(req, MK_HEADER_OTHER, name);
}

bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value)
{
    if (n >= req->parse.n_fields)
        return false;
    *ret_name = mk__span_str(req->base, req->fields[n].name);
    *ret_value = mk__span_str(req->base, req->fields[n].value);
    return true;
}

/* ── the body ── */

void mk_request_read(struct mk_request *req, mk_body_fn fn, void *ctx)
{
    if (req->body_failed)
        return;
    req->body_fn = fn;
    req->body_ctx = ctx;
    if (req->body_done)
        fn(req, MK_STR(""), true, ctx);
    else
        req->ops->wake(req);
}

void mk_request_pause(struct mk_request *req)
{
    req->body_paused = true;
}

void mk_request_resume(struct mk_request *req)
{
    req->body_paused = false;
    req->ops->wake(req);
}

bool mk__request_body_is_slow(const struct mk_request *req)
{
    uint64_t rate = req->limits->body_rate_min;
    uint64_t ms = mk_loop_now_ms(req->http->loop) - req->rate_since_ms;
    return rate && ms > RATE_GRACE_MS && req->rate_bytes < rate * ms / 1000;
}

void mk__request_deliver_body(struct mk_request *req, struct mk_str piece, bool end)
{
    req->body_bytes += piece.len;
    req->rate_bytes += piece.len;
    req->body_done = end;
    if (req->body_fn && !req->body_discard)
        req->body_fn(req, piece, end, req->body_ctx);
}

/* Collects a body in memory. */
struct body_collector {
    struct mk_account *account;
    char *data;
    size_t len, size, bytes_max;
    mk_body_fn fn;
    void *ctx;
};

static void free_collector(void *ctx)
{
    struct body_collector *c = ctx;
    if (c->data)
        mk_account_free(c->account, c->data, c->size);
}

/* Makes room for `need` bytes and a NUL. */
static int grow_collector(struct body_collector *c, size_t need)
{
    size_t size = c->size ? c->size : COLLECT_BYTES_FIRST;
    while (size < need + 1)
        size *= 2;
    if (size > c->bytes_max + 1)
        size = c->bytes_max + 1;
    if (size == c->size)
        return 0;
    char *data = mk_account_alloc(c->account, size);
    if (!data)
        return -ENOMEM;
    if (c->len)
        memcpy(data, c->data, c->len);
    free_collector(c);
    c->data = data;
    c->size = size;
    return 0;
}

static void collect_body(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct body_collector *c = ctx;
    int status = 0;
    if (piece.len > c->bytes_max - c->len)
        status = 413;
    else if (c->len + piece.len + 1 > c->size && grow_collector(c, c->len + piece.len) < 0)
        status = 503;
    if (status) {
        req->body_fn = NULL;
        mk_response_error(req, status);
        return;
    }
    if (piece.len)
        memcpy(c->data + c->len, piece.p, piece.len);
    c->len += piece.len;
    if (!end)
        return;
    c->data[c->len] = '\0';
    c->fn(req, mk_str(c->data, c->len), true, c->ctx);
}

void mk_request_collect(struct mk_request *req, size_t bytes_max, mk_body_fn fn, void *ctx)
{
    if (bytes_max == 0)
        bytes_max = req->limits->collect_bytes_max;
    if (bytes_max > req->limits->body_bytes_max)
        bytes_max = req->limits->body_bytes_max;
    if (req->head.body == MK__BODY_LENGTH && req->head.body_bytes > bytes_max) {
        mk_response_error(req, 413);
        return;
    }
    struct body_collector *c = mk_arena_alloc(&req->arena, sizeof(*c));
    if (!c || mk_arena_defer(&req->arena, free_collector, c) < 0) {
        mk_response_error(req, 503);
        return;
    }
    *c = (struct body_collector){.account = req->http->account, .bytes_max = bytes_max, .fn = fn, .ctx = ctx};
    mk_request_read(req, collect_body, c);
}
