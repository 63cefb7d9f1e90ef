// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces path and query of a request before the plugins' on_request (mk_request_rewrite()), or its path for the
 * content (mk_request_redirect_internally()) or for what decides about access (mk_request_decide_access()).
 */
#include "server/worker/thread.h"

#include "http/message/uri.h"
#include "http/request.h"

#include <monkey/base/escape.h>
#include <monkey/program.h>

#include <errno.h>

/* Returns true for "." and "..", percent-encoded or not. */
static bool is_dot_segment(struct mk_str segment)
{
    size_t dots = 0;
    for (size_t i = 0; i < segment.len; dots++) {
        bool encoded = segment.len - i >= 3 && mk_str_ieq(mk_str(segment.p + i, 3), MK_STR("%2e"));
        if (!encoded && segment.p[i] != '.')
            return false;
        i += encoded ? 3 : 1;
    }
    return dots == 1 || dots == 2;
}

static bool has_dot_segment(struct mk_str path)
{
    while (path.len)
        if (is_dot_segment(mk_str_split(&path, '/')))
            return true;
    return false;
}

static int check_call(const struct mk_request *req, struct mk_str path, struct mk_str query)
{
    if (req->hook >= MK__HOOK_REQUEST * MK__PLUGINS_MAX || req->response_state != MK__RESPONSE_OPEN)
        return -EALREADY;
    if (path.len + query.len > MK_REWRITE_BYTES_MAX)
        return -ENAMETOOLONG;
    if (!req->path.len || req->path.p[0] != '/' || !path.len || path.p[0] != '/' || !mk_str_is_visible(path, "?#\\") ||
        !mk_str_is_visible(query, "#") || has_dot_segment(path))
        return -EINVAL;
    return req->rewritten && req->rewritten->n >= MK_REWRITES_MAX ? -ELOOP : 0;
}

int mk_request_rewrite(struct mk_request *req, struct mk_str path, struct mk_str query)
{
    struct mk__rewritten *r = req->rewritten;
    int err = check_call(req, path, query);
    if (err < 0)
        return err;
    if (!r)
        r = mk_arena_alloc(&req->arena, sizeof(*r));
    char *decoded = mk_arena_alloc(&req->arena, path.len + 2);
    struct mk_str copy = query.p ? mk_arena_dup(&req->arena, query) : query;
    if (!r || !decoded || !copy.p != !query.p)
        return -ENOMEM;
    ssize_t n = mk__uri_decode_path(path, decoded, path.len + 2);
    struct mk_str new_path = mk_str(decoded, n > 0 ? (size_t)n : 0);
    bool keeps_slash = n == -ENOENT && req->has_encoded_slash;
    if (keeps_slash)
        n = mk__encoded_slash_keep(&req->arena, path, &new_path);
    if (n < 0)
        return (int)n;
    if (!req->rewritten)
        *r = (struct mk__rewritten){.original = req->path};
    r->n++;
    r->query = copy;
    req->rewritten = r;
    req->path = new_path;
    req->has_encoded_slash = keeps_slash;
    return 0;
}

/* Replaces the path by one that is normalized, and keeps the query. Returns 0 or -ENOMEM. */
static int replace_path(struct mk_request *req, struct mk_str path)
{
    struct mk__rewritten *r = req->rewritten;
    struct mk_str copy = mk_arena_dup(&req->arena, path), query = mk_request_query(req);
    if (!r)
        r = mk_arena_zalloc(&req->arena, sizeof(*r));
    if (!r || !copy.p)
        return -ENOMEM;
    if (!req->rewritten)
        *r = (struct mk__rewritten){.original = req->path, .query = query};
    r->decided = req->path;
    req->rewritten = r;
    req->path = copy;
    return 0;
}

void mk_request_redirect_internally(struct mk_request *req, struct mk_str path)
{
    bool is_loop = req->rewritten && req->rewritten->n >= MK_REWRITES_MAX;
    if (is_loop || replace_path(req, path) < 0) {
        mk_response_error(req, is_loop ? 500 : 503);
        return;
    }
    req->rewritten->n++;
    mk__request_hooks_restart(req);
}

int mk_request_decide_access(struct mk_request *req, struct mk_str path)
{
    bool is_loop = req->rewritten && req->rewritten->decisions >= MK_REWRITES_MAX;
    if (!mk_host_decides_access(mk_request_host_conf(req)))
        return MK_DECLINED;
    if (is_loop || replace_path(req, path) < 0) { /* the file is another one each time, or there is no memory */
        mk_response_error(req, is_loop ? 500 : 503);
        return 0;
    }
    req->rewritten->decisions++;
    return mk__request_hooks_decide(req);
}

struct mk_str mk_request_decided_path(const struct mk_request *req)
{
    return req->rewritten ? req->rewritten->decided : MK_STR_NONE;
}

struct mk_str mk_request_original_path(const struct mk_request *req)
{
    return req->rewritten ? req->rewritten->original : req->path;
}
