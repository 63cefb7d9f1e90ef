// SPDX-License-Identifier: Apache-2.0
/* Limits of clients: rates to the millisecond, requests under way, which section is used, and every allocation. */
#include "fixture.h"

static void expect_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

TEST(a_rate, open_guard, close_guard)
{
    add_limit("slow", (struct limit_conf){.rate = {1, 1}, .burst = 2});
    struct mk_test_client *c = connect_from("192.0.2.1", "");
    const char *text = ask(c, ASK("/"));
    assert_int_equal(status_of(text), 200);
    expect_has(text, "RateLimit-Policy: \"policy\"\r\n");
    expect_has(text, "RateLimit: \"slow\";r=1;t=1\r\n");
    expect_has(ask(c, ASK("/")), "RateLimit: \"slow\";r=0;t=1\r\n");
    text = ask(c, ASK("/"));
    assert_int_equal(status_of(text), 429);
    expect_has(text, "Retry-After: 1\r\n");
    expect_has(text, "RateLimit: \"slow\";r=0;t=1\r\n");
    mk_test_pass(&w, 999);
    assert_int_equal(status_of(ask(c, ASK("/"))), 429);
    mk_test_pass(&w, 1);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/"))), 429);
    assert_int_equal(status_of(ask(connect_from("192.0.2.2", ""), ASK("/"))), 200);
}

TEST(requests_under_way, open_guard, close_guard)
{
    const struct zone *zone = add_limit("few", (struct limit_conf){.requests_max = 2})->base.zone;
    struct mk_test_client *first = connect_from("192.0.2.1", ASK("/hold")),
                          *second = connect_from("192.0.2.1", ASK("/hold")), *third = connect_from("192.0.2.1", "");
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 2);
    const char *text = ask(third, ASK("/"));
    assert_int_equal(status_of(text), 429);
    expect_has(text, "Retry-After: 1\r\n");
    assert_null(strstr(text, "RateLimit"));
    mk_test_reset(first);
    mk_test_settle(&w);
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 1);
    assert_int_equal(status_of(ask(third, ASK("/"))), 200);
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 1); /* it has ended */
    mk_test_pass(&w, MK_TEST_DAY_MS);
    assert_true(second->closed);
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 0);
}

/* A request that is refused by MaxRequests takes nothing from the bucket. */
TEST(a_refusal_takes_nothing, open_guard, close_guard)
{
    add_limit("both", (struct limit_conf){.requests_max = 1, .rate = {1, 86400}, .burst = 2});
    struct mk_test_client *held = connect_from("192.0.2.1", ASK("/hold")), *c = connect_from("192.0.2.1", "");
    const char *text = ask(c, ASK("/"));
    assert_int_equal(status_of(text), 429);
    expect_has(text, "RateLimit: \"both\";r=1;");
    expect_has(text, "Retry-After: 1\r\n");
    mk_test_reset(held);
    mk_test_settle(&w);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/"))), 429);
}

TEST(the_first_section_that_matches, open_guard, close_guard)
{
    set_network(&add_limit("exempt", (struct limit_conf){.rate = {0, 0}})->base, "10.0.0.0/8");
    struct limit_conf on_put = {.rate = {1, 86400}, .burst = 1};
    struct mk_when_value method = {.text = MK_STR("PUT")};
    struct mk_when_condition is_put = {.subject = MK_WHEN_METHOD, .values = &method, .n = 1};
    on_put.when.when = (struct mk_when){&is_put, 1};
    add_limit("put", on_put);
    add_limit("rest", (struct limit_conf){.rate = {1, 86400}, .burst = 1});
    struct mk_test_client *free_client = connect_from("10.0.0.1", ""), *c = connect_from("192.0.2.1", "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of(ask(free_client, ASK("/"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(status_of(ask(c, "PUT / HTTP/1.1\r\nHost: h\r\n\r\n")), 200);
    assert_int_equal(status_of(ask(c, "PUT / HTTP/1.1\r\nHost: h\r\n\r\n")), 429);
    assert_int_equal(status_of(ask(c, ASK("/"))), 429);
}

/* A dry run counts for itself, once for sections of one name, and the next section decides. */
TEST(a_dry_run, open_guard, close_guard)
{
    struct limit_conf trial = {.rate = {1, 86400}, .burst = 1, .dry_run = true};
    const struct zone *zone = add_limit("trial", trial)->base.zone;
    add_limit("trial", trial);
    add_limit("real", (struct limit_conf){.rate = {1, 86400}, .burst = 3});
    struct mk_test_client *c = connect_from("192.0.2.1", "");
    const char *text = ask(c, ASK("/"));
    expect_has(text, "RateLimit: \"real\";r=2;");
    assert_int_equal(zone->decisions, 0);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(zone->decisions, 1);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/"))), 429);
    assert_int_equal(zone->decisions, 3);
}

/* Both paths of an internal redirect keep to MaxRequests of their sections, which count the request once. */
TEST(requests_of_one_zone, open_guard, close_guard)
{
    const struct zone *zone =
        add_limit("dir", (struct limit_conf){.when = match("=/dir/hold"), .requests_max = 5})->base.zone;
    add_limit("dir", (struct limit_conf){.when = match("=/hold"), .requests_max = 1});
    struct mk_test_client *held = connect_from("192.0.2.1", ASK("/hold")), *c = connect_from("192.0.2.1", "");
    assert_int_equal(status_of(ask(c, ASK("/dir/hold"))), 429);
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 1);
    mk_test_reset(held);
    mk_test_settle(&w);
    held = connect_from("192.0.2.1", ASK("/dir/hold"));
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 1);
    assert_int_equal(status_of(ask(c, ASK("/hold"))), 429);
    assert_int_equal(status_of(ask(c, ASK("/dir/hold"))), 429);
    mk_test_reset(held);
    mk_test_settle(&w);
    assert_int_equal(get_client(zone, "192.0.2.1").requests, 0);
}

