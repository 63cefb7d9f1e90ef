// SPDX-License-Identifier: Apache-2.0
/*
 * Paths with an encoded slash ("%2F" in a segment). It stays encoded in the decoded path, unless a handler wants it to
 * become one. No file can have such a name, so that only handlers that keep it are asked for content.
 */
#include "http/request.h"

#include "http/message/uri.h"

#include <errno.h>

/* "%2F", with this for each of them, decodes to itself; a byte that ends no segment shows where other ones come from */
static const struct mk_str kept = MK_STR("%252F"), other = MK_STR("-"), decoded = MK_STR("/");

static bool is_encoded_slash(const char *p, size_t len)
{
    return len >= 3 && mk_str_ieq(mk_str(p, 3), MK_STR("%2F"));
}

/* Copies a path with `by` for each encoded slash. Returns its length, which is at most twice that of `raw`. */
static size_t replace_slashes(struct mk_str raw, struct mk_str by, char *to)
{
    char *start = to;
    for (size_t i = 0; i < raw.len; i++) {
        if (!is_encoded_slash(raw.p + i, raw.len - i)) {
            *to++ = raw.p[i];
            continue;
        }
        to = mempcpy(to, by.p, by.len);
        i += 2;
    }
    return (size_t)(to - start);
}

static bool has_encoded_slash(struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (is_encoded_slash(path.p + i, path.len - i))
            return true;
    return false;
}

/* Returns true if a part between two slashes, encoded or not, is "." or "..": a backend might leave a folder by it. */
static bool has_dot_part(struct mk_str path)
{
    for (size_t i = 0, start = 0; i <= path.len; i++) {
        bool encoded = is_encoded_slash(path.p + i, path.len - i);
        if (i < path.len && path.p[i] != '/' && !encoded)
            continue;
        struct mk_str part = mk_str(path.p + start, i - start);
        if (mk_str_eq(part, MK_STR(".")) || mk_str_eq(part, MK_STR("..")))
            return true;
        i += encoded ? 2 : 0;
        start = i + 1;
    }
    return false;
}

/* Decodes `raw` with `by` for each encoded slash; `scratch` and `to` have room for twice its length and a NUL. */
static bool decode_path(struct mk_str raw, struct mk_str by, char *scratch, char *to, struct mk_str *ret_path)
{
    size_t len = replace_slashes(raw, by, scratch);
    ssize_t n = mk__uri_decode_path(mk_str(scratch, len), to, 2 * raw.len + 1);
    *ret_path = mk_str(to, n > 0 ? (size_t)n : 0);
    return n > 0;
}

int mk__encoded_slash_keep(struct mk_arena *arena, struct mk_str raw, struct mk_str *ret_path)
{
    size_t size = 2 * raw.len + 1;
    char *scratch = mk_arena_alloc(arena, size), *to = mk_arena_alloc(arena, size);
    if (!scratch || !to)
        return -ENOMEM;
    bool is_kept = decode_path(raw, other, scratch, to, ret_path) && !has_encoded_slash(*ret_path) &&
                   decode_path(raw, kept, scratch, to, ret_path) && has_encoded_slash(*ret_path) /* else ".." */ &&
                   !has_dot_part(*ret_path);
    return is_kept ? 0 : -ENOENT;
}

/* Decodes a path whose encoded slashes are as other ones. Returns an HTTP status, or 0. */
static int decode_slashes(struct mk_arena *arena, struct mk_str raw, struct mk_str *ret_path)
{
    char *scratch = mk_arena_alloc(arena, raw.len + 1), *to = mk_arena_alloc(arena, 2 * raw.len + 1);
    if (!scratch || !to)
        return 503;
    return decode_path(raw, decoded, scratch, to, ret_path) ? 0 : 404;
}

MK_COLD int mk__encoded_slash_decode(struct mk_request *req)
{
    const struct mk__http_app *app = req->http->app;
    struct mk_str raw = mk_request_raw_path(req), path;
    if (!app->accepts_encoded_slash)
        return 404;
    int err = mk__encoded_slash_keep(&req->arena, raw, &path);
    if (err < 0)
        return err == -ENOMEM ? 503 : 404;
    int how = app->accepts_encoded_slash(req, path, req->http->app_ctx);
    int status = how == MK_ENCODED_SLASH_DECODE ? decode_slashes(&req->arena, raw, &path) : 0;
    if (status)
        return status;
    req->path = path;
    req->has_encoded_slash = how != MK_ENCODED_SLASH_DECODE;
    return 0;
}

bool mk_request_has_encoded_slash(const struct mk_request *req)
{
    return req->has_encoded_slash;
}

struct mk_str mk_request_raw_path(const struct mk_request *req)
{
    if (req->head.asterisk || req->parse.method == MK_CONNECT || !req->base)
        return MK_STR("");
    return req->head.path.len ? mk_span_str(req->base, req->head.path) : MK_STR("/");
}
