// SPDX-License-Identifier: Apache-2.0
/* Which connections are counted and closed: by peer, by PROXY header, by requests of a proxy, and over reloads. */
#include "fixture.h"

static unsigned count(const struct connection_rule *rule, const char *client)
{
    return get_client(rule->base.zone, client).connections;
}

TEST(connections_of_a_client, open_guard, close_guard)
{
    const struct connection_rule *rule = add_connections("few", (struct connection_conf){.connections_max = 2});
    struct mk_test_client *first = connect_from("192.0.2.1", ""), *second = connect_from("192.0.2.1", ASK("/")),
                          *third = connect_from("192.0.2.1", ASK("/")), *other = connect_from("192.0.2.2", ASK("/"));
    assert_int_equal(status_of(mk_test_received(second).p), 200);
    assert_true(third->closed && !third->read_bytes);
    assert_int_equal(status_of(mk_test_received(other).p), 200);
    assert_int_equal(count(rule, "192.0.2.1"), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of(ask(second, ASK("/"))), 200);
    assert_int_equal(count(rule, "192.0.2.1"), 2);
    mk_test_reset(first);
    mk_test_settle(&w);
    assert_int_equal(count(rule, "192.0.2.1"), 1);
    assert_int_equal(status_of(ask(connect_from("192.0.2.1", ""), ASK("/"))), 200);
    mk__conn_abort_all(&w.http);
    assert_int_equal(count(rule, "192.0.2.1") + count(rule, "192.0.2.2"), 0);
}

TEST(the_first_section_decides, open_guard, close_guard)
{
    struct connection_rule *friends = add_connections("friends", (struct connection_conf){.connections_max = 0}),
                           *foes = add_connections("foes", (struct connection_conf){.action = CONNECTION_DROP});
    set_network(&friends->base, "10.0.0.0/8");
    assert_int_equal(status_of(ask(connect_from("10.1.2.3", ""), ASK("/"))), 200);
    assert_true(connect_from("192.0.2.1", ASK("/"))->closed);
    assert_int_equal(foes->base.zone->decisions, 1);
    assert_int_equal(friends->base.zone->decisions, 0);
}

/* A section in a dry run counts and logs, and the next one is asked; one that drops gives its counts back. */
TEST(a_dry_run, open_guard, close_guard)
{
    struct connection_rule *trial = add_connections("trial",
                                                    (struct connection_conf){.connections_max = 1, .dry_run = true}),
                           *real = add_connections("real", (struct connection_conf){.connections_max = 2});
    for (int i = 0; i < 2; i++)
        assert_false(connect_from("192.0.2.1", "")->closed);
    assert_int_equal(trial->base.zone->decisions, 1);
    assert_true(connect_from("192.0.2.1", "")->closed);
    assert_int_equal(trial->base.zone->decisions, 2);
    assert_int_equal(real->base.zone->decisions, 1);
    assert_int_equal(count(trial, "192.0.2.1"), 1);
    assert_int_equal(count(real, "192.0.2.1"), 2);
}

TEST(sections_of_one_name_count_once, open_guard, close_guard)
{
    struct connection_conf conf = {.connections_max = 5, .dry_run = true};
    const struct connection_rule *rule = add_connections("same", conf);
    add_connections("same", conf);
    connect_from("192.0.2.1", "");
    assert_int_equal(count(rule, "192.0.2.1"), 1);
}

