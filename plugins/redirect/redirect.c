// SPDX-License-Identifier: Apache-2.0
/*
 * redirect: sends clients elsewhere, by rules of a host. It answers before anybody looks for content; the
 * first rule that matches counts.
 */
#include <monkey/codec.h>
#include <monkey/pattern.h>
#include <monkey/plugin.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_redirect;

/* ── directives ── */

/* Where to: printable ASCII, either a path or a whole URI. */
struct target {
    struct mk_str text;
};

struct rule {
    struct mk_pattern match;
    struct target to;
    int status;
    bool keep_path;
};

struct host_rule {
    struct target to;
};

static const char *const statuses[] = {"301", "302", "303", "307", "308", NULL};
static const int status_numbers[] = {301, 302, 303, 307, 308};

static int parse_target(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct target *to = field;
    for (size_t i = 0; i < value->text.len; i++) {
        unsigned char c = (unsigned char)value->text.p[i];
        if (c > 0x20 && c < 0x7f)
            continue;
        mk_buf_addf(error, "a target is a URI without blanks; other bytes are written %%XX");
        return -EINVAL;
    }
    if (value->text.len == 0 || (value->text.p[0] != '/' && !memmem(value->text.p, value->text.len, "://", 3))) {
        mk_buf_addf(error, "a target is a path such as /new, or a whole URI such as https://example.org/");
        return -EINVAL;
    }
    to->text = mk_arena_dup(arena, value->text);
    return to->text.p ? 0 : -ENOMEM;
}

static const struct mk_conf_key rule_keys[] = {
    MK_CONF_KEY_PATTERN(struct rule, match, "Match", NULL,
                        "Which paths: `=/exact`, `/prefix` with everything below it, or a glob such as `*.php`.",
                        .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_CUSTOM(struct rule, to, "To", NULL, "Where the client is sent: a path of this host, or a whole URI.",
                       .flags = MK_CONF_REQUIRED, .unit = "path or URI", .parse = parse_target),
    MK_CONF_KEY_ENUM(struct rule, status, "Status", "301",
                     "301 and 308 are for good, 302 and 307 for now; 307 and 308 keep the method, 303 makes it GET.",
                     .names = statuses),
    MK_CONF_KEY_BOOL(struct rule, keep_path, "KeepPath", "On",
                     "Whether what follows the prefix of `Match`, and the query, are appended to the target."),
    {0},
};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_CUSTOM(struct host_rule, to, "Redirect", NULL,
                       "Sends every request of this host elsewhere (301), path and query kept.", .unit = "URI",
                       .parse = parse_target),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "REDIRECT",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct rule),
     .keys = rule_keys,
     .doc = MK_CONF_DOC("A rule that sends clients elsewhere. The first rule of the file that matches counts; "
                        "rules come before all content.")},
    {.name = "HOST",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct host_rule),
     .keys = host_keys,
     .doc = MK_CONF_DOC("The host as a whole.")},
    {0},
};

/* ── rules ── */

static const struct rule *first_match(const struct mk_host *host, struct mk_str path)
{
    for (const struct rule *r = mk_host_conf(host, &sections[0]); r; r = mk_host_conf_next(host, &sections[0], r))
        if (mk_pattern_match(&r->match, path))
            return r;
    return NULL;
}

enum { LOOP_STEPS_MAX = 16 };

/* A target on this host that rules lead on from there, again and again. */
static bool loops(const struct mk_host *host, const struct rule *rule)
{
    const struct rule *r = rule;
    for (int i = 0; i < LOOP_STEPS_MAX; i++) {
        struct mk_str to = r->to.text;
        const char *query = memchr(to.p, '?', to.len);
        if (to.p[0] != '/' || (to.len > 1 && to.p[1] == '/'))
            return false;
        r = first_match(host, query ? mk_str(to.p, (size_t)(query - to.p)) : to);
        if (!r)
            return false;
    }
    return true;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct rule *first = mk_host_conf(host, &sections[0]);
    const struct host_rule *whole = mk_host_conf(host, &sections[1]);
    int err = mk_host_check_patterns(host, &sections[0], offsetof(struct rule, match));
    for (const struct rule *r = first; r; r = mk_host_conf_next(host, &sections[0], r)) {
        if (!loops(host, r))
            continue;
        mk_host_error(host, r, offsetof(struct rule, to), 0,
                      "this redirect never ends: its target is redirected again");
        err = -EINVAL;
    }
    *ret_state = first || whole->to.text.len ? host : NULL; /* a host without rules costs nothing */
    return err;
}

/* ── requests ── */

static void add_query(struct mk_buf *location, struct mk_str query)
{
    if (!query.p)
        return;
    mk_buf_addc(location, location->len && memchr(location->data, '?', location->len) ? '&' : '?');
    mk_buf_adds(location, query);
}

static void send_elsewhere(struct mk_request *req, struct mk_str to, struct mk_str rest, int status, bool keep)
{
    struct mk_buf location;
    struct mk_str query = mk_request_query(req);
    size_t size = to.len + rest.len * 3 + query.len + 2; /* each byte may become three */
    char *storage = mk_arena_alloc(mk_request_arena(req), size);
    if (!storage) {
        mk_response_error(req, 503);
        return;
    }
    mk_buf_init_fixed(&location, storage, size);
    mk_buf_adds(&location, to);
    if (keep && rest.len) {
        if (to.p[to.len - 1] != '/')
            mk_buf_addc(&location, '/');
        mk_path_encode(&location, rest);
    }
    if (keep)
        add_query(&location, query);
    mk_response_redirect(req, status, mk_buf_str(&location));
}

static int redirect(struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_redirect);
    struct mk_str path = mk_request_path(req);
    if (!host || path.len == 0 || path.p[0] != '/')
        return MK_DECLINED;
    const struct rule *r = first_match(host, path);
    const struct host_rule *whole = mk_host_conf(host, &sections[1]);
    if (r)
        send_elsewhere(req, r->to.text, mk_pattern_rest(&r->match, path), status_numbers[r->status], r->keep_path);
    else if (whole->to.text.len)
        send_elsewhere(req, whole->to.text, mk_str(path.p + 1, path.len - 1), 301, true);
    return r || whole->to.text.len ? 0 : MK_DECLINED;
}

MK_PLUGIN(redirect) = {
    MK_PLUGIN_HEAD("redirect", "2.0.0", "sends clients elsewhere"),
    .sections = sections,
    .host_start = start_host,
    .on_request = redirect,
};
