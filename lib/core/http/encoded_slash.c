// SPDX-License-Identifier: Apache-2.0
/*
 * Paths with an encoded slash ("%2F" in a segment). No file can have such a name, so that they get 404, unless a
 * handler accepts them: then the slash stays encoded in the decoded path, or becomes one.
 */
#include "http/request.h"

#include "http/message/uri.h"

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

MK_COLD int mk__encoded_slash_decode(struct mk_request *req)
{
    const struct mk__http_app *app = req->http->app;
    struct mk_str raw = mk_request_raw_path(req), path;
    if (!app->accepts_encoded_slash)
        return 404;
    char *scratch = mk_arena_alloc(&req->arena, 2 * raw.len + 1), *to = mk_arena_alloc(&req->arena, 2 * raw.len + 1);
    if (!scratch || !to)
        return 503;
    if (!decode_path(raw, other, scratch, to, &path) || has_encoded_slash(path) ||
        !decode_path(raw, kept, scratch, to, &path) || !has_encoded_slash(path) /* removed by ".." */ ||
        has_dot_part(path))
        return 404;
    int how = app->accepts_encoded_slash(req, path, req->http->app_ctx);
    if (how == MK_ENCODED_SLASH_REFUSE ||
        (how == MK_ENCODED_SLASH_DECODE && !decode_path(raw, decoded, scratch, to, &path)))
        return 404;
    req->path = path;
    req->has_encoded_slash = how == MK_ENCODED_SLASH_KEEP;
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
