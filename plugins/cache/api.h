// SPDX-License-Identifier: Apache-2.0
/*
 * The page of the cache and its API, below the path of `Admin`:
 *
 *     GET  /cache/            the page, and its files
 *     GET  /cache/stats       figures of the process; with Accept: text/event-stream one event each second
 *     GET  /cache/entries     ?prefix= &sort=hits|bytes|age|name &limit= &after=: the entries of the host, in pages
 *     POST /cache/reset       path=, prefix= or all=1; also /cache/reset/PATH
 *     POST /cache/add         path= (several), sitemap=, directory=, or a list of paths; also /cache/add/PATH
 */
#ifndef CACHE_API_H
#define CACHE_API_H

#include "worker.h"

/* Returns as on_content: 0, or MK_DECLINED if the path is not below `Admin`, or the client may not see it. */
int api_answer(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule);

/* Returns whether the path is one of the page or its API. */
bool api_has_path(struct mk_str path, const struct cache_rule *rule);

#endif
