// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of redirect_counters.h.
 */
#include "redirect_counters.h"

#include <assert.h>

static const struct mk_counter_info redirects = {"redirect", "redirects", "redirects, by status", MK_COUNTER_SUM};
static const struct mk_counter_info rewrites = {"redirect", "rewrites", "requests that got another path",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info failures = {"redirect", "failures",
                                                "requests that could not be redirected or rewritten, by reason",
                                                MK_COUNTER_SUM};

static const struct mk_counter_row rows[REDIRECT_COUNTS] = {
    [REDIRECT_COUNT_301] = {&redirects, {"status", "301"}},
    [REDIRECT_COUNT_302] = {&redirects, {"status", "302"}},
    [REDIRECT_COUNT_303] = {&redirects, {"status", "303"}},
    [REDIRECT_COUNT_307] = {&redirects, {"status", "307"}},
    [REDIRECT_COUNT_308] = {&redirects, {"status", "308"}},
    [REDIRECT_COUNT_REWRITES] = {&rewrites, {0}},
    [REDIRECT_COUNT_PATTERN] = {&failures, {"reason", "pattern"}},
    [REDIRECT_COUNT_LOOP] = {&failures, {"reason", "loop"}},
    [REDIRECT_COUNT_TOO_LONG] = {&failures, {"reason", "too_long"}},
    [REDIRECT_COUNT_INVALID_PATH] = {&failures, {"reason", "invalid_path"}},
    [REDIRECT_COUNT_NO_MEMORY] = {&failures, {"reason", "no_memory"}},
};

static const struct mk_counter *counters[REDIRECT_COUNTS];

void redirect_counters_open(void)
{
    mk_counters_open(rows, REDIRECT_COUNTS, counters);
}

void redirect_counters_add(enum redirect_count count, const struct mk_request *req)
{
    assert(count < REDIRECT_COUNTS && counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), 1);
}
