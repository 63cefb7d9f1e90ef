// SPDX-License-Identifier: Apache-2.0
#include "redirect.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>

enum { REDIRECTS_MAX = 16, PATH_BYTES = 4096 };

enum walk_end { WALK_ENDS, WALK_UNKNOWN, WALK_LOOPS };

/* A path on its way through the rules. */
struct walk {
    const struct mk_host *host;
    const struct rewrite_rule *start; /* whose conditions hold; or NULL */
    bool query_changed;
    char path[PATH_BYTES];
    size_t len;
};

static struct mk_str get_path(const struct walk *w)
{
    return mk_str(w->path, w->len);
}

/* Sets the decoded path to that of `raw`. Returns false if it is not known to be one of a request. */
static bool set_path(struct walk *w, struct mk_str raw)
{
    MK_BUF_ON_STACK(path, PATH_BYTES);
    mk_path_decode(&path, raw);
    if (path.err || !path.len || memmem(path.data, path.len, "/.", 2))
        return false;
    w->len = 0;
    for (size_t i = 0; i < path.len; i++)
        if (i == 0 || path.data[i] != '/' || path.data[i - 1] != '/')
            w->path[w->len++] = path.data[i];
    return true;
}

/* Sets the path to a prefix, and `rest` below it. */
static bool set_path_below(struct walk *w, struct mk_str prefix, const char *rest)
{
    bool slash = prefix.len && prefix.p[prefix.len - 1] == '/';
    size_t len = strlen(rest);
    if (prefix.len + 1 + len > sizeof(w->path))
        return false;
    memcpy(w->path, prefix.p, prefix.len);
    w->len = prefix.len;
    if (!slash && len)
        w->path[w->len++] = '/';
    memcpy(w->path + w->len, rest, len);
    w->len += len;
    return true;
}

/* ── rewrites ── */

static const struct mk_conf_section *const rewrites = &redirect_sections[RULES_REWRITE];

/* Tells whether it is known that the conditions of a rule hold. */
static bool holds_surely(const struct walk *w, const struct rewrite_rule *rule)
{
    return rule->base.when.n == 0 ||
           (rule == w->start && (!w->query_changed || !mk_when_needs_query(&rule->base.when)));
}

/* Finds the rule that rewrites the path; NULL: none. Returns false if that is not known. */
static bool find_rewrite(const struct walk *w, struct mk_str *groups, const struct rewrite_rule **ret_rule)
{
    int match;
    const struct rewrite_rule *r = redirect_find_rule(w->host, RULES_REWRITE, get_path(w), NULL, groups, &match);
    *ret_rule = r;
    return !r || (match > 0 && holds_surely(w, r));
}

/* Applies a rule to the path. Returns false if the result is not known. */
static bool apply_rewrite(struct walk *w, const struct rewrite_rule *rule, const struct mk_str *groups)
{
    bool has_query;
    if (!rule->base.to.text.len)
        return false; /* it was reported as wrong */
    MK_BUF_ON_STACK(path, PATH_BYTES);
    MK_BUF_ON_STACK(query, PATH_BYTES);
    rewrite_build(rule, get_path(w), MK_STR_NONE, &(struct target_captures){groups, false}, &path, &query, &has_query);
    w->query_changed |= has_query || !rule->keep_query;
    return !path.err && set_path(w, mk_buf_str(&path));
}

/* Rewrites the path until no rule matches. */
static enum walk_end follow_rewrites(struct walk *w)
{
    struct mk_str groups[MK_PATTERN_GROUPS];
    const struct rewrite_rule *rule;
    for (int i = 0; i <= MK_REWRITES_MAX; i++) {
        if (!find_rewrite(w, groups, &rule))
            return WALK_UNKNOWN;
        if (!rule)
            return WALK_ENDS;
        if (!apply_rewrite(w, rule, groups))
            return WALK_UNKNOWN;
        if (rule->last)
            return WALK_ENDS;
    }
    return WALK_LOOPS;
}

/* Returns true if a path that `w->start` is the first to match, or the one that it makes, never leaves the rules. */
static bool is_rewrite_loop(struct walk *w)
{
    struct mk_str groups[MK_PATTERN_GROUPS];
    const struct rewrite_rule *rule;
    return find_rewrite(w, groups, &rule) && rule == w->start && follow_rewrites(w) == WALK_LOOPS;
}

/* Follows the target of a rule whose paths are not known. */
static bool is_target_loop(struct walk *w, const struct rewrite_rule *r)
{
    struct mk_str groups[MK_PATTERN_GROUPS] = {{0}};
    if (target_has_captures(r->base.to.text) || r->last || !apply_rewrite(w, r, groups))
        return false;
    return follow_rewrites(w) == WALK_LOOPS;
}

static bool is_endless_rewrite(const struct mk_host *host, const struct rewrite_rule *r)
{
    struct walk w = {.host = host, .start = r};
    if (!r->base.match.text.p || !r->base.to.text.len)
        return false; /* it was reported as wrong */
    if (r->base.match.kind != MK_PATTERN_EXACT && r->base.match.kind != MK_PATTERN_PREFIX)
        return is_target_loop(&w, r);
    if (set_path_below(&w, r->base.match.text, "") && is_rewrite_loop(&w))
        return true;
    w.query_changed = false;
    return r->base.match.kind == MK_PATTERN_PREFIX && set_path_below(&w, r->base.match.text, "x") &&
           is_rewrite_loop(&w);
}

