// SPDX-License-Identifier: Apache-2.0
/*
 * Follows a request through [REWRITE] and [REDIRECT], as rewrite.c and redirect.c do, without sending anything.
 */
#include "redirect.h"

#include <errno.h>

/* As redirect_find_rule(). A rule of which it is not known whether it matches is the end of the explanation. */
static const void *find_rule(const struct mk_host *host, struct mk_explain *e, unsigned section, struct mk_str *groups,
                             int *ret_match)
{
    struct mk_when_request request = mk_when_describe_explained(e);
    const void *rule = redirect_find_rule(host, section, e->path, &request, groups, ret_match);
    if (*ret_match < 0)
        mk_explain_add(e, host, rule, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of the rule takes too much time for the path");
    return rule;
}

/* ── rewrites ── */

static int apply_rewrite(const struct mk_host *host, struct mk_explain *e, const struct rewrite_rule *r,
                         const struct mk_str *groups)
{
    MK_UNINITIALIZED MK_BUF_ON_STACK(path, MK_REWRITE_BYTES_MAX);
    MK_UNINITIALIZED MK_BUF_ON_STACK(query, MK_REWRITE_BYTES_MAX);
    bool has_query;
    if (target_count_captured_bytes(r->base.to.text, groups) > TARGET_CAPTURED_BYTES_MAX)
        return -EINVAL;
    rewrite_build(r, e->path, e->query, &(struct target_captures){groups, false}, &path, &query, &has_query);
    if (path.err || query.err)
        return -EINVAL;
    struct mk_str new_path = mk_buf_str(&path), new_query = has_query ? mk_str(query_storage, query.len) : MK_STR_NONE;
    mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[REWRITE] makes the path %.*s%s%.*s", MK_STR_ARG(new_path),
                   has_query ? "?" : "", MK_STR_ARG(new_query));
    return mk_explain_rewrite(e, new_path, new_query);
}

/* Applies the first rule that matches. Returns whether rules are to be looked for again. */
static bool rewrite_once(const struct mk_host *host, struct mk_explain *e)
{
    struct mk_str groups[MK_PATTERN_GROUPS];
    int match;
    const struct rewrite_rule *r = find_rule(host, e, RULES_REWRITE, groups, &match);
    if (match <= 0)
        return false;
    int err = apply_rewrite(host, e, r, groups);
    if (err < 0)
        mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS, "%s",
                       err == -ELOOP ? "500, because the path was rewritten too often"
                                     : "404 or 414, because the new path is malformed or too long");
    return err == 0 && !r->last;
}

/* ── redirects ── */

static void explain_redirects(const struct mk_host *host, struct mk_explain *e)
{
    const struct redirect_host *whole = mk_host_conf(host, &redirect_sections[RULES_HOST]);
    struct mk_str groups[MK_PATTERN_GROUPS];
    int match;
    const struct redirect_rule *r = find_rule(host, e, RULES_REDIRECT, groups, &match);
    if (match > 0)
        mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS, "[REDIRECT] with %d to %.*s%s", redirect_status(r),
                       MK_STR_ARG(r->base.to.text),
                       r->base.keep_path ? ", with the rest of the path and the query" : "");
    else if (!match && whole->to.text.len)
        mk_explain_add(e, host, whole, MK_EXPLAIN_ANSWERS, "Redirect of the host: 301 to %.*s with path and query",
                       MK_STR_ARG(whole->to.text));
}

void explain_rules(const struct mk_host *host, struct mk_explain *e)
{
    if (e->phase == MK_EXPLAIN_REQUEST && !e->claimed)
        explain_redirects(host, e);
    while (e->phase == MK_EXPLAIN_HEAD && rewrite_once(host, e))
        ;
}
