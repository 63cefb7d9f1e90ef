// SPDX-License-Identifier: Apache-2.0
/*
 * redirect: redirects clients by the rules of a host, before plugins look for content. The first rule that matches a
 * path is used.
 */
#include <monkey/escape.h>
#include <monkey/pattern.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>

extern const struct mk_plugin mk_plugin_redirect;

enum { CAPTURED_BYTES_MAX = 8192 }; /* of a path, in one target */

/* ── directives ── */

/* A path or a URI, printable ASCII. `$0` to `$9` are captures of a regular expression. */
struct redirect_target {
    struct mk_str text;
};

struct redirect_rule {
    struct mk_pattern match;
    struct redirect_target to;
    int status;
    bool keep_path;
};

struct redirect_host {
    struct redirect_target to;
};

static const char *const status_names[] = {"301", "302", "303", "307", "308", NULL};
static const int status_codes[] = {301, 302, 303, 307, 308};

static int parse_target(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct redirect_target *to = field;
    for (size_t i = 0; i < value->text.len; i++) {
        unsigned char c = (unsigned char)value->text.p[i];
        if (c > 0x20 && c < 0x7f && c != '\\') /* browsers treat a backslash as a slash */
            continue;
        mk_buf_addf(error, "a target is a URI without blanks and backslashes; write other bytes as %%XX");
        return -EINVAL;
    }
    if (value->text.len == 0 || (value->text.p[0] != '/' && !memmem(value->text.p, value->text.len, "://", 3))) {
        mk_buf_addf(error, "a target is a path such as /new, or a URI such as https://example.org/");
        return -EINVAL;
    }
    to->text = mk_arena_dup(arena, value->text);
    return to->text.p ? 0 : -ENOMEM;
}

/* ── captures in targets ── */

static bool is_capture(struct mk_str to, size_t at)
{
    return to.p[at] == '$' && at + 1 < to.len && to.p[at + 1] >= '0' && to.p[at + 1] <= '9';
}

static bool has_captures(struct mk_str to)
{
    size_t at = 0;
    while (at < to.len && !is_capture(to, at))
        at++;
    return at < to.len;
}

/* Parses Redirect of [HOST], which has no expression and so no captures. */
static int parse_host_target(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct redirect_target *to = field;
    int err = parse_target(value, field, arena, error);
    if (err < 0 || !has_captures(to->text))
        return err;
    *to = (struct redirect_target){{0}};
    mk_buf_addf(error, "only [REDIRECT] has captures; write a dollar before a digit as %%24");
    return -EINVAL;
}

/* Returns true for a path of this host; "//host/" is another host. */
static bool is_path(struct mk_str to)
{
    return to.len && to.p[0] == '/' && (to.len == 1 || to.p[1] != '/');
}

/* Returns the end of scheme and host in a target. Browsers accept any number of slashes before the host. */
static size_t find_host_end(struct mk_str to)
{
    if (is_path(to))
        return 0;
    const char *host = memmem(to.p, to.len, "//", 2);
    assert(host); /* parse_target() accepts no other target */
    size_t at = (size_t)(host - to.p) + 2;
    while (at < to.len && to.p[at] == '/')
        at++;
    while (at < to.len && !memchr("/?#", to.p[at], 3))
        at++;
    return at;
}

/* Reports captures that the expression does not have, and those in the scheme or host of the target. */
static void check_rule(const struct mk_conf_check *check, void *section)
{
    const struct redirect_rule *r = section;
    struct mk_str to = r->to.text;
    size_t field = offsetof(struct redirect_rule, to), host_end = to.len ? find_host_end(to) : 0;
    bool compiled = r->match.kind != MK_PATTERN_REGEX || r->match.regex;
    if (!compiled || !r->match.text.p || mk_conf_is_wrong(check, offsetof(struct redirect_rule, match)))
        return; /* the pattern is missing or wrong, which was reported */
    for (size_t i = 0; i < to.len; i++) {
        if (!is_capture(to, i))
            continue;
        char digit = to.p[i + 1];
        if (r->match.kind != MK_PATTERN_REGEX)
            mk_conf_error(check, field,
                          "$%c is a capture, but Match is not a regular expression; write a dollar as %%24", digit);
        else if (digit - '0' > r->match.groups)
            mk_conf_error(check, field, "there is no $%c: the expression in Match has %u captures", digit,
                          r->match.groups);
        else if (i < host_end)
            mk_conf_error(check, field,
                          "$%c would let clients choose the host: captures are for paths and queries only", digit);
    }
}

