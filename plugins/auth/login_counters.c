// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of login_counters.h.
 */
#include "login_counters.h"

#include <assert.h>

static const struct mk_counter_info logins = {"auth", "logins", "logins of requests, by type and result",
                                              MK_COUNTER_SUM};

#define PLACE(type, result) ((type)*LOGIN_RESULTS + (result))
#define ROW(type, type_text, result, result_text) \
    [PLACE(type, result)] = {&logins, {"type", type_text, "result", result_text}}
#define ROWS(type, text) \
    ROW(type, text, LOGIN_ACCEPTED, "accepted"), ROW(type, text, LOGIN_MISSING, "missing"), \
        ROW(type, text, LOGIN_WRONG, "wrong"), ROW(type, text, LOGIN_FORBIDDEN, "forbidden"), \
        ROW(type, text, LOGIN_BLOCKED, "blocked"), ROW(type, text, LOGIN_BUSY, "busy")

enum { LOGIN_COUNTS = LOGIN_TYPES * LOGIN_RESULTS };

static const struct mk_counter_row rows[LOGIN_COUNTS] = {
    ROWS(LOGIN_PASSWORD, "password"),
    ROWS(LOGIN_TOKEN, "token"),
    ROWS(LOGIN_CERTIFICATE, "certificate"),
    ROWS(LOGIN_FORWARD, "forward"),
};

static const struct mk_counter *counters[LOGIN_COUNTS];

void login_counters_open(void)
{
    mk_counters_open(rows, LOGIN_COUNTS, counters);
}

void login_counters_add(enum login_type type, enum login_result result, const struct mk_worker *worker)
{
    assert(type < LOGIN_TYPES && result < LOGIN_RESULTS);
    mk_counter_add(counters[PLACE(type, result)], worker, 1);
}
