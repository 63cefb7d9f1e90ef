// SPDX-License-Identifier: Apache-2.0
/*
 * The object `request`.
 */
#include "request/request.h"

#include "common/current.h"
#include "common/heap.h"
#include "objects.h"

#include <errno.h>

/* ── the request line, the client ── */

static struct mk_str print_client(struct mk_request *req, struct mk_buf *out)
{
    struct mk_address client = mk_request_client(req);
    mk_address_print(&client, out);
    return mk_buf_str(out);
}

static const char *get_string(duda_request_t *dr, enum request_string which)
{
    char text[64];
    struct mk_buf buf;
    struct mk_str value = MK_STR_NONE;
    if (dr->strings[which])
        return dr->strings[which];
    mk_buf_init_fixed(&buf, text, sizeof(text));
    switch (which) {
    case REQUEST_METHOD:
        value = mk_request_method_name(dr->req);
        break;
    case REQUEST_TARGET:
        value = mk_request_target(dr->req);
        break;
    case REQUEST_QUERY:
        value = mk_request_query(dr->req);
        break;
    case REQUEST_HOST:
        value = mk_request_host(dr->req);
        break;
    default:
        value = print_client(dr->req, &buf);
    }
    return dr->strings[which] = request_dup(dr, value);
}

static const char *get_method(duda_request_t *dr)
{
    if (request_check(dr, "request->method()") < 0)
        return NULL;
    return get_string(dr, REQUEST_METHOD);
}

static const char *get_path(duda_request_t *dr)
{
    if (request_check(dr, "request->path()") < 0)
        return NULL;
    return mk_request_path(dr->req).p;
}

static const char *get_target(duda_request_t *dr)
{
    if (request_check(dr, "request->target()") < 0)
        return NULL;
    return get_string(dr, REQUEST_TARGET);
}

static const char *get_query(duda_request_t *dr)
{
    if (request_check(dr, "request->query()") < 0)
        return NULL;
    return get_string(dr, REQUEST_QUERY);
}

static const char *get_host(duda_request_t *dr)
{
    if (request_check(dr, "request->host()") < 0)
        return NULL;
    return get_string(dr, REQUEST_HOST);
}

static const char *get_scheme(duda_request_t *dr)
{
    if (request_check(dr, "request->scheme()") < 0)
        return NULL;
    return mk_request_scheme(dr->req).p;
}

static const char *get_client(duda_request_t *dr)
{
    if (request_check(dr, "request->client()") < 0)
        return NULL;
    return get_string(dr, REQUEST_CLIENT);
}

static const char *get_id(duda_request_t *dr)
{
    if (request_check(dr, "request->id()") < 0)
        return NULL;
    return request_dup(dr, mk_request_id(dr->req));
}

static const char *get_user(duda_request_t *dr)
{
    if (request_check(dr, "request->user()") < 0)
        return NULL;
    return request_dup(dr, mk_request_user(dr->req));
}

static const char *get_claims(duda_request_t *dr)
{
    if (request_check(dr, "request->claims()") < 0)
        return NULL;
    return request_dup(dr, mk_request_claims(dr->req));
}

static bool has_method(duda_request_t *dr, enum mk_method method, const char *call)
{
    return request_check(dr, call) == 0 && mk_request_method(dr->req) == method;
}

static bool is_get(duda_request_t *dr)
{
    return has_method(dr, MK_GET, "request->is_get()");
}

static bool is_head(duda_request_t *dr)
{
    return has_method(dr, MK_HEAD, "request->is_head()");
}

static bool is_post(duda_request_t *dr)
{
    return has_method(dr, MK_POST, "request->is_post()");
}

static bool is_put(duda_request_t *dr)
{
    return has_method(dr, MK_PUT, "request->is_put()");
}

static bool is_delete(duda_request_t *dr)
{
    return has_method(dr, MK_DELETE, "request->is_delete()");
}

static bool is_patch(duda_request_t *dr)
{
    return has_method(dr, MK_PATCH, "request->is_patch()");
}

static bool is_options(duda_request_t *dr)
{
    return has_method(dr, MK_OPTIONS, "request->is_options()");
}

/* ── headers ── */

static struct mk_str find_header(duda_request_t *dr, const char *name)
{
    return mk_str_trim(mk_request_header_by_name(dr->req, mk_str_c(name)));
}

static const char *get_header(duda_request_t *dr, const char *name)
{
    if (request_check(dr, "request->header_get()") < 0)
        return NULL;
    return request_dup(dr, find_header(dr, name));
}

static int compare_header(duda_request_t *dr, const char *name, const char *value)
{
    if (request_check(dr, "request->header_cmp()") < 0)
        return -1;
    struct mk_str found = find_header(dr, name);
    return found.p && mk_str_eq(found, mk_str_c(value)) ? 0 : -1;
}

static int search_header(duda_request_t *dr, const char *name, const char *text)
{
    if (request_check(dr, "request->header_contains()") < 0)
        return -1;
    struct mk_str value = find_header(dr, name), part = mk_str_c(text);
    for (size_t at = 0; value.p && at + part.len <= value.len; at++)
        if (mk_str_ieq(mk_str(value.p + at, part.len), part))
            return (int)at;
    return -1;
}

