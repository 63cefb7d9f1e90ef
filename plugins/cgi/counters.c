// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of scripts (counters.h).
 */
#include "counters.h"

#include <monkey/counters.h>

#define INFO(name, help, kind) (&(const struct mk_counter_info){"cgi", name, help, kind})

static const struct mk_counter_row rows[COUNTS] = {
    [COUNT_REQUESTS] = {.info = INFO("requests", "requests for scripts", MK_COUNTER_SUM)},
    [COUNT_STARTS] = {.info = INFO("starts", "scripts that were started", MK_COUNTER_SUM)},
    [COUNT_RUNNING] = {.info = INFO("running", "scripts that run now", MK_COUNTER_LEVEL)},
    [COUNT_REFUSED] = {.info =
                           INFO("refused", "requests that were refused because too many scripts ran", MK_COUNTER_SUM)},
    [COUNT_FAILURES] = {.info = INFO("failures", "scripts that could not be started, or gave no proper response",
                                     MK_COUNTER_SUM)},
    [COUNT_TIMEOUTS] = {.info = INFO("timeouts", "scripts that were ended because they took too long", MK_COUNTER_SUM)},
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
