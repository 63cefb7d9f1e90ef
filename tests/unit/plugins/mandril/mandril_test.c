// SPDX-License-Identifier: Apache-2.0
/* Delays of rules, before and after an internal redirect. */
#include "fixture.h"

static void add_delay(const char *path, uint32_t delay_ms)
{
    add_rule(path, (struct rule_conf){.when = match(path), .action = {.kind = ACTION_DELAY, .delay_ms = delay_ms}});
}

/* Returns after which of these times, in a row, the response comes; `n`: after none of them. */
static size_t await_response(const char *request, const uint32_t *times_ms, size_t n)
{
    struct mk_test_client *c = connect_from("192.0.2.1", request);
    size_t i = 0;
    for (; i < n && !status_of(mk_test_received(c).p); i++)
        mk_test_pass(&w, times_ms[i]);
    return i;
}

TEST(each_rule_delays, open_guard, close_guard)
{
    add_delay("=/dir/x", 10);
    add_delay("=/x", 5000);
    assert_int_equal(await_response(ASK("/dir/x"), (const uint32_t[]){9, 1, 4999, 1, 1}, 5), 4);
    assert_int_equal(await_response(ASK("/x"), (const uint32_t[]){4999, 1, 1}, 3), 2);
}

TEST(a_rule_delays_once, open_guard, close_guard)
{
    add_delay("/", 10);
    assert_int_equal(await_response(ASK("/dir/x"), (const uint32_t[]){9, 1, 1}, 3), 2);
}

TEST(waiting_requests_end, open_guard, close_guard)
{
    add_delay("=/dir/x", 10);
    add_delay("=/x", 5000);
    struct mk_test_client *c = connect_from("192.0.2.1", ASK("/dir/x"));
    assert_int_equal(guard.rules[0].base.zone->delayed, 1);
    mk_test_pass(&w, 10);
    assert_int_equal(guard.rules[0].base.zone->delayed, 0);
    assert_int_equal(guard.rules[1].base.zone->delayed, 1);
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_int_equal(guard.rules[1].base.zone->delayed, 0);
}

TEST_FILE(make_folder, mk_test_folder_remove)
