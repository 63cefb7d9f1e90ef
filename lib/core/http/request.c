// SPDX-License-Identifier: Apache-2.0
/*
 * The request of an exchange: its lifetime, its accessors, and its body on the way to the handler.
 */
#include "http/request.h"

#include <monkey/base/buf.h>
#include <monkey/base/escape.h>
#include "base/arena.h"
#include "http/count.h"

#include <assert.h>
#include <errno.h>

enum {
    COLLECT_BYTES_FIRST = 1024,
    RATE_GRACE_MS = 5000,
    UPGRADE_BYTES = 352, /* what an exchange that becomes a tunnel needs after its head, such as that of the response */
};

static_assert(sizeof(struct mk_request) + 128 <= MK__REQUEST_BYTES, "the block of an exchange has room for an arena");

/* ── lifetime ── */

MK_HOT struct mk_request *mk__request_new(struct mk__context *http, const struct mk__request_ops *ops, void *connection)
{
    assert(ops);
    struct mk_request *req = mk__pool_get(&http->requests);
    if (!req)
        return NULL;
    memset(req, 0, offsetof(struct mk_request, client));
    req->ops = ops;
    req->connection = connection;
    req->http = http;
    req->limits = &http->settings->limits;
    req->path = MK_STR("");
    req->status = 200;
    mk_arena_init(&req->arena, http->account, MK__REQUEST_ARENA_MAX, req->storage,
                  MK__REQUEST_BYTES - offsetof(struct mk_request, storage));
    http->app->on_init(req, http->app_ctx);
    return req;
}

/* Counts a request that is answered with a status of the server, without a plugin. 408 has its own counters. */
static void count_rejected(const struct mk_request *req, int status)
{
    if (status == 408)
        return;
    mk__count_one(req->http, status == 400   ? MK__COUNT_REFUSED_MALFORMED
                             : status == 413 ? MK__COUNT_REFUSED_BODY
                             : status == 414 ? MK__COUNT_REFUSED_TARGET
                             : status == 431 ? MK__COUNT_REFUSED_HEAD
                                             : MK__COUNT_REFUSED_OTHER);
}

void mk__request_reject(struct mk_request *req, int status)
{
    count_rejected(req, status);
    if (status == 413)
        mk_request_set_reason(req, MK_REASON_BODY);
    mk_response_error(req, status);
}

MK_HOT void mk__request_begin(struct mk_request *req, int status, bool body_ended)
{
    const struct mk__http_app *app = req->http->app;
    assert(req->base && req->body_state == MK__BODY_STATE_READING && req->output_state == MK__OUTPUT_NONE);
    assert(status == 0 || (status >= 400 && status <= 599));
    if (status) {
        req->body_state = MK__BODY_STATE_FAILED;
        mk__request_reject(req, status);
        return;
    }
    status = -mk__request_decode_path(req);
    app->on_head(req, req->http->app_ctx);
    if (MK_UNLIKELY(status == 404))
        status = mk__encoded_slash_decode(req);
    if (body_ended || req->head.body == MK__BODY_NONE)
        req->body_state = MK__BODY_STATE_DONE;
    mk__request_restart_rate(req);
    if (req->head.body_bytes > req->limits->body_bytes_max)
        mk__request_reject(req, 413);
    if (status)
        mk__request_reject(req, status);
    if (req->response_state == MK__RESPONSE_OPEN)
        app->on_request(req, req->http->app_ctx);
}

MK_HOT void mk__request_finish(struct mk_request *req)
{
    req->http->app->on_done(req, req->http->app_ctx);
    mk__request_free(req);
}

void mk__request_free(struct mk_request *req)
{
    if (req->first)
        mk__response_drop_parts(req);
    assert(req->queued_bytes == 0 && !req->file_read);
    mk_arena_release(&req->arena);
    if (req->holds_owned)
        req->owner->put(req->owned);
    req->http->app->on_free(req->worker);
    mk__pool_put(&req->http->requests, req);
}

/* Tells whether a field is kept in a tunnel: those of the handshake have done their work. */
static bool is_kept(const struct mk_request *req, const struct mk_field *field)
{
    struct mk_str name = mk_span_str(req->base, field->name);
    if (field->id == MK_HEADER_CONNECTION || field->id == MK_HEADER_UPGRADE)
        return false;
    return !mk_str_istarts(name, MK_STR("Sec-WebSocket-"));
}

static struct mk_span append_span(char *text, size_t *at, const char *base, struct mk_span span)
{
    memcpy(text + *at, base + span.at, span.len);
    span.at = (uint16_t)*at;
    *at += span.len;
    return span;
}

