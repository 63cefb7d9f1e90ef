// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <monkey/base/escape.h>
#include <monkey/kit/variables.h>

#include <assert.h>
#include <errno.h>

#define VARIABLES \
    "a target has no variables such as \"%.*s\": KeepPath appends what follows the prefix of Match, and $1 to $9 are " \
    "the captures of a regular expression%s; write a dollar as %%24, a brace as %%7B"
#define OWN_HOST "; a target that begins with / has the scheme and the host of the request"

/* ── captures ── */

/* Returns the first variable as other servers have them, such as $name, with its signs; empty: there is none. */
static struct mk_variable_found find_variable(struct mk_str to)
{
    struct mk_variable_found found;
    bool known = mk_variable_find_in(to, &found);
    size_t before = known ? (size_t)(found.text.p - to.p) : to.len;
    for (size_t i = 0; i + 1 < before; i++) {
        size_t end = i + 1;
        while (to.p[i] == '$' && !mk_is_digit(to.p[i + 1]) && end < to.len && mk_is_name_byte(to.p[end], "_"))
            end++;
        if (end > i + 1)
            return (struct mk_variable_found){.text = mk_str(to.p + i, end - i)};
    }
    return known ? found : (struct mk_variable_found){.text = MK_STR("")};
}

static bool is_capture(struct mk_str to, size_t at)
{
    return to.p[at] == '$' && at + 1 < to.len && to.p[at + 1] >= '0' && to.p[at + 1] <= '9';
}

bool target_has_captures(struct mk_str to)
{
    size_t at = 0;
    while (at < to.len && !is_capture(to, at))
        at++;
    return at < to.len;
}

size_t target_count_captured_bytes(struct mk_str to, const struct mk_str *groups)
{
    size_t n = 0;
    for (size_t i = 0; i < to.len; i++)
        if (is_capture(to, i))
            n += groups[to.p[i + 1] - '0'].len;
    return n;
}

/* Encodes a capture so that it stays within its part of the URI: in a query it is one value. */
static void add_capture(struct mk_buf *out, struct mk_str text, bool query, bool has_encoded_slash)
{
    while (query && text.len) {
        struct mk_str part = mk_str_until(text, "&+;=");
        mk_path_encode_kept(out, part, has_encoded_slash);
        text = mk_str_after(text, part.len);
        if (text.len)
            mk_buf_addf(out, "%%%02X", (unsigned)text.p[0]);
        text = mk_str_after(text, text.len > 0);
    }
    mk_path_encode_kept(out, text, has_encoded_slash);
}

void target_add_text(struct mk_buf *out, struct mk_str to, const struct target_captures *captures, bool query)
{
    for (size_t i = 0; i < to.len; i++) {
        query = query || to.p[i] == '?';
        if (captures->groups && is_capture(to, i))
            add_capture(out, captures->groups[to.p[++i] - '0'], query, captures->has_encoded_slash);
        else
            mk_buf_addc(out, to.p[i]);
    }
}

void target_add(struct mk_buf *location, struct mk_str to, const struct target_captures *captures)
{
    target_add_text(location, to, captures, false);
    while (target_is_path(to) && location->len && !target_is_path(mk_buf_str(location)))
        mk_buf_drop(location, 1); /* the first slash of "//", after which browsers expect a host */
}

struct target_rest target_find_rest(const struct mk_pattern *match, struct mk_str path)
{
    bool follows = match->kind == MK_PATTERN_PREFIX && path.len > match->text.len;
    return (struct target_rest){mk_pattern_rest(match, path), follows};
}

void target_add_slash(struct mk_buf *out, const struct target_rest *rest)
{
    bool ends = out->len && out->data[out->len - 1] == '/';
    bool query = out->len && memchr(out->data, '?', out->len);
    if (rest->slash && !ends && (rest->text.len || !query))
        mk_buf_addc(out, '/');
}

/* ── values ── */

bool target_is_path(struct mk_str to)
{
    return to.len && to.p[0] == '/' && (to.len == 1 || to.p[1] != '/');
}