/* Encodes a capture so that it stays within its part of the URI: in a query it is one value. */
static void add_capture(struct mk_buf *location, struct mk_str text, bool query)
{
    for (size_t i = 0; i < text.len; i++)
        if (query && memchr("&+;=", text.p[i], 4))
            mk_buf_addf(location, "%%%02X", (unsigned)text.p[i]);
        else
            mk_path_encode(location, mk_str(text.p + i, 1));
}

/* Adds text of a target, with its captures encoded; `groups` NULL: a dollar is a dollar. */
static void add_text(struct mk_buf *location, struct mk_str to, const struct mk_str *groups)
{
    bool query = false;
    for (size_t i = 0; i < to.len; i++) {
        query = query || to.p[i] == '?';
        if (groups && is_capture(to, i))
            add_capture(location, groups[to.p[++i] - '0'], query);
        else
            mk_buf_addc(location, to.p[i]);
    }
}

/* Adds a target. The result is a path of this host if the target is one, whatever the captures are. */
static void add_target(struct mk_buf *location, struct mk_str to, const struct mk_str *groups)
{
    add_text(location, to, groups);
    while (is_path(to) && location->len && !is_path(mk_buf_str(location)))
        mk_buf_drop(location, 1); /* the first slash of "//", behind which browsers expect a host */
}

/* Returns the length of all captures that a target uses, before they are encoded. */
static size_t count_captured_bytes(struct mk_str to, const struct mk_str *groups)
{
    size_t n = 0;
    for (size_t i = 0; i < to.len; i++)
        if (is_capture(to, i))
            n += groups[to.p[i + 1] - '0'].len;
    return n;
}

/* ── tables ── */

static const struct mk_conf_key rule_keys[] = {
    MK_CONF_KEY_PATTERN(struct redirect_rule, match, "Match", NULL,
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a "
                        "regular expression such as `~^/item/([0-9]+)$` (`~*` ignores the case).",
                        .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_CUSTOM(struct redirect_rule, to, "To", NULL,
                       "The target: a path of this host, or a URI. `$1` to `$9` are what the parentheses of an "
                       "expression in `Match` captured, `$0` all that it matched; write a dollar before a digit as "
                       "`%24`.",
                       .flags = MK_CONF_REQUIRED, .unit = "path or URI", .parse = parse_target),
    MK_CONF_KEY_ENUM(struct redirect_rule, status, "Status", "301",
                     "301 and 308 are permanent, 302 and 307 temporary; 307 and 308 keep the method, 303 makes it GET.",
                     .names = status_names),
    MK_CONF_KEY_BOOL(struct redirect_rule, keep_path, "KeepPath", "On",
                     "Whether what follows the prefix of `Match`, and the query, are appended to the target."),
    {0},
};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_CUSTOM(struct redirect_host, to, "Redirect", NULL,
                       "Redirects every request of this host (301) and keeps path and query. Write a dollar before a "
                       "digit as `%24`.",
                       .unit = "URI", .parse = parse_host_target),
    {0},
};

enum { RULES, HOST };

static const struct mk_conf_section sections[] = {
    {.name = "REDIRECT",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct redirect_rule),
     .keys = rule_keys,
     .check = check_rule,
     .doc = MK_CONF_DOC("A rule that redirects clients. The first rule of the file that matches is used, before "
                        "plugins look for content.")},
    {.name = "HOST",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct redirect_host),
     .keys = host_keys,
     .doc = MK_CONF_DOC("The host as a whole.")},
    {0},
};

/* ── rules ── */

/* Finds the first rule that matches; NULL if none does. Returns 0, or -errno (a pattern before it fails on the path).
 */
static int find_match(const struct mk_host *host, struct mk_str path, struct mk_str *groups,
                      const struct redirect_rule **ret_rule)
{
    int match = 0;
    const struct redirect_rule *r = mk_host_conf(host, &sections[RULES]);
    while (r && (match = mk_pattern_capture(&r->match, path, groups)) == 0)
        r = mk_host_conf_next(host, &sections[RULES], r);
    *ret_rule = match > 0 ? r : NULL;
    return match < 0 ? match : 0;
}