/* Copies what replaces a field in a tunnel, and the host in its value. */
static struct mk_field append_field(struct mk_request *req, char *text, size_t *at, struct mk_field field)
{
    struct mk_span old = field.value, *host = &req->head.host;
    field.name = append_span(text, at, req->base, field.name);
    field.value = append_span(text, at, req->base, old);
    if (field.id == MK_HEADER_HOST && host->at >= old.at && host->at <= old.at + old.len)
        host->at = (uint16_t)(host->at - old.at + field.value.at);
    return field;
}

/* Copies the request line and the names and values that are kept: a tunnel lasts long, so every byte counts. */
static int copy_tunnel_head(struct mk_request *req)
{
    size_t n = 0, at = req->parse.target.at + req->parse.target.len, bytes = at;
    for (unsigned i = 0; i < req->parse.n_fields; i++) {
        if (!is_kept(req, &req->fields[i]))
            continue;
        bytes += req->fields[i].name.len + req->fields[i].value.len;
        n++;
    }
    struct mk_field *fields = mk__arena_alloc_exact(&req->arena, n * sizeof(*fields) + bytes + 1);
    if (!fields)
        return -ENOMEM;
    char *text = (char *)(fields + n);
    memcpy(text, req->base, at);
    n = 0;
    for (unsigned i = 0; i < req->parse.n_fields; i++)
        if (is_kept(req, &req->fields[i]))
            fields[n++] = append_field(req, text, &at, req->fields[i]);
    req->fields = fields;
    req->base = text;
    req->parse.n_fields = (uint16_t)n;
    req->joined = NULL; /* it counts the lines that were there before */
    req->parse.seen &= ~(1u << MK_HEADER_CONNECTION | 1u << MK_HEADER_UPGRADE);
    req->head_copied = true;
    return 0;
}

int mk__request_copy_head(struct mk_request *req)
{
    size_t fields_bytes = req->parse.n_fields * sizeof(*req->fields);
    assert(req->base);
    if (req->head_copied)
        return 0;
    if (req->tunnel && req->output_state >= MK__OUTPUT_HEAD)
        return copy_tunnel_head(req);
    if (req->parse.seen & 1u << MK_HEADER_UPGRADE)
        mk__arena_reserve(&req->arena, fields_bytes + req->parse.head_len + UPGRADE_BYTES);
    char *copy = mk_arena_alloc(&req->arena, fields_bytes + req->parse.head_len + 1);
    if (!copy)
        return -ENOMEM;
    if (fields_bytes)
        memcpy(copy, req->fields, fields_bytes);
    memcpy(copy + fields_bytes, req->base, req->parse.head_len);
    req->fields = (const struct mk_field *)(void *)copy;
    req->base = copy + fields_bytes;
    req->head_copied = true;
    return 0;
}

static void hold_owned(struct mk_request *req)
{
    if (req->owner && !req->holds_owned)
        req->owner->get(req->owned);
    req->holds_owned = req->owner != NULL;
}

int mk__request_keep(struct mk_request *req)
{
    hold_owned(req);
    return mk__request_copy_head(req);
}

void mk__request_borrow(struct mk_request *req, const struct mk_owner *owner, void *owned)
{
    assert(owner && !req->first);
    if (req->holds_owned)
        req->owner->put(req->owned);
    req->owner = owner;
    req->owned = owned;
    req->holds_owned = false;
    if (!req->ops->in_turn || !req->ops->in_turn(req))
        hold_owned(req);
}

int mk__request_decode_path(struct mk_request *req)
{
    struct mk_str raw = req->head.path.len ? mk_span_str(req->base, req->head.path) : MK_STR("/");
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
    return mk_span_str(req->base, req->parse.method_name);
}

struct mk_str mk_request_target(const struct mk_request *req)
{
    return mk_span_str(req->base, req->parse.target);
}

struct mk_str mk_request_path(const struct mk_request *req)
{
    return req->path;
}

struct mk_str mk_request_query(const struct mk_request *req)
{
    if (req->rewritten)
        return req->rewritten->query;
    return req->head.has_query ? mk_span_str(req->base, req->head.query) : MK_STR_NONE;
}

struct mk_str mk_request_add_slash(struct mk_request *req)
{
    struct mk_str query = mk_request_query(req);
    size_t size = req->path.len * 3 + query.len + 2; /* a byte may be encoded as three */
    char *storage = mk_arena_alloc(&req->arena, size);
    struct mk_buf location;
    if (!storage)
        return MK_STR_NONE;
    mk_buf_init_fixed(&location, storage, size);
    mk_path_encode_kept(&location, req->path, req->has_encoded_slash);
    mk_buf_addc(&location, '/');
    if (query.p) {
        mk_buf_addc(&location, '?');
        mk_buf_adds(&location, query);
    }
    assert(!location.err); /* `size` is enough */
    return mk_buf_str(&location);
}

struct mk_str mk_request_host(const struct mk_request *req)
{
    return req->base ? mk_span_str(req->base, req->head.host) : MK_STR_NONE;
}

