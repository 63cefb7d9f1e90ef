// SPDX-License-Identifier: Apache-2.0
/*
 * Counts what has become of logins, by their type and result. The counters are those of the process.
 */
#ifndef AUTH_LOGIN_COUNTERS_H
#define AUTH_LOGIN_COUNTERS_H

#include <monkey/counters.h>

enum login_type { LOGIN_PASSWORD, LOGIN_TOKEN, LOGIN_CERTIFICATE, LOGIN_FORWARD, LOGIN_TYPES };

enum login_result {
    LOGIN_ACCEPTED,
    LOGIN_MISSING,   /* the request has no login, or it cannot be read: 401, a redirect, or 403 without a certificate */
    LOGIN_WRONG,     /* the name, password or token; another 4xx of the server that was asked */
    LOGIN_FORBIDDEN, /* it is right, but not that of a user, or with a scope, that the rule wants: 403 */
    LOGIN_BLOCKED,   /* after too many failures of the client: 429 */
    LOGIN_BUSY,      /* not checked: no memory, too many wait, or no answer: 503 */
    LOGIN_RESULTS,
};

/* Opens the counters. In the start of the plugin. */
void login_counters_open(void);
/* Counts the result of a login. In the thread of the worker. */
void login_counters_add(enum login_type type, enum login_result result, const struct mk_worker *worker);

#endif