/* As find_match(), while the configuration is checked: a failure is no match. */
static const struct redirect_rule *find_first_match(const struct mk_host *host, struct mk_str path,
                                                    struct mk_str *groups)
{
    const struct redirect_rule *r;
    find_match(host, path, groups, &r);
    return r;
}

enum { LOOP_STEPS_MAX = 16, LOOP_PATH_BYTES = 4096 };

/* Returns the path of a target on this host, also of a URI; `.p` NULL if the target is elsewhere. */
static struct mk_str find_local_path(const struct mk_host *host, struct mk_str to)
{
    struct mk_str scheme = MK_STR("http://");
    if (to.len && is_path(to))
        return to;
    size_t end = to.len ? find_host_end(to) : 0;
    if (end <= scheme.len || !mk_str_ieq(mk_str(to.p, scheme.len), scheme) ||
        !mk_host_serves(host, mk_str(to.p + scheme.len, end - scheme.len)))
        return MK_STR_NONE;
    if (end == to.len)
        return MK_STR("/");
    return to.p[end] == '/' ? mk_str(to.p + end, to.len - end) : MK_STR_NONE;
}

/* Adds the decoded path of a target, and `rest` behind it, unless the target has a query. */
static void add_target_path(struct mk_buf *path, struct mk_str to, struct mk_str rest)
{
    assert(to.len > 0 && to.p[0] == '/');
    size_t i = 0;
    for (; i < to.len && to.p[i] != '?' && to.p[i] != '#'; i++) {
        int high = to.p[i] == '%' && i + 2 < to.len ? mk_hex_value(to.p[i + 1]) : -1;
        int low = high >= 0 ? mk_hex_value(to.p[i + 2]) : -1;
        mk_buf_addc(path, low >= 0 ? (char)(high * 16 + low) : to.p[i]);
        i += low >= 0 ? 2 : 0;
    }
    if ((i < to.len && to.p[i] == '?') || !rest.len)
        return;
    if (to.p[i - 1] != '/')
        mk_buf_addc(path, '/');
    mk_buf_adds(path, rest);
}

/* Finds the path on this host to which `path` is redirected. Returns false if there is none, or it has captures. */
static bool follow_redirect(const struct mk_host *host, struct mk_str path, struct mk_buf *next)
{
    assert(path.len > 0 && path.p[0] == '/');
    struct mk_str groups[MK_PATTERN_GROUPS];
    const struct redirect_rule *r = find_first_match(host, path, groups);
    const struct redirect_host *whole = mk_host_conf(host, &sections[HOST]);
    struct mk_str to = find_local_path(host, r ? r->to.text : whole->to.text);
    struct mk_str rest = mk_str(path.p + 1, path.len - 1);
    if (!to.p || (r && has_captures(to)))
        return false;
    if (r)
        rest = r->keep_path ? mk_pattern_rest(&r->match, path) : MK_STR("");
    add_target_path(next, to, rest);
    return !next->err;
}

/* Returns true if requests for this path are redirected without end. */
static bool is_redirect_loop(const struct mk_host *host, struct mk_str path)
{
    char storage[2][LOOP_PATH_BYTES];
    struct mk_buf next;
    for (int i = 0; i < LOOP_STEPS_MAX; i++) {
        mk_buf_init_fixed(&next, storage[i % 2], sizeof(storage[0]));
        if (!follow_redirect(host, path, &next))
            return false;
        path = mk_buf_str(&next);
    }
    return true;
}