unsigned mk_request_major(const struct mk_request *req)
{
    return req->ops->major;
}

unsigned mk_request_minor(const struct mk_request *req)
{
    return req->ops->major == 1 ? req->parse.minor : 0;
}

bool mk_request_body_length(const struct mk_request *req, uint64_t *ret_bytes)
{
    *ret_bytes = req->head.body_bytes;
    return req->head.body != MK__BODY_CHUNKED;
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

int mk_request_set_claims(struct mk_request *req, struct mk_str json)
{
    struct mk_str copy = mk_arena_dup(&req->arena, json);
    if (!copy.p)
        return -ENOMEM;
    req->claims = copy;
    return 0;
}

struct mk_str mk_request_claims(const struct mk_request *req)
{
    return req->claims;
}

void mk_request_allow(struct mk_request *req)
{
    req->access = 1;
}

int mk_request_deny(struct mk_request *req, int status)
{
    assert(status >= 400 && status <= 599);
    req->access = (uint16_t)status;
    if (req->defers_denial)
        return MK_DECLINED;
    mk_response_error(req, status);
    return 0;
}

void mk_request_defer_denial(struct mk_request *req)
{
    req->defers_denial = true;
}

int mk_request_access(const struct mk_request *req)
{
    return req->access;
}

struct mk_arena *mk_request_arena(struct mk_request *req)
{
    return &req->arena;
}

struct mk_loop *mk_request_loop(const struct mk_request *req)
{
    return req->http->loop;
}

MK_HOT uint64_t mk_request_arrival(const struct mk_request *req)
{
    return mk_loop_turns(req->http->loop) + (req->http->reads);
}

struct mk_account *mk_request_account(const struct mk_request *req)
{
    return req->http->account;
}

struct mk_str mk_request_mime(const struct mk_request *req, struct mk_str path)
{
    return req->http->app->mime(req, path, req->http->app_ctx);
}

MK_HOT uint64_t mk_request_mime_id(const struct mk_request *req)
{
    return req->http->app->mime_id(req, req->http->app_ctx);
}

/* Returns the first field line with a name from `n` on; the number of all lines, if there is none. */
static unsigned find_field(const struct mk_request *req, unsigned n, enum mk_header_id id, struct mk_str name)
{
    for (; n < req->parse.n_fields; n++) {
        const struct mk_field *field = &req->fields[n];
        if (id == MK_HEADER_OTHER ? mk_str_ieq(mk_span_str(req->base, field->name), name) : field->id == id)
            return n;
    }
    return n;
}

static struct mk_str get_value(const struct mk_request *req, unsigned n)
{
    return mk_span_str(req->base, req->fields[n].value);
}

/* Joins the values of all lines with the name of line `first`. Returns that of `first` alone without memory. */
static struct mk_str join_lines(struct mk_request *req, unsigned first, enum mk_header_id id, struct mk_str name)
{
    struct mk_str separator = req->fields[first].id == MK_HEADER_COOKIE ? MK_STR("; ") : MK_STR(", ");
    size_t size = 0;
    for (unsigned n = first; n < req->parse.n_fields; n = find_field(req, n + 1, id, name))
        size += separator.len + get_value(req, n).len;
    struct mk__joined_lines *joined = mk_arena_alloc(&req->arena, sizeof(*joined) + size);
    if (!joined)
        return get_value(req, first);
    *joined = (struct mk__joined_lines){.next = req->joined, .first = first};
    req->joined = joined;
    struct mk_buf text;
    mk_buf_init_fixed(&text, joined->bytes, size);
    for (unsigned n = first; n < req->parse.n_fields; n = find_field(req, n + 1, id, name)) {
        if (n > first)
            mk_buf_adds(&text, separator);
        mk_buf_adds(&text, get_value(req, n));
    }
    assert(!text.err);
    joined->len = text.len;
    return mk_buf_str(&text);
}

/* Returns the value of the field lines with one name. Several are joined once: a handler may ask for each cookie. */
static struct mk_str find_value(struct mk_request *req, enum mk_header_id id, struct mk_str name)
{
    unsigned first = find_field(req, 0, id, name);
    if (first == req->parse.n_fields)
        return MK_STR_NONE;
    if (find_field(req, first + 1, id, name) == req->parse.n_fields)
        return get_value(req, first);
    for (const struct mk__joined_lines *joined = req->joined; joined; joined = joined->next)
        if (joined->first == first)
            return mk_str(joined->bytes, joined->len);
    return join_lines(req, first, id, name);
}

struct mk_str mk_request_header(struct mk_request *req, enum mk_header_id field)
{
    if (field == MK_HEADER_OTHER || !(req->parse.seen & 1u << field))
        return MK_STR_NONE;
    return find_value(req, field, MK_STR_NONE);
}

struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name)
{
    return find_value(req, MK_HEADER_OTHER, name);
}

bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value)
{
    if (n >= req->parse.n_fields)
        return false;
    *ret_name = mk_span_str(req->base, req->fields[n].name);
    *ret_value = mk_span_str(req->base, req->fields[n].value);
    return true;
}

/* ── the body ── */

void mk_request_read(struct mk_request *req, mk_body_fn fn, void *ctx)
{
    assert(fn);
    if (req->body_state == MK__BODY_STATE_FAILED)
        return;
    req->body_fn = fn;
    req->body_splice = NULL;
    req->body_ctx = ctx;
    if (req->body_state == MK__BODY_STATE_DONE)
        fn(req, MK_STR(""), true, ctx);
    else
        req->ops->wake(req);
}

void mk_request_pause(struct mk_request *req)
{
    if (req->body_state == MK__BODY_STATE_READING)
        req->body_state = MK__BODY_STATE_PAUSED;
}

void mk_request_resume(struct mk_request *req)
{
    if (req->body_state == MK__BODY_STATE_PAUSED)
        req->body_state = MK__BODY_STATE_READING;
    req->ops->wake(req);
}

static bool is_slow(const struct mk_request *req)
{
    uint64_t rate = req->limits->body_rate_min;
    uint64_t ms = mk_loop_now_ms(req->http->loop) - req->rate_since_ms;
    return rate && ms > RATE_GRACE_MS && req->rate_bytes < rate * ms / 1000;
}

void mk__request_check_rate(struct mk_request *req)
{
    if (!mk__request_wants_body(req) || !is_slow(req))
        return;
    mk__count_one(req->http, MK__COUNT_REFUSED_SLOW_BODY);
    mk__request_reject_body(req, 408);
}

/* Tells whether the body is longer than its limit, counting the whole of the current chunk. */
static bool is_too_long(const struct mk_request *req)
{
    bool discards = req->body_state == MK__BODY_STATE_DISCARDING;
    uint64_t limit = discards ? req->limits->discard_bytes_max : req->limits->body_bytes_max;
    uint64_t announced = req->head.body == MK__BODY_CHUNKED ? req->chunked.left : 0;
    return req->body_bytes > limit || announced > limit - req->body_bytes;
}

void mk__request_deliver_body(struct mk_request *req, struct mk_str piece, bool end)
{
    bool discards = req->body_state == MK__BODY_STATE_DISCARDING;
    assert(mk__request_wants_body(req));
    req->body_bytes += piece.len;
    req->rate_bytes += piece.len;
    if (end)
        req->body_state = MK__BODY_STATE_DONE;
    if (!discards && req->body_fn && (piece.len || end))
        req->body_fn(req, piece, end, req->body_ctx);
    if (!end && is_too_long(req))
        mk__request_reject_body(req, 413);
}

void mk__request_reject_body(struct mk_request *req, int status)
{
    bool discards = req->body_state == MK__BODY_STATE_DISCARDING;
    assert(req->body_state < MK__BODY_STATE_DONE);
    req->body_state = MK__BODY_STATE_FAILED;
    if (discards || req->response_state == MK__RESPONSE_ENDED)
        return;
    if (req->output_state >= MK__OUTPUT_HEAD)
        mk_response_abort(req);
    else
        mk__request_reject(req, status);
}

bool mk__request_time_out(struct mk_request *req, int status, bool notifies_handler)
{
    const struct mk__http_app *app = req->http->app;
    if (notifies_handler && app->on_handler_timeout)
        app->on_handler_timeout(req, req->http->app_ctx);
    if (!status || req->output_state >= MK__OUTPUT_HEAD)
        return false;
    req->body_state = MK__BODY_STATE_FAILED;
    mk_response_error(req, status);
    return true;
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
    assert(need <= c->bytes_max);
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

/* Rejects a body that cannot be collected; a function that was set before gets no piece of it either. */
static void refuse_collecting(struct mk_request *req, int status)
{
    req->body_fn = NULL;
    if (status == 413)
        mk_request_set_reason(req, req->body_bytes > req->limits->body_bytes_max ? MK_REASON_BODY
                                                                                 : MK_REASON_COLLECTED_BODY);
    mk_response_error(req, status);
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
        refuse_collecting(req, status);
        return;
    }
    assert(c->len + piece.len < c->size);
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
        refuse_collecting(req, 413);
        return;
    }
    struct body_collector *c = mk_arena_alloc(&req->arena, sizeof(*c));
    if (!c || mk_arena_defer(&req->arena, free_collector, c) < 0) {
        refuse_collecting(req, 503);
        return;
    }
    *c = (struct body_collector){.account = req->http->account, .bytes_max = bytes_max, .fn = fn, .ctx = ctx};
    mk_request_read(req, collect_body, c);
}
