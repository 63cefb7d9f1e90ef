// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of scripts (counters.h).
 */
#include "counters.h"

#include <monkey/counters.h>

static const struct mk_counter_info infos[COUNTS] = {
    [COUNT_REQUESTS] = {"cgi", "requests", "requests for scripts", MK_COUNTER_SUM},
    [COUNT_STARTS] = {"cgi", "starts", "scripts that were started", MK_COUNTER_SUM},
    [COUNT_RUNNING] = {"cgi", "running", "scripts that run now", MK_COUNTER_LEVEL},
    [COUNT_REFUSED] = {"cgi", "refused", "requests that were refused because too many scripts ran", MK_COUNTER_SUM},
    [COUNT_FAILURES] = {"cgi", "failures", "scripts that could not be started, or gave no proper response",
                        MK_COUNTER_SUM},
    [COUNT_TIMEOUTS] = {"cgi", "timeouts", "scripts that were ended because they took too long", MK_COUNTER_SUM},
};

static const struct mk_counter_row rows[COUNTS] = {
    [COUNT_REQUESTS] = {&infos[COUNT_REQUESTS], {0}}, [COUNT_STARTS] = {&infos[COUNT_STARTS], {0}},
    [COUNT_RUNNING] = {&infos[COUNT_RUNNING], {0}},   [COUNT_REFUSED] = {&infos[COUNT_REFUSED], {0}},
    [COUNT_FAILURES] = {&infos[COUNT_FAILURES], {0}}, [COUNT_TIMEOUTS] = {&infos[COUNT_TIMEOUTS], {0}},
};

static const struct mk_counter *counters[COUNTS];

void counters_open(void)
{
    mk_counters_open(rows, COUNTS, counters);
}

void counters_add(const struct mk_worker *worker, enum count count, int64_t n)
{
    mk_counter_add(counters[count], worker, n);
}