size_t target_find_host_end(struct mk_str to)
{
    if (target_is_path(to))
        return 0;
    const char *host = memmem(to.p, to.len, "//", 2);
    assert(host); /* target_parse_any() accepts no other target */
    size_t at = (size_t)(host - to.p) + 2;
    while (at < to.len && to.p[at] == '/')
        at++;
    return at + mk_str_until(mk_str_after(to, at), "/?#").len;
}

static int check_variables(const struct mk_conf_value *value, struct mk_buf *error)
{
    struct mk_variable_found found = find_variable(value->text);
    if (!found.text.len)
        return 0;
    bool is_host = found.here && strcmp(found.here, "host") == 0;
    mk_buf_addf(error, VARIABLES, MK_STR_ARG(found.text), is_host ? OWN_HOST : "");
    return mk_conf_fault(value, 0, (size_t)(found.text.p - value->text.p), error, NULL);
}

/* What lines of nginx and Apache have before or behind a target. */
static const struct {
    struct mk_str word;
    const char *redirect, *rewrite;
} flags[] = {
#define A_STATUS(status) \
    "a status has its own line: write \"Status " status "\"", \
        "a rewritten request has no status: [REDIRECT] redirects, with \"Status " status "\""
#define LAST "no [REDIRECT] follows another one: leave it out", "this has its own line: write \"Last On\""
    {MK_STR_INIT("permanent"), A_STATUS("301")},
    {MK_STR_INIT("redirect"), A_STATUS("302")},
    {MK_STR_INIT("301"), A_STATUS("301")},
    {MK_STR_INIT("302"), A_STATUS("302")},
    {MK_STR_INIT("303"), A_STATUS("303")},
    {MK_STR_INIT("307"), A_STATUS("307")},
    {MK_STR_INIT("308"), A_STATUS("308")},
    {MK_STR_INIT("last"), LAST},
    {MK_STR_INIT("break"), LAST},
};

/* Those of Apache: [L], [R=301,L], [QSA] ... */
static int check_bracket(const struct mk_conf_value *value, bool rewrite, struct mk_buf *error)
{
    uint32_t last = value->n ? value->n - 1 : 0;
    if (!last || !mk_str_starts(value->words[last], MK_STR("[")) || !mk_str_ends(value->words[last], MK_STR("]")))
        return 0;
    return mk_conf_fault(value, last, 0, error,
                         rewrite ? "flags in brackets are those of Apache: write lines, such as \"Last On\" for [L]; "
                                   "the query is kept without one"
                                 : "flags in brackets are those of Apache: write lines, such as \"Status 301\" for "
                                   "[R=301]; the query is kept without one");
}

static int check_flags(const struct mk_conf_value *value, bool rewrite, struct mk_buf *error)
{
    int err = check_bracket(value, rewrite, error);
    if (err < 0)
        return err;
    for (uint32_t i = 0; value->n > 1 && i < value->n; i += value->n - 1)
        for (size_t k = 0; k < MK_COUNT_OF(flags); k++)
            if (mk_str_ieq(value->words[i], flags[k].word))
                return mk_conf_fault(value, i, 0, error, rewrite ? flags[k].rewrite : flags[k].redirect);
    return 0;
}

static int check_bytes(const struct mk_conf_value *value, struct mk_buf *error)
{
    size_t n = mk_str_visible_len(value->text, "\\"); /* browsers treat a backslash as a slash */
    if (n == value->text.len)
        return check_variables(value, error);
    return mk_conf_fault(value, 0, n, error,
                         "a target is a URI without blanks and backslashes; write other bytes as %XX");
}

static int copy_target(const struct mk_conf_value *value, struct target *to, struct mk_arena *arena)
{
    to->text = mk_arena_dup(arena, value->text);
    to->place = mk_conf_place(value, arena);
    return to->text.p && to->place.p ? 0 : -ENOMEM;
}

int target_parse_any(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = value->text;
    int err = check_flags(value, false, error);
    if (err == 0)
        err = check_bytes(value, error);
    if (err < 0)
        return err;
    if (text.len == 0 || (text.p[0] != '/' && !memmem(text.p, text.len, "://", 3)))
        return mk_conf_fault(value, 0, 0, error,
                             "a target is a path such as /new, or a URI such as https://example.org/");
    return copy_target(value, field, arena);
}