static int get_header_at(duda_request_t *dr, unsigned n, const char **ret_name, const char **ret_value)
{
    if (request_check(dr, "request->header_at()") < 0 || !ret_name || !ret_value)
        return -EINVAL;
    struct mk_str name, value;
    if (!mk_request_header_at(dr->req, n, &name, &value))
        return -ENOENT;
    const char *own_name = request_dup(dr, name), *own_value = request_dup(dr, value);
    if (!own_name || !own_value)
        return -ENOMEM;
    *ret_name = own_name;
    *ret_value = own_value;
    return 0;
}

static bool is_content_type(duda_request_t *dr, const char *media_type)
{
    if (request_check(dr, "request->is_content_type()") < 0)
        return false;
    struct mk_str value = mk_request_header(dr->req, MK_HEADER_CONTENT_TYPE);
    const char *end = value.p ? memchr(value.p, ';', value.len) : NULL;
    if (end)
        value.len = (size_t)(end - value.p);
    return value.p && mk_str_ieq(mk_str_trim(value), mk_str_c(media_type));
}

static int get_http_major(duda_request_t *dr)
{
    return (int)mk_request_major(dr->req);
}

static const char *get_last_event_id(duda_request_t *dr)
{
    if (request_check(dr, "request->last_event_id()") < 0)
        return NULL;
    return request_dup(dr, find_header(dr, "Last-Event-ID"));
}

/* ── the body ── */

static int64_t get_content_length(duda_request_t *dr)
{
    if (request_check(dr, "request->content_length()") < 0)
        return -1;
    uint64_t bytes;
    if (dr->has_body && dr->body.len)
        return (int64_t)dr->body.len;
    struct mk_str value = mk_request_header(dr->req, MK_HEADER_CONTENT_LENGTH);
    return value.p && mk_str_u64(value, INT64_MAX, &bytes) ? (int64_t)bytes : -1;
}

static bool is_data(duda_request_t *dr)
{
    if (request_check(dr, "request->is_data()") < 0)
        return false;
    if (!is_post(dr) && !is_put(dr) && !is_patch(dr))
        return false;
    bool is_chunked = !dr->has_body && mk_request_header(dr->req, MK_HEADER_TRANSFER_ENCODING).p;
    return get_content_length(dr) > 0 || is_chunked;
}

static const char *get_body(duda_request_t *dr, size_t *ret_len)
{
    if (ret_len)
        *ret_len = 0;
    if (request_check(dr, "request->body()") < 0)
        return NULL;
    if (ret_len)
        *ret_len = dr->body.len;
    return dr->body.len ? dr->body.p : NULL;
}

static char *copy_body(duda_request_t *dr, size_t *ret_len)
{
    if (ret_len)
        *ret_len = 0;
    if (request_check(dr, "request->get_data()") < 0)
        return NULL;
    size_t len = dr->body.len;
    char *copy = len ? heap_alloc_until(mk_request_arena(dr->req), len + 1) : NULL;
    if (ret_len)
        *ret_len = copy ? len : 0;
    if (!copy)
        return NULL;
    memcpy(copy, dr->body.p, len);
    copy[len] = '\0';
    return copy;
}

/* ── its life ── */

static void set_leave(duda_request_t *dr, duda_event_fn fn, void *data)
{
    if (request_check(dr, "request->on_leave()") < 0)
        return;
    dr->leave = (struct request_event){fn, data};
}

static bool is_alive(const duda_request_t *dr)
{
    return current.worker && request_pool_has(current.worker, dr);
}

static bool is_alive_socket(int fd)
{
    struct mk_list *n, *next;
    if (!current.worker)
        return false;
    MK_LIST_EACH(&current.worker->requests, n, next) {
        const struct duda_request *dr = MK_CONTAINER_OF(n, struct duda_request, node);
        if (mk_request_io(dr->req)->fd == fd)
            return true;
    }
    return false;
}

const struct duda_api_request object_request = {
    .method = get_method,
    .path = get_path,
    .target = get_target,
    .query = get_query,
    .host = get_host,
    .scheme = get_scheme,
    .client = get_client,
    .id = get_id,
    .user = get_user,
    .claims = get_claims,
    .is_get = is_get,
    .is_head = is_head,
    .is_post = is_post,
    .is_put = is_put,
    .is_delete = is_delete,
    .is_patch = is_patch,
    .is_options = is_options,
    .is_data = is_data,
    .is_content_type = is_content_type,
    .content_length = get_content_length,
    .body = get_body,
    .get_data = copy_body,
    .header_get = get_header,
    .header_cmp = compare_header,
    .header_contains = search_header,
    .header_at = get_header_at,
    .read = body_read,
    .pause = body_pause,
    .resume = body_resume,
    .on_leave = set_leave,
    .validate_request = is_alive,
    .validate_socket = is_alive_socket,
    .last_event_id = get_last_event_id,
    .http_major = get_http_major,
};
