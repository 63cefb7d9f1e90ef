// SPDX-License-Identifier: Apache-2.0
/*
 * Internal rewrites: requests get another path and query by the rules of their host.
 */
#ifndef REDIRECT_REWRITE_H
#define REDIRECT_REWRITE_H

#include <monkey/plugin.h>

#include "rules.h"

/*
 * Adds the path and, to `query`, the query (without a `?`) that a rule makes of a request that it matches. Both are
 * percent-encoded; `query` stays empty with `*ret_has_query` false. Pure. Errors are those of the buffers.
 */
void rewrite_build(const struct rewrite_rule *rule, struct mk_str request_path, struct mk_str request_query,
                   const struct mk_str *groups, struct mk_buf *path, struct mk_buf *query, bool *ret_has_query);

/* Returns `request` as conditions look at it. It is valid as long as the request's head. */
struct mk_when_request rewrite_describe(struct mk_request *req);

/*
 * Rewrites a request by the rules of `host`, until none matches. `logged_ms` belongs to the host; it limits the lines
 * of the log.
 * Returns MK_DECLINED, or 0 (it has failed and was answered).
 */
int rewrite_request(struct mk_request *req, const struct mk_host *host, _Atomic uint64_t *logged_ms);

#endif
