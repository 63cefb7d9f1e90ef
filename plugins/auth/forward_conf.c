// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the directives of `Type Forward` (forward_conf.h).
 */
#include "forward_conf.h"

#include <monkey/request.h>

#include <errno.h>
#include <strings.h>

enum { HTTP_PORT = 80, HTTPS_PORT = 443 };

static int fail(struct mk_buf *error, const char *sentence)
{
    mk_buf_addf(error, "%s", sentence);
    return -EINVAL;
}

/* ── To ── */

static bool starts_with(struct mk_str s, struct mk_str prefix)
{
    return s.len >= prefix.len && strncasecmp(s.p, prefix.p, prefix.len) == 0;
}

static int parse_dial(struct forward_target *t, struct mk_str text, int port, struct mk_arena *arena,
                      struct mk_buf *error)
{
    const char *why = NULL;
    int err = mk_dial_target_parse(arena, text, port, &t->dial, &why);
    if (err < 0 && err != -ENOMEM)
        mk_buf_addf(error, "\"%.*s\" is no address of a server: %s", MK_STR_ARG(text), why);
    return err;
}

/* Sets the path, which a request line must be able to have; an empty one is that of the root. */
static int set_path(struct forward_target *t, struct mk_str path, struct mk_buf *error)
{
    t->path = path.len ? path : MK_STR("/");
    for (size_t i = 0; i < path.len; i++)
        if (path.p[0] != '/' || path.p[i] <= ' ' || path.p[i] >= 0x7f || strchr("#\"<>\\^`{|}", path.p[i]))
            return fail(error, "behind the host may stand a path, percent-encoded, perhaps with a query");
    return 0;
}

static int parse_url(struct forward_target *t, struct mk_str rest, int port, struct mk_arena *arena,
                     struct mk_buf *error)
{
    size_t n = 0;
    while (n < rest.len && !memchr("/?#", rest.p[n], 3))
        n++;
    t->authority = mk_str(rest.p, n);
    if (!n)
        return fail(error, "the URL has no host");
    if (memchr(rest.p, '@', n))
        return fail(error, "a URL with a user cannot be used");
    int err = set_path(t, mk_str(rest.p + n, rest.len - n), error);
    return err < 0 ? err : parse_dial(t, t->authority, port, arena, error);
}

static int parse_unix(struct forward_target *t, struct mk_str socket, struct mk_str path, struct mk_arena *arena,
                      struct mk_buf *error)
{
    t->authority = MK_STR("localhost");
    int err = set_path(t, path, error);
    return err < 0 ? err : parse_dial(t, socket, 0, arena, error);
}

int forward_parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct forward_target *t = field;
    t->text = mk_arena_dup(arena, value->text);
    if (!t->text.p)
        return -ENOMEM;
    size_t n = value->n ? value->words[0].len : 0;
    struct mk_str url = mk_str(t->text.p, n), rest = mk_str_trim(mk_str(t->text.p + n, t->text.len - n));
    if (starts_with(url, MK_STR("unix:")) && value->n <= 2)
        return parse_unix(t, mk_arena_dup(arena, url), rest, arena, error);
    t->is_tls = starts_with(url, MK_STR("https://"));
    if (t->is_tls && !rest.len)
        return parse_url(t, mk_str(url.p + 8, url.len - 8), HTTPS_PORT, arena, error);
    if (starts_with(url, MK_STR("http://")) && !rest.len)
        return parse_url(t, mk_str(url.p + 7, url.len - 7), HTTP_PORT, arena, error);
    return fail(error, "the server is http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:/SOCKET /PATH");
}

/* ── names of headers ── */

/* Accepts letters, digits, dashes and underscores: all registered header names have no others. */
static bool is_name(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = mk_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return s.len > 0;
}

bool forward_names_have(const struct forward_names *names, struct mk_str name)
{
    uint32_t i = 0;
    while (i < names->n && !mk_header_same_name(names->items[i], name))
        i++;
    return i < names->n;
}

/* Reads a name that an answer may set in requests. Returns 0, -ENOMEM or -EINVAL. */
static int read_name(struct mk_str *ret, struct mk_str word, struct mk_arena *arena, struct mk_buf *error)
{
    if (!is_name(word))
        return fail(error, "the name of a header has letters, digits and dashes only");
    if (mk_request_header_reserved(word)) {
        mk_buf_addf(error, "the header \"%.*s\" is about the connection, or decides where a request ends or goes to",
                    MK_STR_ARG(word));
        return -EINVAL;
    }
    *ret = mk_arena_dup(arena, word);
    return ret->p ? 0 : -ENOMEM;
}

int forward_parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return value->n == 1 ? read_name(field, value->words[0], arena, error)
                         : fail(error, "it takes the name of one header");
}

int forward_parse_names(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct forward_names *names = field;
    for (uint32_t i = 0; i < value->n; i++) {
        if (names->n == FORWARD_HEADERS_MAX)
            return fail(error, "there are more than 16 headers");
        if (forward_names_have(names, value->words[i]))
            return fail(error, "two of the headers have the same name");
        int err = read_name(&names->items[names->n], value->words[i], arena, error);
        if (err < 0)
            return err;
        names->n++;
    }
    return value->n ? 0 : fail(error, "the names of headers are missing");
}
