// SPDX-License-Identifier: Apache-2.0
/*
 * redirect: rewrites requests and redirects clients by the rules of a host, before plugins look for content. The first
 * rule that matches is used. This file has the directives and hooks, and sends redirects.
 */
#include "redirect.h"

#include <monkey/base/escape.h>
#include <monkey/base/pattern.h>
#include <monkey/hooks.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>

extern const struct mk_plugin mk_plugin_redirect;

/* ── directives ── */

/* In the order of REDIRECT_COUNT_301 ... */
static const char *const status_names[] = {"301", "302", "303", "307", "308", NULL};
static const int status_codes[] = {301, 302, 303, 307, 308};

int redirect_status(const struct redirect_rule *rule)
{
    return status_codes[rule->status];
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    const struct path_rule *r = section;
    target_check_captures(check, &r->match, offsetof(struct path_rule, match), r->to.text,
                          offsetof(struct path_rule, to));
}

#define MATCH_DOC \
    "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a regular expression " \
    "such " \
    "as `~^/item/([0-9]+)$` (`~*` ignores the case)."

static const struct mk_conf_key redirect_keys[] = {
    MK_CONF_KEY_PATTERN(struct redirect_rule, base.match, "Match", NULL, MATCH_DOC, .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_CUSTOM(struct redirect_rule, base.to, "To", NULL,
                       "The target: a path of this host, or a URI. `$1` to `$9` are what the parentheses of an "
                       "expression in `Match` captured, `$0` all that it matched; write a dollar before a digit as "
                       "`%24`.",
                       .flags = MK_CONF_REQUIRED, .unit = "path or URI", .parse = target_parse_any),
    MK_WHEN_KEY(struct redirect_rule, base.when),
    MK_CONF_KEY_ENUM(struct redirect_rule, status, "Status", "301",
                     "301 and 308 are permanent, 302 and 307 temporary; 307 and 308 keep the method, 303 makes it GET.",
                     .names = status_names),
    MK_CONF_KEY_BOOL(struct redirect_rule, base.keep_path, "KeepPath", "On",
                     "Whether what follows the prefix of `Match`, and the query, are appended to the target."),
    {0},
};

static const struct mk_conf_key rewrite_keys[] = {
    MK_CONF_KEY_PATTERN(struct rewrite_rule, base.match, "Match", NULL, MATCH_DOC, .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_CUSTOM(struct rewrite_rule, base.to, "To", NULL,
                       "The new path, and perhaps a query: `/item?id=$1`. Captures as in [REDIRECT].",
                       .flags = MK_CONF_REQUIRED, .unit = "path", .parse = target_parse_path),
    MK_WHEN_KEY(struct rewrite_rule, base.when),
    MK_CONF_KEY_BOOL(struct rewrite_rule, base.keep_path, "KeepPath", "On",
                     "Whether what follows the prefix of `Match` is appended to the path."),
    MK_CONF_KEY_BOOL(struct rewrite_rule, keep_query, "KeepQuery", "On",
                     "Whether the query of the request is kept, behind the one of `To`."),
    MK_CONF_KEY_BOOL(struct rewrite_rule, last, "Last", "Off",
                     "Whether no further rule is looked for. Otherwise the new path is compared with all rules again, "
                     "at most 10 times."),
    {0},
};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_CUSTOM(struct redirect_host, to, "Redirect", NULL,
                       "Redirects every request of this host (301) and keeps path and query. Write a dollar before a "
                       "digit as `%24`.",
                       .flags = MK_CONF_SERVES, .unit = "URI", .parse = target_parse_host),
    {0},
};

const struct mk_conf_section redirect_sections[] = {
    [RULES_REDIRECT] = {.name = "REDIRECT",
                        .scope = MK_CONF_SCOPE_HOST,
                        .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
                        .size = sizeof(struct redirect_rule),
                        .keys = redirect_keys,
                        .check = check_rule,
                        .doc = MK_CONF_DOC("A rule that redirects clients. The first rule of the file that matches is "
                                           "used, before plugins look for content.")},
    [RULES_REWRITE] = {.name = "REWRITE",
                       .scope = MK_CONF_SCOPE_HOST,
                       .flags = MK_CONF_REPEAT,
                       .size = sizeof(struct rewrite_rule),
                       .keys = rewrite_keys,
                       .check = check_rule,
                       .doc = MK_CONF_DOC("A rule that gives requests another path, which the client does not see: "
                                          "all other sections hold for the new path. The first rule that matches is "
                                          "used, then the rules are compared with the new path.")},
    [RULES_HOST] = {.name = "HOST",
                    .scope = MK_CONF_SCOPE_HOST,
                    .size = sizeof(struct redirect_host),
                    .keys = host_keys,
                    .doc = MK_CONF_DOC("The host as a whole.")},
    {0},
};

/* ── the process ── */

static int start_process(void **ret_state)
{
    (void)ret_state;
    redirect_counters_open();
    return 0;
}

/* ── hosts ── */

struct redirect_state {
    const struct mk_host *host;
    bool rewrites, redirects;
    _Atomic uint64_t logged_ms; /* of a request that was rewritten too often */
};

static bool is_conditional(const void *rule)
{
    const struct path_rule *r = rule;
    return r->when.n > 0;
}

static int check_host(struct mk_host *host)
{
    int errors[] = {
        mk_host_check_rules(host, &redirect_sections[RULES_REDIRECT], offsetof(struct path_rule, match),
                            is_conditional),
        mk_host_check_rules(host, &redirect_sections[RULES_REWRITE], offsetof(struct path_rule, match), is_conditional),
        loops_check_rewrites(host),
        loops_check_redirects(host),
    };
    int err = 0;
    for (size_t i = 0; i < MK_COUNT_OF(errors); i++)
        err = errors[i] < 0 ? errors[i] : err;
    return err;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct redirect_host *whole = mk_host_conf(host, &redirect_sections[RULES_HOST]);
    bool rewrites = mk_host_conf(host, &redirect_sections[RULES_REWRITE]);
    bool redirects = mk_host_conf(host, &redirect_sections[RULES_REDIRECT]) || whole->to.text.len;
    int err = check_host(host);
    if (err < 0 || (!rewrites && !redirects))
        return err; /* a host without rules costs nothing */
    struct redirect_state *s = mk_account_alloc(NULL, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct redirect_state){.host = host, .rewrites = rewrites, .redirects = redirects};
    *ret_state = s;
    return 0;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    mk_account_free(NULL, state, sizeof(struct redirect_state));
}

/* ── requests ── */

const void *redirect_find_rule(const struct mk_host *host, unsigned section, struct mk_str path,
                               const struct mk_when_request *request, struct mk_str *groups, int *ret_match)
{
    const struct path_rule *r = NULL;
    int match = 0;
    while (
        (r = mk_host_conf_next_match(host, &redirect_sections[section], offsetof(struct path_rule, match), path, r))) {
        match = mk_pattern_capture(&r->match, path, groups);
        if (match > 0 && request)
            match = mk_when_holds(&r->when, request);
        if (match != 0)
            break;
    }
    *ret_match = match;
    return r;
}

/* Adds the query of a request after that of the target. */
static void add_query(struct mk_buf *location, struct mk_str query)
{
    if (!query.p)
        return;
    mk_buf_addc(location, location->len && memchr(location->data, '?', location->len) ? '&' : '?');
    mk_buf_adds(location, query);
}

/* Removes the fragment from a target and returns it: it stays at the end, after what is appended. */
static struct mk_str split_fragment(struct mk_str *to)
{
    struct mk_str path = mk_str_until(*to, "#"), fragment = mk_str_after(*to, path.len);
    *to = path;
    return fragment;
}

/* Returns the length of a path that is only decoded, not normalized. */
static size_t count_decoded(struct mk_str raw, bool has_encoded_slash)
{
    size_t n = raw.len;
    for (size_t i = 0; i + 2 < raw.len; i++) {
        bool is_kept = has_encoded_slash && mk_str_ieq(mk_str(raw.p + i, 3), MK_STR("%2F"));
        n -= raw.p[i] == '%' && !is_kept ? 2 : 0;
    }
    return n;
}

/*
 * Adds what follows the prefix of `match` in the path of the request: as the client has sent it, since escapes may have
 * a meaning, or decoded and encoded again, if it was normalized or rewritten.
 */
static void add_rest(struct mk_buf *location, const struct mk_request *req, const struct mk_pattern *match,
                     struct mk_str rest)
{
    struct mk_str raw = mk_request_raw_path(req), path = mk_request_path(req);
    bool has_encoded_slash = mk_request_has_encoded_slash(req);
    bool is_sent = path.p == mk_request_original_path(req).p && mk_str_starts(raw, match->text) &&
                   count_decoded(raw, has_encoded_slash) == path.len;
    if (is_sent && rest.len)
        mk_path_encode_raw(location, mk_pattern_rest(match, raw));
    else
        mk_path_encode_kept(location, rest, has_encoded_slash);
}

/*
 * Redirects to `to`. `groups`: the captures; NULL if a dollar has no meaning. `match`: appends what follows this prefix
 * in the path, and the query; NULL: appends nothing. `status`: its place in `status_codes`.
 */
static void send_redirect(struct mk_request *req, struct mk_str to, const struct mk_pattern *match,
                          const struct mk_str *groups, unsigned status)
{
    struct mk_buf location;
    struct mk_str query = mk_request_query(req), fragment = split_fragment(&to);
    struct target_rest rest = {MK_STR_NONE, false};
    if (match)
        rest = target_find_rest(match, mk_request_path(req));
    size_t captured =
        groups ? target_count_captured_bytes(to, groups) + target_count_captured_bytes(fragment, groups) : 0;
    const struct target_captures captures = {groups, mk_request_has_encoded_slash(req)};
    size_t size = to.len + fragment.len + (mk_request_raw_path(req).len + rest.text.len + captured) * 3 + query.len +
                  2; /* a byte may be encoded as three */
    bool too_long = captured > TARGET_CAPTURED_BYTES_MAX;
    char *storage = too_long ? NULL : mk_arena_alloc(mk_request_arena(req), size);
    if (!storage) {
        redirect_counters_add(too_long ? REDIRECT_COUNT_TOO_LONG : REDIRECT_COUNT_NO_MEMORY, req);
        mk_response_error(req, too_long ? 414 : 503);
        return;
    }
    mk_buf_init_fixed(&location, storage, size);
    target_add(&location, to, &captures);
    target_add_slash(&location, &rest);
    if (match)
        add_rest(&location, req, match, rest.text);
    if (match)
        add_query(&location, query);
    target_add_text(&location, fragment, &captures, false);
    assert(!location.err); /* `size` is enough */
    redirect_counters_add(REDIRECT_COUNT_301 + status, req);
    mk_response_redirect(req, status_codes[status], mk_buf_str(&location));
}

static const struct mk_pattern all_paths = {.kind = MK_PATTERN_PREFIX, .text = MK_STR_INIT("/")};

static int redirect_request(struct mk_request *req)
{
    const struct redirect_state *s = mk_request_host_state(req, &mk_plugin_redirect);
    struct mk_str path = mk_request_path(req), groups[MK_PATTERN_GROUPS];
    if (!s || !s->redirects || path.len == 0 || path.p[0] != '/')
        return MK_DECLINED;
    int match;
    struct mk_when_request request = mk_when_describe(req);
    const struct redirect_rule *r = redirect_find_rule(s->host, RULES_REDIRECT, path, &request, groups, &match);
    const struct redirect_host *whole = mk_host_conf(s->host, &redirect_sections[RULES_HOST]);
    if (match < 0) {
        if (mk_request_is_claimed(req))
            return MK_DECLINED;
        redirect_counters_add(REDIRECT_COUNT_PATTERN, req);
        mk_response_error(req, 500); /* the rule may be there to hide what the path has */
        return 0;
    }
    if ((r || whole->to.text.len) && mk_request_is_claimed(req))
        return MK_DECLINED;
    if (r)
        send_redirect(req, r->base.to.text, r->base.keep_path ? &r->base.match : NULL, groups, r->status);
    else if (whole->to.text.len)
        send_redirect(req, whole->to.text, &all_paths, NULL, 0);
    return r || whole->to.text.len ? 0 : MK_DECLINED;
}

static int rewrite_head(struct mk_request *req)
{
    struct redirect_state *s = mk_request_host_state(req, &mk_plugin_redirect);
    return s && s->rewrites ? rewrite_request(req, s->host, &s->logged_ms) : MK_DECLINED;
}

/* A path that GET without a query has rewritten or redirected is not the file of that name. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct redirect_state *s = mk_request_host_state(req, &mk_plugin_redirect);
    struct mk_when_request request = mk_when_describe(req);
    struct mk_str groups[MK_PATTERN_GROUPS];
    int match;
    if (!s)
        return 1;
    request.method = MK_STR("GET");
    request.query = MK_STR_NONE;
    redirect_find_rule(s->host, RULES_REWRITE, path, &request, groups, &match);
    if (match == 0)
        redirect_find_rule(s->host, RULES_REDIRECT, path, &request, groups, &match);
    return match < 0 ? match : match == 0;
}

/*
 * A host that is redirected as a whole shows nothing. Where only some paths are, what they name may still be sent as
 * the index of a folder, or by a name of TryFiles.
 */
static bool denies_path(const struct mk_host *host, struct mk_str path)
{
    const struct redirect_host *whole = mk_host_conf(host, &redirect_sections[RULES_HOST]);
    struct mk_str groups[MK_PATTERN_GROUPS];
    int match;
    const struct path_rule *r = redirect_find_rule(host, RULES_REDIRECT, path, NULL, groups, &match);
    if (!r)
        return match == 0 && whole->to.text.len;
    return match > 0 && !r->when.n && mk_pattern_covers(&r->match, &all_paths);
}

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path, .denies_path = denies_path};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_rules};

MK_PLUGIN(redirect) = {
    MK_PLUGIN_HEAD("redirect", "2.0.0", "rewrites requests and redirects clients"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = redirect_sections,
    .start = start_process,
    .host_start = start_host,
    .host_stop = stop_host,
    .on_head = rewrite_head,
    .on_request = redirect_request,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};
