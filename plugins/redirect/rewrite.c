// SPDX-License-Identifier: Apache-2.0
#include "redirect.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

static const struct mk_counter_info redirects = {"redirect", "redirects", "redirects, by status", MK_COUNTER_SUM};
static const struct mk_counter_info rewrites = {"redirect", "rewrites", "requests that got another path",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info failed_requests = {"redirect", "failures",
                                                       "requests that could not be redirected or rewritten, by reason",
                                                       MK_COUNTER_SUM};

static const struct mk_counter_row rows[REDIRECT_COUNTS] = {
    [REDIRECT_COUNT_301] = {&redirects, {"status", "301"}},
    [REDIRECT_COUNT_302] = {&redirects, {"status", "302"}},
    [REDIRECT_COUNT_303] = {&redirects, {"status", "303"}},
    [REDIRECT_COUNT_307] = {&redirects, {"status", "307"}},
    [REDIRECT_COUNT_308] = {&redirects, {"status", "308"}},
    [REDIRECT_COUNT_REWRITES] = {&rewrites, {0}},
    [REDIRECT_COUNT_PATTERN] = {&failed_requests, {"reason", "pattern"}},
    [REDIRECT_COUNT_LOOP] = {&failed_requests, {"reason", "loop"}},
    [REDIRECT_COUNT_TOO_LONG] = {&failed_requests, {"reason", "too_long"}},
    [REDIRECT_COUNT_INVALID_PATH] = {&failed_requests, {"reason", "invalid_path"}},
    [REDIRECT_COUNT_NO_MEMORY] = {&failed_requests, {"reason", "no_memory"}},
};

static const struct mk_counter *counters[REDIRECT_COUNTS];

void redirect_counters_open(void)
{
    mk_counters_open(rows, REDIRECT_COUNTS, counters);
}

void redirect_counters_add(enum redirect_count count, const struct mk_request *req)
{
    assert(count < REDIRECT_COUNTS && counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), 1);
}

enum { LOG_PAUSE_MS = 10 * 1000, LOG_BYTES = 512 };

/* ── building a path ── */

void rewrite_build(const struct rewrite_rule *rule, struct mk_str request_path, struct mk_str request_query,
                   const struct target_captures *captures, struct mk_buf *path, struct mk_buf *query,
                   bool *ret_has_query)
{
    struct mk_str to = rule->base.to.text;
    const char *mark = memchr(to.p, '?', to.len);
    size_t path_len = mark ? (size_t)(mark - to.p) : to.len;
    bool keep = rule->keep_query && request_query.p;
    target_add(path, mk_str(to.p, path_len), captures);
    if (rule->base.keep_path) {
        struct target_rest rest = target_find_rest(&rule->base.match, request_path);
        target_add_slash(path, &rest);
        mk_path_encode_kept(path, rest.text, captures->has_encoded_slash);
    }
    if (mark)
        target_add_text(query, mk_str(mark + 1, to.len - path_len - 1), captures, true);
    if (keep && mark && request_query.len)
        mk_buf_addc(query, '&');
    if (keep)
        mk_buf_adds(query, request_query);
    *ret_has_query = mark || keep;
}

/* ── requests ── */

/* The rules that a request has met. */
struct rewrites {
    const struct rewrite_rule *rules[MK_REWRITES_MAX + 1];
    unsigned n;
};

/* Rewrites the request once. Returns 0 or -errno, as mk_request_rewrite(). */
static int apply_rule(struct mk_request *req, const struct rewrite_rule *rule, const struct mk_str *groups)
{
    const struct target_captures captures = {groups, mk_request_has_encoded_slash(req)};
    bool has_query;
    if (target_count_captured_bytes(rule->base.to.text, groups) > TARGET_CAPTURED_BYTES_MAX)
        return -ENAMETOOLONG;
    MK_UNINITIALIZED MK_BUF_ON_STACK(path, MK_REWRITE_BYTES_MAX);
    MK_UNINITIALIZED MK_BUF_ON_STACK(query, MK_REWRITE_BYTES_MAX);
    rewrite_build(rule, mk_request_path(req), mk_request_query(req), &captures, &path, &query, &has_query);
    if (path.err || query.err)
        return -ENAMETOOLONG;
    return mk_request_rewrite(req, mk_buf_str(&path), has_query ? mk_buf_str(&query) : MK_STR_NONE);
}

