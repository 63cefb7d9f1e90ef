// SPDX-License-Identifier: Apache-2.0
/*
 * Logins of `Type Forward`: a server is asked about each request, which waits for the answer.
 *
 *     on_request ─► the cache has an answer: done
 *                ─► ForwardRequests are under way: 503
 *                ─► question ─► 2xx: CopyHeaders are set, done
 *                           ─► a redirect or 4xx: the client gets it
 *                           ─► no answer, 5xx: another server of the group, else 503
 *
 * No failure lets a request pass. If the client leaves, the question is cancelled.
 */
#ifndef AUTH_FORWARD_LOGIN_H
#define AUTH_FORWARD_LOGIN_H

#include "rules.h"

enum { FORWARD_CACHE_SETS = 256, FORWARD_CACHE_BYTES_MAX = 4096 }; /* of the cache of answers; of one answer */

/*
 * Asks about the request.
 * Returns as on_request: MK_DECLINED (it passes), 0 (a response was sent, or the request waits) or -errno.
 */
int forward_login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Removes the headers of CopyHeaders that the client has sent, from a request that passes without a question.
 * Returns MK_DECLINED, 0 (400 was sent) or -errno.
 */
int forward_login_strip(struct mk_request *req, const struct auth_rule *rule);

/* Returns true if the cache has an answer that lets a GET of another path pass. Nothing is asked or counted. */
bool forward_login_holds(struct mk_request *req, const struct auth_rule *rule, struct mk_str path);

#endif
