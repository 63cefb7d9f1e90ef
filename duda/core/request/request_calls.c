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
    struct mk_str value = MK_STR_NONE;
    if (dr->strings[which])
        return dr->strings[which];
    MK_BUF_ON_STACK(buf, 64);
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

#define STRING_CALL(name, value) \
    REQUEST_CALL(const char *get_##name(duda_request_t *dr), request_check, "request->" #name "()", NULL, value)

STRING_CALL(method, get_string(dr, REQUEST_METHOD))
STRING_CALL(path, mk_request_path(dr->req).p)
STRING_CALL(target, get_string(dr, REQUEST_TARGET))
STRING_CALL(query, get_string(dr, REQUEST_QUERY))
STRING_CALL(host, get_string(dr, REQUEST_HOST))
STRING_CALL(scheme, mk_request_scheme(dr->req).p)
STRING_CALL(client, get_string(dr, REQUEST_CLIENT))
STRING_CALL(id, request_dup(dr, mk_request_id(dr->req)))
STRING_CALL(user, request_dup(dr, mk_request_user(dr->req)))
STRING_CALL(claims, request_dup(dr, mk_request_claims(dr->req)))

#define METHOD_CALL(name, method) \
    REQUEST_CALL(bool is_##name(duda_request_t *dr), request_check, "request->is_" #name "()", false, \
                 mk_request_method(dr->req) == (method))

METHOD_CALL(get, MK_GET)
METHOD_CALL(head, MK_HEAD)
METHOD_CALL(post, MK_POST)
METHOD_CALL(put, MK_PUT)
METHOD_CALL(delete, MK_DELETE)
METHOD_CALL(patch, MK_PATCH)
METHOD_CALL(options, MK_OPTIONS)

REQUEST_CALL(int get_http_major(duda_request_t *dr), request_check, "request->http_major()", 0,
             (int)mk_request_major(dr->req))

/* ── headers ── */

static struct mk_str find_header(duda_request_t *dr, const char *name)
{
    return mk_str_trim(mk_request_header_by_name(dr->req, mk_str_c(name)));
}

REQUEST_CALL(const char *get_header(duda_request_t *dr, const char *name), request_check, "request->header_get()", NULL,
             request_dup(dr, find_header(dr, name)))

REQUEST_CALL(const char *get_last_event_id(duda_request_t *dr), request_check, "request->last_event_id()", NULL,
             request_dup(dr, find_header(dr, "Last-Event-ID")))

REQUEST_CALL(int compare_header(duda_request_t *dr, const char *name, const char *value), request_check,
             "request->header_cmp()", -1, request_compare(find_header(dr, name), value))

REQUEST_CALL(bool is_content_type(duda_request_t *dr, const char *media_type), request_check,
             "request->is_content_type()", false, request_has_type(dr, mk_str_c(media_type)))

/* Returns the index of `part` in `value`, which may have no address; -1: it is not there. */
static int find_part(struct mk_str value, struct mk_str part)
{
    for (size_t at = 0; value.p && at + part.len <= value.len; at++)
        if (mk_str_ieq(mk_str(value.p + at, part.len), part))
            return (int)at;
    return -1;
}

REQUEST_CALL(int search_header(duda_request_t *dr, const char *name, const char *text), request_check,
             "request->header_contains()", -1, find_part(find_header(dr, name), mk_str_c(text)))

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

/* ── the body ── */

static int64_t find_length(const duda_request_t *dr)
{
    uint64_t bytes;
    if (dr->has_body && dr->body.len)
        return (int64_t)dr->body.len;
    struct mk_str value = mk_request_header(dr->req, MK_HEADER_CONTENT_LENGTH);
    return value.p && mk_str_u64(value, INT64_MAX, &bytes) ? (int64_t)bytes : -1;
}

REQUEST_CALL(int64_t get_content_length(duda_request_t *dr), request_check, "request->content_length()", -1,
             find_length(dr))

static bool has_data(const duda_request_t *dr)
{
    enum mk_method method = mk_request_method(dr->req);
    if (method != MK_POST && method != MK_PUT && method != MK_PATCH)
        return false;
    bool is_chunked = !dr->has_body && mk_request_header(dr->req, MK_HEADER_TRANSFER_ENCODING).p;
    return find_length(dr) > 0 || is_chunked;
}

REQUEST_CALL(bool is_data(duda_request_t *dr), request_check, "request->is_data()", false, has_data(dr))

static const char *get_body(duda_request_t *dr, size_t *ret_len)
{
    struct mk_str body = request_check(dr, "request->body()") == 0 ? dr->body : MK_STR_NONE;
    if (ret_len)
        *ret_len = body.len;
    return body.len ? body.p : NULL;
}

static char *copy_body(duda_request_t *dr, size_t *ret_len)
{
    struct mk_str body = request_check(dr, "request->get_data()") == 0 ? dr->body : MK_STR_NONE;
    char *copy = body.len ? heap_alloc_until(mk_request_arena(dr->req), body.len + 1) : NULL;
    if (ret_len)
        *ret_len = copy ? body.len : 0;
    if (!copy)
        return NULL;
    memcpy(copy, body.p, body.len);
    copy[body.len] = '\0';
    return copy;
}

/* ── its life ── */

static void set_leave(duda_request_t *dr, duda_event_fn fn, void *data)
{
    if (request_check(dr, "request->on_leave()") < 0)
        return;
    dr->leave = (struct request_event){fn, data};
    request_use(dr, FEATURE_CALLBACKS);
}

static bool is_alive(const duda_request_t *dr)
{
    return current.worker && request_pool_has(current.worker, dr);
}

static bool is_alive_socket(int fd)
{
    if (!current.worker)
        return false;
    MK_LIST_EACH_ITEM(&current.worker->requests, const struct duda_request, node, dr) {
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