static bool has_rule(const struct rewrites *used, unsigned n, const struct rewrite_rule *rule)
{
    for (unsigned i = 0; i < n; i++)
        if (used->rules[i] == rule)
            return true;
    return false;
}

/* Logs the rules of a request that was rewritten too often, once in ten seconds. */
static void log_loop(struct mk_request *req, const struct rewrites *used, _Atomic uint64_t *logged_ms)
{
    uint64_t now = mk_loop_now_ms(mk_request_loop(req)) + 1, before = atomic_load(logged_ms);
    if ((before && now - before < LOG_PAUSE_MS) || !atomic_compare_exchange_strong(logged_ms, &before, now))
        return;
    MK_BUF_ON_STACK(places, LOG_BYTES);
    for (unsigned i = 0; i < used->n; i++)
        if (!has_rule(used, i, used->rules[i]))
            mk_buf_addf(&places, "%s%s", places.len ? ", " : "", used->rules[i]->base.to.place.p);
    struct mk_str path = mk_request_original_path(req);
    mk_request_log(req, MK_LOG_ERROR, "redirect: %.*s was rewritten more than %d times, by the rules of %s",
                   MK_STR_ARG(path), MK_REWRITES_MAX, places.err ? "the host" : mk_buf_cstr(&places));
}

static const struct failure {
    int err, status;
    enum redirect_count count;
} failures[] = {
    {-EINVAL, 404, REDIRECT_COUNT_INVALID_PATH},
    {-ENOENT, 404, REDIRECT_COUNT_INVALID_PATH},
    {-ENAMETOOLONG, 414, REDIRECT_COUNT_TOO_LONG},
    {-ENOMEM, 503, REDIRECT_COUNT_NO_MEMORY},
    {-ELOOP, 500, REDIRECT_COUNT_LOOP},
    {-EIO, 500, REDIRECT_COUNT_PATTERN},
};

static void send_failure(struct mk_request *req, int err)
{
    const struct failure *f = failures;
    while (f->err != err && f->err != -EIO) /* the last one */
        f++;
    redirect_counters_add(f->count, req);
    mk_response_error(req, f->status);
}

/* Rewrites once. Returns MK_AGAIN (look for the next rule), MK_DECLINED (there is none) or -errno. */
static int rewrite_once(struct mk_request *req, const struct mk_host *host, struct rewrites *used)
{
    struct mk_when_request request = mk_when_describe(req);
    struct mk_str groups[MK_PATTERN_GROUPS];
    int r;
    const struct rewrite_rule *rule =
        redirect_find_rule(host, RULES_REWRITE, mk_request_path(req), &request, groups, &r);
    if (r <= 0)
        return r < 0 ? -EIO : MK_DECLINED; /* 500: the rule may be there to hide what the path has */
    assert(used->n <= MK_REWRITES_MAX);
    used->rules[used->n++] = rule;
    r = apply_rule(req, rule, groups);
    if (r < 0)
        return r;
    return rule->last ? MK_DECLINED : MK_AGAIN;
}

int rewrite_request(struct mk_request *req, const struct mk_host *host, _Atomic uint64_t *logged_ms)
{
    struct mk_str path = mk_request_path(req);
    struct rewrites used = {.n = 0};
    int r = path.len && path.p[0] == '/' ? MK_AGAIN : MK_DECLINED;
    while (r == MK_AGAIN)
        r = rewrite_once(req, host, &used);
    if (r == -ELOOP)
        log_loop(req, &used, logged_ms);
    if (r >= 0 && used.n)
        redirect_counters_add(REDIRECT_COUNT_REWRITES, req);
    if (r < 0)
        send_failure(req, r);
    return r < 0 ? 0 : MK_DECLINED;
}
