// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: `self`, and the fields of duda_request_t (old.h).
 */
#include "compat/old.h"

#include "request/request.h"
#include "route/dispatch.h"

#include <monkey/transport.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

bool old_is(const struct service *s)
{
    return s->info->level < 3;
}

/* ── self ── */

static struct duda_old_string to_old_string(struct duda_string s)
{
    return (struct duda_old_string){s.len ? s.data : NULL, s.len};
}

static void fill_self(struct service *s)
{
    struct duda_old_string url = to_old_string(s->self.url);
    old_of(s)->self = (struct web_service){
        .name = url.data ? (struct duda_old_string){url.data + 1, url.len - 1} : to_old_string(s->self.name),
        .fixed_name = to_old_string(s->self.name),
        .docroot = to_old_string(s->self.docroot),
        .confdir = to_old_string(s->self.confdir),
        .datadir = to_old_string(s->self.datadir),
        .logdir = to_old_string(s->self.logdir),
    };
}

void old_service_bind(struct service *s)
{
    fill_self(s);
    if (!s->main && old_is(s)) /* until the summer of 2012 */
        *(void **)&s->main = dlsym(s->handle, "duda_init");
}

int old_service_complete(struct service *s, struct mk_buf *error)
{
    (void)error;
    fill_self(s);
    return 0;
}

/* ── requests ── */

/* What the pointers of a duda_request_t lead to. */
struct old_parts {
    struct client_session client;
    struct session_request session;
    struct duda_old_string params[DUDA_OLD_SEGMENTS_MAX];
};

/* Copies a string and puts a blank and a NUL after it, which `len` does not count. */
static struct duda_old_string copy_with_blank(struct mk_arena *arena, struct mk_str s)
{
    char *copy = mk_arena_alloc(arena, s.len + 2);
    if (!copy)
        return (struct duda_old_string){NULL, 0};
    if (s.len)
        memcpy(copy, s.p, s.len);
    memcpy(copy + s.len, " ", 2);
    return (struct duda_old_string){copy, s.len};
}

static int fill_session(struct session_request *session, struct mk_request *req)
{
    struct mk_arena *arena = mk_request_arena(req);
    struct mk_str query = mk_request_query(req);
    session->uri = copy_with_blank(arena, mk_str_until(mk_request_target(req), "?"));
    session->uri_processed = copy_with_blank(arena, mk_request_path(req));
    if (query.p)
        session->query_string = copy_with_blank(arena, query);
    return session->uri.data && session->uri_processed.data && (!query.p || session->query_string.data) ? 0 : -ENOMEM;
}

/* Returns the next segment, which is a part of `path`, as a field. */
static struct duda_old_string split_field(struct mk_str *path)
{
    struct mk_str segment = path->len ? mk_routes_split_segment(path) : MK_STR("");
    return (struct duda_old_string){segment.len ? (char *)(uintptr_t)segment.p : NULL, segment.len};
}

/*
 * Fills the fields that are those of the path, "/interface/method/params", whatever its route is. They are parts of
 * uri_processed, because services read on after a field: there is the rest of the path.
 */
static void fill_route(duda_request_t *dr, size_t path_len)
{
    const struct duda_old_string *uri = &dr->old.sr->uri_processed;
    struct mk_str path = mk_str(uri->data + uri->len - path_len, path_len);
    dr->old.interface = split_field(&path);
    dr->old.method = split_field(&path);
    while (path.len > 1 && dr->old.n_params < DUDA_OLD_SEGMENTS_MAX)
        dr->old.params[dr->old.n_params++] = split_field(&path);
}

int old_request_fill(duda_request_t *dr, struct mk_str path)
{
    struct service *s = dr->worker->service;
    struct old_parts *parts = mk_arena_zalloc(mk_request_arena(dr->req), sizeof(*parts));
    if (!parts || fill_session(&parts->session, dr->req) < 0)
        return -ENOMEM;
    parts->client.socket = mk_request_io(dr->req)->fd;
    dr->old = (struct duda_old_request){
        .socket = parts->client.socket,
        .cs = &parts->client,
        .sr = &parts->session,
        .ws_root = &old_of(s)->self,
        .appname = old_of(s)->self.name,
        .params = parts->params,
    };
    fill_route(dr, path.len);
    return 0;
}

bool old_refuse(struct mk_request *req)
{
    struct mk_str length = mk_request_header(req, MK_HEADER_CONTENT_LENGTH);
    if (mk_request_method(req) != MK_GET || !length.len || mk_str_eq(length, MK_STR("0")))
        return false;
    mk_response_error(req, 400);
    return true;
}