/* What the first section does not limit, the second one counts. */
TEST(other_limits_of_one_zone, open_guard, close_guard)
{
    const struct request_rate daily = {1, 86400};
    add_limit("a", (struct limit_conf){.when = match("=/dir/hold"), .rate = daily, .burst = 9});
    add_limit("a", (struct limit_conf){.when = match("=/hold"), .requests_max = 1});
    add_limit("b", (struct limit_conf){.when = match("=/dir/x"), .requests_max = 9});
    add_limit("b", (struct limit_conf){.when = match("=/x"), .rate = daily, .burst = 1});
    connect_from("192.0.2.1", ASK("/dir/hold"));
    struct mk_test_client *c = connect_from("192.0.2.1", "");
    assert_int_equal(status_of(ask(c, ASK("/dir/hold"))), 429);
    assert_int_equal(status_of(ask(c, ASK("/dir/x"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/dir/x"))), 429);
}

/* One token is taken, which must be within both bursts. */
TEST(bursts_of_one_zone, open_guard, close_guard)
{
    const struct request_rate daily = {1, 86400};
    add_limit("dir", (struct limit_conf){.when = match("=/dir/x"), .rate = daily, .burst = 9});
    add_limit("dir", (struct limit_conf){.when = match("=/x"), .rate = daily, .burst = 2});
    struct mk_test_client *c = connect_from("192.0.2.1", "");
    expect_has(ask(c, ASK("/dir/x")), "RateLimit: \"dir\";r=1;");
    expect_has(ask(c, ASK("/dir/x")), "RateLimit: \"dir\";r=0;");
    assert_int_equal(status_of(ask(c, ASK("/dir/x"))), 429);
}

/* A section that was used for an earlier path says what it said then. */
TEST(a_section_is_used_again, open_guard, close_guard)
{
    const struct request_rate daily = {1, 86400};
    add_limit("between", (struct limit_conf){.when = match("=/dir/x"), .rate = daily, .burst = 9});
    add_limit("rest", (struct limit_conf){.rate = daily, .burst = 5});
    struct mk_test_client *c = connect_from("192.0.2.1", "");
    expect_has(ask(c, ASK("/dir/dir/x")), "RateLimit: \"rest\";r=4;");
    expect_has(ask(c, ASK("/dir/x")), "RateLimit: \"rest\";r=3;");
}

/* The record was evicted while its request was under way: its end changes nothing of the new one. */
TEST(an_evicted_record, open_guard, close_guard)
{
    const struct zone *zone = add_limit("few", (struct limit_conf){.requests_max = 1})->base.zone;
    struct mk_test_client *held = connect_from("192.0.2.1", ASK("/hold"));
    char peer[32];
    for (unsigned i = 0; i < 64 * TABLE_CLIENTS; i++) {
        snprintf(peer, sizeof(peer), "10.0.%u.%u", i / 256, i % 256);
        connect_from(peer, ASK("/hold"));
    }
    assert_true(mk_client_table_counts(zone->table).evicted > 0);
    mk_test_reset(held);
    mk_test_settle(&w);
    mk__conn_abort_all(&w.http);
    for (unsigned i = 0; i < 64 * TABLE_CLIENTS; i++) {
        snprintf(peer, sizeof(peer), "10.0.%u.%u", i / 256, i % 256);
        assert_int_equal(get_client(zone, peer).requests, 0);
    }
}

TEST(every_allocation_may_fail, open_guard, close_guard)
{
    bool all_fine = false;
    close_guard(state);
    for (long n = 0; !all_fine; n++) {
        assert_true(n < 200);
        open_guard(state);
        const struct zone *zone =
            add_limit("many", (struct limit_conf){.requests_max = 5, .rate = {9, 1}, .burst = 9, .send_rate = 1 << 20})
                ->base.zone;
        guard.peer = "192.0.2.1";
        mk__alloc_countdown = n;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(ASK("/big")));
        mk_test_pass(&w, 2000);
        all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        struct mk_str got = c ? mk_test_received(c) : MK_STR_NONE;
        int status = got.len ? status_of(got.p) : 0;
        assert_true(status == 200 || (!all_fine && (!status || status >= 500)));
        assert_int_equal(get_client(zone, "192.0.2.1").requests, 0);
        close_guard(state);
    }
    open_guard(state);
}

TEST_FILE(make_folder, mk_test_folder_remove)