TEST(a_proxy_header_names_the_client, open_guard, close_guard)
{
    const struct connection_rule *rule = add_connections("few", (struct connection_conf){.connections_max = 1});
    guard.proxy = true;
    struct mk_test_client *early = connect_from("127.0.0.1", ""), *c = connect_from("127.0.0.1", PROXY("192.0.2.1"));
    assert_int_equal(count(rule, "192.0.2.1"), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_int_equal(count(rule, "192.0.2.1"), 1); /* requests do not count */
    assert_true(connect_from("127.0.0.1", PROXY("192.0.2.1") ASK("/"))->closed);
    assert_false(connect_from("127.0.0.1", PROXY("192.0.2.2") ASK("/"))->closed);
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_int_equal(status_of(ask(early, PROXY("192.0.2.1") ASK("/"))), 200);
    assert_int_equal(count(rule, "127.0.0.1"), 0);
    for (int i = 0; i < 3; i++) /* the proxy's own */
        assert_int_equal(status_of(ask(connect_from("127.0.0.1", "PROXY UNKNOWN\r\n"), ASK("/"))), 200);
}

TEST(requests_of_a_proxy, open_guard, close_guard)
{
    const struct connection_rule *rule = add_connections("few", (struct connection_conf){.connections_max = 1});
    struct mk_test_client *held = connect_from("127.0.0.1", ASK_FOR("/hold", "192.0.2.1")),
                          *c = connect_from("127.0.0.1", "");
    assert_int_equal(count(rule, "192.0.2.1"), 1);
    assert_int_equal(status_of(ask(c, ASK_FOR("/", "192.0.2.2"))), 200);
    assert_int_equal(status_of(ask(c, ASK("/"))), 200); /* names no client */
    assert_int_equal(count(rule, "192.0.2.2") + count(rule, "127.0.0.1"), 0);
    assert_string_equal(ask(c, ASK_FOR("/", "192.0.2.1")), "");
    assert_true(is_ended(c));
    mk_test_reset(held);
    mk_test_settle(&w);
    assert_int_equal(count(rule, "192.0.2.1"), 0);
    assert_int_equal(status_of(ask(connect_from("127.0.0.1", ""), ASK_FOR("/", "192.0.2.1"))), 200);
}

/* A reload removes the section while connections and requests are counted: the zone lasts until their ends. */
TEST(sections_that_are_removed, open_guard, close_guard)
{
    struct connection_conf conf = {.connections_max = 1};
    struct zone *zone = add_connections("few", conf)->base.zone;
    struct mk_test_client *c = connect_from("192.0.2.1", ""),
                          *held = connect_from("127.0.0.1", ASK_FOR("/hold", "192.0.2.2"));
    remove_sections();
    assert_int_equal(status_of(ask(c, ASK("/"))), 200);
    assert_false(connect_from("192.0.2.1", "")->closed);
    const struct connection_rule *again = add_connections("few", conf);
    assert_ptr_equal(again->base.zone, zone);
    assert_true(connect_from("192.0.2.1", "")->closed);
    assert_int_equal(count(again, "192.0.2.2"), 1);
    remove_sections();
    mk_test_reset(held);
    mk_test_reset(c);
    mk_test_settle(&w);
}

/* A reload denies a client that has a connection: its next request ends it. */
TEST(a_new_section_for_an_open_connection, open_guard, close_guard)
{
    struct mk_test_client *c = connect_from("192.0.2.1", ASK("/"));
    assert_int_equal(status_of(mk_test_received(c).p), 200);
    add_connections("foes", (struct connection_conf){.action = CONNECTION_DROP});
    assert_string_equal(ask(c, ASK("/")), "");
    assert_true(is_ended(c));
}

static void try_with(long countdown, const char *peer, const char *text)
{
    guard.peer = peer;
    mk__alloc_countdown = countdown;
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    mk_test_settle(&w);
    bool failed = mk__alloc_countdown < 0;
    mk__alloc_countdown = failed ? -1 : mk__alloc_countdown;
    int status = c ? status_of(mk_test_received(c).p) : 0;
    assert_true(status == 200 || (failed && (!status || status >= 500)));
}

TEST(every_allocation_may_fail, open_guard, close_guard)
{
    static const char *const cases[][2] = {{"192.0.2.1", ASK("/")}, {"127.0.0.1", ASK_FOR("/", "192.0.2.1")}};
    close_guard(state);
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool all_fine = false;
        for (long n = 0; !all_fine; n++) {
            assert_true(n < 100);
            open_guard(state);
            const struct connection_rule *rule = add_connections("few", (struct connection_conf){.connections_max = 1});
            try_with(n, cases[i][0], cases[i][1]);
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            mk__conn_abort_all(&w.http);
            assert_int_equal(count(rule, "192.0.2.1"), 0);
            close_guard(state);
        }
    }
    open_guard(state);
}

TEST_FILE(make_folder, mk_test_folder_remove)
