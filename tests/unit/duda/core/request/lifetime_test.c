// SPDX-License-Identifier: Apache-2.0
/* The end of a request: which features are called, and in which order. */
#include "testing.h"

#include "service_slots.h"

#include "duda/core/request/request.h"
#include "duda/core/service/counts.h"

static char called[16];

static void note(char letter)
{
    size_t n = strlen(called);
    assert_true(n + 1 < sizeof(called));
    called[n] = letter;
}

static void end_every(struct duda_request *dr)
{
    (void)dr;
    note('e');
}

static void end_tunnel(struct duda_request *dr)
{
    (void)dr;
    note('t');
}

/* As a function of the service that uses what has ended, itself, and what has not. */
static void end_gc(struct duda_request *dr)
{
    note('g');
    request_use(dr, FEATURE_TUNNEL);
    request_use(dr, FEATURE_GC);
    request_use(dr, FEATURE_RAW_HEAD);
}

static void end_raw_head(struct duda_request *dr)
{
    (void)dr;
    note('r');
}

static const struct feature rows[FEATURES] = {
    [FEATURE_EVERY] = {.request_end = end_every},
    [FEATURE_TUNNEL] = {.request_end = end_tunnel},
    [FEATURE_GC] = {.request_end = end_gc},
    [FEATURE_RAW_HEAD] = {.request_end = end_raw_head},
};

static const char *end_request(unsigned used)
{
    struct service service = {0};
    struct service_worker w = {0};
    struct mk_test_slots slots;
    mk_test_slots_open(&slots, &service, &w);
    service.features = rows;
    counts_open(&service);
    mk_list_init(&w.requests);
    request_pool_init(&w);
    struct duda_request *dr = request_pool_get(&w);
    assert_non_null(dr);
    mk_list_add(&w.requests, &dr->node);
    dr->features = used;
    memset(called, 0, sizeof(called));
    request_release(dr);
    assert_true(mk_list_empty(&w.requests));
    request_pool_release(&w);
    counts_close(&service);
    mk_test_slots_close(&slots);
    return called;
}

TEST(only_features_that_were_used_end)
{
    assert_string_equal(end_request(0), "");
    assert_string_equal(end_request(1U << FEATURE_TUNNEL), "t");
    assert_string_equal(end_request(1U << FEATURE_RAW_HEAD | 1U << FEATURE_EVERY | 1U << FEATURE_TUNNEL), "etr");
}

TEST(each_feature_ends_once_and_in_order)
{
    assert_string_equal(end_request(1U << FEATURE_GC), "gr");
    assert_string_equal(end_request(1U << FEATURE_GC | 1U << FEATURE_TUNNEL), "tgr");
}
