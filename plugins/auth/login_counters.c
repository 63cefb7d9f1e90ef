// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of login_counters.h.
 */
#include "login_counters.h"

#include <assert.h>

static const struct mk_counter_info logins = {"auth", "logins", "logins of requests, by type and result",
                                              MK_COUNTER_SUM};

static const char *const types[LOGIN_TYPES] = {
    [LOGIN_PASSWORD] = "password", [LOGIN_TOKEN] = "token", [LOGIN_CERTIFICATE] = "certificate"};

static const char *const results[LOGIN_RESULTS] = {
    [LOGIN_ACCEPTED] = "accepted",   [LOGIN_MISSING] = "missing", [LOGIN_WRONG] = "wrong",
    [LOGIN_FORBIDDEN] = "forbidden", [LOGIN_BLOCKED] = "blocked", [LOGIN_BUSY] = "busy",
};

void login_counters_open(struct login_counters *ret)
{
    for (unsigned i = 0; i < LOGIN_TYPES; i++)
        for (unsigned j = 0; j < LOGIN_RESULTS; j++) {
            struct mk_counter_label labels[] = {{"type", mk_str_c(types[i])}, {"result", mk_str_c(results[j])}};
            ret->all[i][j] = mk_counter_open(&logins, labels, 2);
        }
}

void login_counters_add(const struct login_counters *c, enum login_type type, enum login_result result,
                        const struct mk_worker *worker)
{
    assert(type < LOGIN_TYPES && result < LOGIN_RESULTS);
    mk_counter_add(c->all[type][result], worker, 1);
}
