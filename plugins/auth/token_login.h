// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the login of a request by a bearer token. It takes 10 to 160 us for a token that the worker has not seen,
 * which is about a TLS handshake, and is done in the worker's loop.
 *
 *     on_request ─► no token: 401 at once
 *                ─► failed too often: 429, nothing is verified
 *                ─► verified, or the cache has it ─► done
 *                                                ─► wrong: counted, 401 after FailureDelay
 *                                                ─► expired, or without a scope: 401 or 403 at once
 */
#ifndef AUTH_TOKEN_LOGIN_H
#define AUTH_TOKEN_LOGIN_H

#include "rules.h"

/*
 * Checks the token.
 * Returns as on_request: MK_DECLINED (it is right; its claims are those of the request), 0 (a response was sent, or the
 * request waits for FailureDelay) or -errno.
 */
int token_login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Returns true if the token of a request is right for another rule, too; nothing is counted. A token that is refused is
 * verified once for each rule and its keys, however often this is asked in one exchange.
 */
bool token_login_holds(struct mk_request *req, const struct auth_rule *rule);

#endif
