// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the login of a request by name and password. What takes a password hash is done in the threads of the pool
 * (login_job.h), while the request waits:
 *
 *     on_request ─► failed too often: 429
 *                ─► cache has it: done
 *                ─► job_start() ─► hash in another thread ─► done, or 401 after FailureDelay
 *                              └─► queue full: 503
 *
 * If the client leaves, the hash is not computed, or its result is dropped.
 */
#ifndef AUTH_LOGIN_H
#define AUTH_LOGIN_H

#include "rules.h"

/*
 * Checks the login.
 * Returns as on_request: MK_DECLINED (it is right), 0 (a response was sent, or the request waits) or -errno.
 */
int login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Returns true if the credentials of a request are right for another rule, too, and the cache has them: nothing is
 * computed or counted. With CacheTime 0 that is never known.
 */
bool login_holds(struct mk_request *req, const struct auth_rule *rule);

#endif