/* Returns true if there is a loop from the rule's target, or from a path below its prefix. */
static bool is_rule_loop(const struct mk_host *host, const struct redirect_rule *r)
{
    char storage[LOOP_PATH_BYTES];
    struct mk_str groups[MK_PATTERN_GROUPS];
    struct mk_str to = find_local_path(host, r->to.text);
    struct mk_buf path;
    mk_buf_init_fixed(&path, storage, sizeof(storage));
    if (!to.p || has_captures(to))
        return false;
    add_target_path(&path, to, MK_STR(""));
    if (!path.err && is_redirect_loop(host, mk_buf_str(&path)))
        return true;
    if (r->match.kind != MK_PATTERN_PREFIX)
        return false;
    mk_buf_init_fixed(&path, storage, sizeof(storage));
    add_target_path(&path, r->match.text, MK_STR("x"));
    return !path.err && find_first_match(host, mk_buf_str(&path), groups) == r &&
           is_redirect_loop(host, mk_buf_str(&path));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct redirect_rule *first = mk_host_conf(host, &sections[RULES]);
    const struct redirect_host *whole = mk_host_conf(host, &sections[HOST]);
    int err = mk_host_check_patterns(host, &sections[RULES], offsetof(struct redirect_rule, match));
    for (const struct redirect_rule *r = first; r; r = mk_host_conf_next(host, &sections[RULES], r)) {
        if (!is_rule_loop(host, r))
            continue;
        mk_host_error(host, r, offsetof(struct redirect_rule, to), 0,
                      "this redirect never ends: its target is redirected again");
        err = -EINVAL;
    }
    if (whole->to.text.len && is_redirect_loop(host, MK_STR("/"))) {
        mk_host_error(host, whole, offsetof(struct redirect_host, to), 0,
                      "this redirect never ends: its target is redirected again");
        err = -EINVAL;
    }
    *ret_state = first || whole->to.text.len ? host : NULL; /* a host without rules costs nothing */
    return err;
}

/* ── requests ── */

/* Adds the query of a request behind that of the target. */
static void add_query(struct mk_buf *location, struct mk_str query)
{
    if (!query.p)
        return;
    mk_buf_addc(location, location->len && memchr(location->data, '?', location->len) ? '&' : '?');
    mk_buf_adds(location, query);
}

/* Removes the fragment from a target and returns it: it stays at the end, behind what is appended. */
static struct mk_str split_fragment(struct mk_str *to)
{
    const char *hash = memchr(to->p, '#', to->len);
    size_t n = hash ? (size_t)(hash - to->p) : to->len;
    struct mk_str fragment = mk_str(to->p + n, to->len - n);
    to->len = n;
    return fragment;
}

/*
 * Redirects to `to`. `groups`: the captures; NULL if a dollar has no meaning. `keep`: appends `rest`, a part of the
 * path, and the query.
 */
static void send_redirect(struct mk_request *req, struct mk_str to, struct mk_str rest, const struct mk_str *groups,
                          int status, bool keep)
{
    struct mk_buf location;
    struct mk_str query = mk_request_query(req), fragment = split_fragment(&to);
    size_t captured = groups ? count_captured_bytes(to, groups) + count_captured_bytes(fragment, groups) : 0;
    size_t size =
        to.len + fragment.len + (rest.len + captured) * 3 + query.len + 2; /* a byte may be encoded as three */
    char *storage = captured <= CAPTURED_BYTES_MAX ? mk_arena_alloc(mk_request_arena(req), size) : NULL;
    if (!storage) {
        mk_response_error(req, captured > CAPTURED_BYTES_MAX ? 414 : 503);
        return;
    }
    mk_buf_init_fixed(&location, storage, size);
    add_target(&location, to, groups);
    if (keep && rest.len) {
        if (to.len && to.p[to.len - 1] != '/')
            mk_buf_addc(&location, '/');
        mk_path_encode(&location, rest);
    }
    if (keep)
        add_query(&location, query);
    add_text(&location, fragment, groups);
    assert(!location.err); /* `size` is enough */
    mk_response_redirect(req, status, mk_buf_str(&location));
}

static int redirect_request(struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_redirect);
    struct mk_str path = mk_request_path(req), groups[MK_PATTERN_GROUPS];
    if (!host || path.len == 0 || path.p[0] != '/')
        return MK_DECLINED;
    const struct redirect_rule *r;
    const struct redirect_host *whole = mk_host_conf(host, &sections[HOST]);
    if (find_match(host, path, groups, &r) < 0) {
        mk_response_error(req, 500); /* the rule may be there to hide what the path has */
        return 0;
    }
    if (r)
        send_redirect(req, r->to.text, mk_pattern_rest(&r->match, path), groups, status_codes[r->status], r->keep_path);
    else if (whole->to.text.len)
        send_redirect(req, whole->to.text, mk_str(path.p + 1, path.len - 1), NULL, 301, true);
    return r || whole->to.text.len ? 0 : MK_DECLINED;
}

MK_PLUGIN(redirect) = {
    MK_PLUGIN_HEAD("redirect", "2.0.0", "redirects clients"),
    .flags = MK_PLUGIN_CHECKS_ALL,
    .sections = sections,
    .host_start = start_host,
    .on_request = redirect_request,
};
