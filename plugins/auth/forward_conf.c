// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the directives of `Type Forward` (forward_conf.h).
 */
#include "forward_conf.h"

#include <monkey/request.h>

#include <errno.h>

/* ── To ── */

/* Sets the path, which a request line must be able to have; an empty one is that of the root. */
static int set_path(struct mk_target *t, struct mk_str path, struct mk_buf *error)
{
    t->path = path.len ? path : MK_STR("/");
    if (t->path.p[0] != '/' || !mk_str_is_visible(path, "#\"<>\\^`{|}"))
        return mk_conf_fail(error, "behind the host may stand a path, percent-encoded, perhaps with a query");
    return 0;
}

int forward_parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_target *t = field;
    struct mk_str text = mk_arena_dup(arena, value->text);
    if (!text.p)
        return -ENOMEM;
    size_t n = value->n ? value->words[0].len : 0;
    struct mk_str url = mk_arena_dup(arena, mk_str(text.p, n)), rest = mk_str_trim(mk_str_after(text, n));
    int err = url.p ? mk_target_parse_url(t, url, "server", arena, error) : -ENOMEM;
    t->text = text;
    if (err == 0 && rest.len && (value->n > 2 || t->dial->port))
        err = MK_DECLINED;
    if (err > 0)
        return mk_conf_fail(error, "the server is http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:/SOCKET /PATH");
    if (err == 0)
        err = set_path(t, t->dial->port ? t->path : rest, error);
    if (err < 0)
        t->dial = NULL;
    return err;
}

/* ── names of headers ── */

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
    if (!mk_header_is_plain(word))
        return mk_conf_fail(error, "the name of a header has letters, digits and dashes only");
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
                         : mk_conf_fail(error, "it takes the name of one header");
}

int forward_parse_names(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct forward_names *names = field;
    for (uint32_t i = 0; i < value->n; i++) {
        if (names->n == FORWARD_HEADERS_MAX)
            return mk_conf_fail(error, "there are more than 16 headers");
        if (forward_names_have(names, value->words[i]))
            return mk_conf_fail(error, "two of the headers have the same name");
        int err = read_name(&names->items[names->n], value->words[i], arena, error);
        if (err < 0)
            return err;
        names->n++;
    }
    return value->n ? 0 : mk_conf_fail(error, "the names of headers are missing");
}
