// SPDX-License-Identifier: Apache-2.0
/*
 * The hook on_fallback of the plugins.
 */
#ifndef MK_SERVER_FALLBACK_H
#define MK_SERVER_FALLBACK_H

struct mk_generation;
struct mk_request;

/*
 * Calls on_fallback of the plugins until one takes the request, which req->hook names then. Returns what that has
 * returned, or MK_DECLINED.
 */
int mk__fallback_call(struct mk_request *req, const struct mk_generation *g);

#endif
