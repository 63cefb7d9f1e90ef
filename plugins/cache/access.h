// SPDX-License-Identifier: Apache-2.0
/*
 * Which requests may use the page of the cache and its API.
 */
#ifndef CACHE_ACCESS_H
#define CACHE_ACCESS_H

#include "worker.h"

/*
 * Returns whether the client may see the page: it has logged in, a rule has allowed it, or it is on this machine. The
 * last two must name the host, since a page of another site may let its name resolve to this server (DNS rebinding).
 * Others are logged, once in ten seconds.
 */
bool access_allows(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule);
/*
 * Returns whether a request that changes something comes from the page itself or from a program: a page of another site
 * can make a browser send it, with its login, but the browser adds Sec-Fetch-Site or Origin.
 */
bool access_is_same_site(struct mk_request *req);

/* Warns if the host can be reached from other machines, but no rule and no login lets a client there see the page. */
void access_check_host(struct mk_host *host, const struct cache_rule *rule);

#endif
