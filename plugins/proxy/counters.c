// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of the proxy (counters.h).
 */
#include "counters.h"

#include <monkey/counters.h>
#include <monkey/plugin.h>

static const struct mk_counter_info infos[COUNTS] = {
    [COUNT_REQUESTS] = {"proxy", "requests", "requests that were passed to a backend", MK_COUNTER_SUM},
    [COUNT_CONNECTIONS] = {"proxy", "connections", "connections that were opened to backends", MK_COUNTER_SUM},
    [COUNT_RETRIES] = {"proxy", "retries", "requests that a kept connection has lost, and that were sent again",
                       MK_COUNTER_SUM},
    [COUNT_FAILURES] = {"proxy", "failures", "requests that a backend did not answer, or not completely",
                        MK_COUNTER_SUM},
    [COUNT_TIMEOUTS] = {"proxy", "timeouts", "requests for which a backend took too long", MK_COUNTER_SUM},
};

static const struct mk_counter_row rows[COUNTS] = {
    [COUNT_REQUESTS] = {&infos[COUNT_REQUESTS], {0}}, [COUNT_CONNECTIONS] = {&infos[COUNT_CONNECTIONS], {0}},
    [COUNT_RETRIES] = {&infos[COUNT_RETRIES], {0}},   [COUNT_FAILURES] = {&infos[COUNT_FAILURES], {0}},
    [COUNT_TIMEOUTS] = {&infos[COUNT_TIMEOUTS], {0}},
};

static const struct mk_counter *counters[COUNTS];

void counters_open(void)
{
    mk_counters_open(rows, COUNTS, counters);
}

void counters_add(const struct mk_request *req, enum count count)
{
    mk_counter_add(counters[count], mk_request_worker(req), 1);
}