int target_parse_host(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct target *to = field;
    if (mk_str_ieq(value->text, MK_STR("https")))
        return mk_conf_fault(value, 0, 0, error,
                             "https takes the plugin tls, which is not loaded: it redirects unencrypted requests");
    struct mk_variable_found found = find_variable(value->text);
    if (found.text.len)
        return mk_conf_fault(value, 0, (size_t)(found.text.p - value->text.p), error,
                             "this target has no variables: the path and the query of the request follow it; write a "
                             "dollar as %24, a brace as %7B");
    if (value->n > 1)
        return mk_conf_fault(value, 0, 0, error,
                             "one URI is needed, to which all requests are redirected; [REDIRECT] has a status and "
                             "redirects some paths");
    int err = target_parse_any(value, field, arena, error);
    if (err < 0 || !target_has_captures(to->text))
        return err;
    *to = (struct target){.text = MK_STR_NONE};
    mk_buf_addf(error, "only [REDIRECT] has captures; write a dollar before a digit as %%24");
    return -EINVAL;
}

/* Checks one segment of a path at `at`. */
static int check_segment(const struct mk_conf_value *value, size_t at, size_t len, struct mk_buf *error)
{
    struct mk_str segment = mk_str(value->text.p + at, len);
    for (size_t i = 0; i < len; i++) {
        if (segment.p[i] != '%')
            continue;
        int c = mk_percent_value(segment.p + i, len - i);
        if (c < 0)
            return mk_conf_fault(value, 0, at + i, error,
                                 "two hexadecimal digits follow a %; write the sign itself as %25");
        if (c == 0 || c == '/')
            return mk_conf_fault(value, 0, at + i, error, "no path has an encoded slash or NUL");
    }
    MK_BUF_ON_STACK(decoded, 4);
    mk_path_decode(&decoded, segment);
    if (!decoded.err && mk_str_is_dots(mk_buf_str(&decoded)))
        return mk_conf_fault(value, 0, at, error, "a target has no segment . or .., also not encoded");
    return 0;
}

int target_parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = value->text;
    int err = check_flags(value, true, error);
    if (err == 0)
        err = check_bytes(value, error);
    if (err < 0)
        return err;
    if (!target_is_path(text))
        return mk_conf_fault(value, 0, 0, error,
                             "a request is rewritten to a path of this host, such as /new or /new?id=$1");
    const char *hash = memchr(text.p, '#', text.len), *query = memchr(text.p, '?', text.len);
    if (hash)
        return mk_conf_fault(value, 0, (size_t)(hash - text.p), error,
                             "browsers keep fragments for themselves; write the sign itself as %23");
    size_t path_len = query ? (size_t)(query - text.p) : text.len;
    for (size_t at = 1; at <= path_len && err == 0;) {
        const char *slash = at < path_len ? memchr(text.p + at, '/', path_len - at) : NULL;
        size_t end = slash ? (size_t)(slash - text.p) : path_len;
        err = check_segment(value, at, end - at, error);
        at = end + 1;
    }
    return err < 0 ? err : copy_target(value, field, arena);
}

void target_check_captures(const struct mk_conf_check *check, const struct mk_pattern *match, size_t match_offset,
                           struct mk_str to, size_t to_offset)
{
    size_t host_end = to.len ? target_find_host_end(to) : 0;
    bool compiled = match->kind != MK_PATTERN_REGEX || match->regex;
    if (!compiled || !match->text.p || mk_conf_is_wrong(check, match_offset))
        return; /* the pattern is missing or wrong, which was reported */
    for (size_t i = 0; i < to.len; i++) {
        if (!is_capture(to, i))
            continue;
        char digit = to.p[i + 1];
        if (match->kind != MK_PATTERN_REGEX)
            mk_conf_error(check, to_offset,
                          "$%c is a capture, but Match is not a regular expression; write a dollar as %%24", digit);
        else if (digit - '0' > match->groups)
            mk_conf_error(check, to_offset, "there is no $%c: the expression in Match has %u captures", digit,
                          match->groups);
        else if (i < host_end)
            mk_conf_error(check, to_offset,
                          "$%c would let clients choose the host: captures are for paths and queries only", digit);
    }
}