int loops_check_rewrites(struct mk_host *host)
{
    int err = 0;
    for (const struct rewrite_rule *r = mk_host_conf(host, rewrites); r; r = mk_host_conf_next(host, rewrites, r)) {
        if (!is_endless_rewrite(host, r))
            continue;
        mk_host_error(host, r, offsetof(struct path_rule, to), 0,
                      "this rewrite never ends: rules match its target again and again (Last On stops after a rule)");
        err = -EINVAL;
    }
    return err;
}

/* ── redirects ── */

static const struct target_rest no_rest;
static const struct mk_conf_section *const redirects = &redirect_sections[RULES_REDIRECT];

/* Finds the rule that redirects the path; NULL: none. Returns false if that is not known. */
static bool find_redirect(const struct walk *w, const struct redirect_rule **ret_rule)
{
    struct mk_str groups[MK_PATTERN_GROUPS];
    int match;
    const struct redirect_rule *r = redirect_find_rule(w->host, RULES_REDIRECT, get_path(w), NULL, groups, &match);
    *ret_rule = r;
    return !r || (match > 0 && r->base.when.n == 0);
}

static const struct {
    struct mk_str start;
    bool (*serves)(const struct mk_host *host, struct mk_str authority);
} schemes[] = {{MK_STR("http://"), mk_host_serves}, {MK_STR("https://"), mk_host_serves_https}};

/* Returns whether a URI, whose host ends at `end`, is one of this host: a request for it has the same rules. */
static bool is_own_uri(const struct mk_host *host, struct mk_str to, size_t end)
{
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++) {
        size_t n = schemes[i].start.len;
        if (end > n && mk_str_istarts(to, schemes[i].start))
            return schemes[i].serves(host, mk_str(to.p + n, end - n));
    }
    return false;
}

/* Returns the path of a target on this host, also of a URI; `.p` NULL if the target is elsewhere. */
static struct mk_str find_local_path(const struct mk_host *host, struct mk_str to)
{
    if (to.len && target_is_path(to))
        return to;
    size_t end = to.len ? target_find_host_end(to) : 0;
    if (!is_own_uri(host, to, end))
        return MK_STR_NONE;
    if (end == to.len)
        return MK_STR("/");
    return to.p[end] == '/' ? mk_str_after(to, end) : MK_STR_NONE;
}

/* Sets the path to that of a target, with `rest` after it unless the target has a query. */
static bool set_target_path(struct walk *w, struct mk_str to, struct target_rest rest)
{
    assert(to.len > 0 && to.p[0] == '/');
    struct mk_str to_path = mk_str_until(to, "?#");
    MK_BUF_ON_STACK(path, PATH_BYTES);
    mk_path_decode(&path, to_path);
    if (!mk_str_starts(mk_str_after(to, to_path.len), MK_STR("?"))) {
        target_add_slash(&path, &rest);
        mk_buf_adds(&path, rest.text);
    }
    if (path.err)
        return false;
    memcpy(w->path, path.data, path.len);
    w->len = path.len;
    return true;
}

/* Sets the path to the one to which it is redirected. Returns false if there is none, or it has captures. */
static bool follow_redirect(struct walk *w)
{
    const struct redirect_host *whole = mk_host_conf(w->host, &redirect_sections[RULES_HOST]);
    const struct redirect_rule *r;
    char before[PATH_BYTES];
    if (follow_rewrites(w) != WALK_ENDS || !find_redirect(w, &r))
        return false;
    struct mk_str to = find_local_path(w->host, r ? r->base.to.text : whole->to.text);
    if (!to.p || (r && target_has_captures(to)))
        return false;
    memcpy(before, w->path, w->len);
    struct target_rest rest = {mk_str(before + 1, w->len - 1), w->len > 1};
    if (r)
        rest = r->base.keep_path ? target_find_rest(&r->base.match, mk_str(before, w->len)) : no_rest;
    return set_target_path(w, to, rest);
}

/* Returns true if requests for this path are redirected without end. */
static bool is_redirect_loop(struct walk *w)
{
    int n = 0;
    while (n < REDIRECTS_MAX && follow_redirect(w))
        n++;
    return n == REDIRECTS_MAX;
}

/* Returns true if there is a loop from the rule's target, or from a path below its prefix. */
static bool is_endless_redirect(const struct mk_host *host, const struct redirect_rule *r)
{
    struct walk w = {.host = host};
    const struct redirect_rule *first;
    struct mk_str to = find_local_path(host, r->base.to.text);
    if (!to.p || target_has_captures(to))
        return false;
    if (set_target_path(&w, to, no_rest) && is_redirect_loop(&w))
        return true;
    return r->base.match.kind == MK_PATTERN_PREFIX && set_path_below(&w, r->base.match.text, "x") &&
           find_redirect(&w, &first) && first == r && is_redirect_loop(&w);
}

static int report_redirect(struct mk_host *host, const void *section_struct, size_t offset, struct mk_str to)
{
    bool https = mk_str_istarts(to, MK_STR("https:"));
    mk_host_error(host, section_struct, offset, 0, "this redirect never ends: its target is redirected again%s",
                  https ? "; to redirect unencrypted requests only, write \"Redirect https\" in [TLS]" : "");
    return -EINVAL;
}

int loops_check_redirects(struct mk_host *host)
{
    const struct redirect_host *whole = mk_host_conf(host, &redirect_sections[RULES_HOST]);
    struct walk w = {.host = host, .path = "/", .len = 1};
    int err = 0;
    for (const struct redirect_rule *r = mk_host_conf(host, redirects); r; r = mk_host_conf_next(host, redirects, r))
        if (is_endless_redirect(host, r))
            err = report_redirect(host, r, offsetof(struct path_rule, to), r->base.to.text);
    if (whole->to.text.len && is_redirect_loop(&w))
        err = report_redirect(host, whole, offsetof(struct redirect_host, to), whole->to.text);
    return err;
}
