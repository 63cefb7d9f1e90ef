// SPDX-License-Identifier: Apache-2.0
#ifndef REDIRECT_REDIRECT_H
#define REDIRECT_REDIRECT_H

#include "target.h"

#include <monkey/conf.h>
#include <monkey/counters.h>
#include <monkey/inspect.h>
#include <monkey/kit/when.h>
#include <monkey/plugin.h>

/*
 * The sections of a host as structs. They live as long as the generation.
 */
/* What rules of both kinds begin with. */
struct path_rule {
    struct mk_pattern match;
    struct target to;
    struct mk_when when;
    bool keep_path;
};

struct redirect_rule {
    struct path_rule base;
    int status; /* an index of status_codes[] */
};

struct rewrite_rule {
    struct path_rule base;
    bool keep_query, last;
};

struct redirect_host {
    struct target to;
};

enum { RULES_REDIRECT, RULES_REWRITE, RULES_HOST };

/* In the order of the enum. */
extern const struct mk_conf_section redirect_sections[];

/* Returns the status that the rule sends. */
int redirect_status(const struct redirect_rule *rule);

/*
 * Returns the first rule of RULES_REDIRECT or RULES_REWRITE that matches a path, or of which that is not known; NULL if
 * no rule matches. `request`: what conditions look at; NULL: they are not looked at. `*ret_match`: 1 (it matches, and
 * `groups` has its captures), 0 or -errno.
 */
const void *redirect_find_rule(const struct mk_host *host, unsigned section, struct mk_str path,
                               const struct mk_when_request *request, struct mk_str *groups, int *ret_match);

/*
 * Counts redirects by status, requests that were rewritten, and requests for which that was not possible. The counters
 * are those of the process.
 */
enum redirect_count {
    REDIRECT_COUNT_301, /* redirects: in the order of Status in [REDIRECT] */
    REDIRECT_COUNT_302,
    REDIRECT_COUNT_303,
    REDIRECT_COUNT_307,
    REDIRECT_COUNT_308,
    REDIRECT_COUNT_REWRITES,
    REDIRECT_COUNT_PATTERN, /* failures: a pattern takes too much time for the path */
    REDIRECT_COUNT_LOOP,
    REDIRECT_COUNT_TOO_LONG,
    REDIRECT_COUNT_INVALID_PATH, /* captures have made a path that no file can have */
    REDIRECT_COUNT_NO_MEMORY,
    REDIRECT_COUNTS,
};

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void redirect_counters_open(void);
/* Adds 1 to a counter. In the thread of the request's worker. */
void redirect_counters_add(enum redirect_count count, const struct mk_request *req);

/*
 * Internal rewrites: requests get another path and query by the rules of their host.
 */
/*
 * Adds the path and, to `query`, the query (without a `?`) that a rule makes of a request that it matches. Both are
 * percent-encoded; `query` stays empty with `*ret_has_query` false. Pure. Errors are those of the buffers.
 */
void rewrite_build(const struct rewrite_rule *rule, struct mk_str request_path, struct mk_str request_query,
                   const struct target_captures *captures, struct mk_buf *path, struct mk_buf *query,
                   bool *ret_has_query);

/*
 * Rewrites a request by the rules of `host`, until none matches. `logged_ms` belongs to the host; it limits the lines
 * of the log.
 * Returns MK_DECLINED, or 0 (it has failed and was answered).
 */
int rewrite_request(struct mk_request *req, const struct mk_host *host, _Atomic uint64_t *logged_ms);

/*
 * Tells an operator which rules a request meets.
 */
/* The hook of struct mk_plugin. */
void explain_rules(const struct mk_host *host, struct mk_explain *e);

/*
 * Finds rules without end while the configuration is checked: paths are followed through the rules as requests would
 * be. What cannot be decided (conditions, expressions whose paths are not known) is left to the limit for requests.
 */
/* Reports the rules of a host that lead to themselves. Each returns 0 or -EINVAL. During host_start. */
int loops_check_rewrites(struct mk_host *host);
int loops_check_redirects(struct mk_host *host);

#endif
