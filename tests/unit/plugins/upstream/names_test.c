// SPDX-License-Identifier: Apache-2.0
/* Names and their addresses: first lookups, changes, failures, reloads; and the members of a group that they make. */
#include "dns_fixture.h"

#include "turn.h"

#include "plugins/upstream/dns_answer.h"
#include "plugins/upstream/groups.h"

#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>

enum { FIRST_MS = 60000, RESOLVE_MS = 10000 };

static const struct mk_upstream_outcome refused = {.err = -ECONNREFUSED};
static const struct dns_row one_row[] = {{"app.test.", "127.0.0.1", DNS_A, 3, ANSWER}, {0}};
static const struct dns_row two_rows[] = {
    {"app.test.", "127.0.0.1", DNS_A, 0, ANSWER},
    {"app.test.", "127.0.0.2", DNS_A, 0, ANSWER},
    {0},
};
static const struct dns_row half_rows[] = {
    {"app.test.", "::1", DNS_AAAA, 60, ANSWER},
    {"app.test.", NULL, DNS_A, 60, ANSWER_SERVFAIL},
    {0},
};
static const struct dns_row no_rows[] = {{0}};
static const struct dns_row service_rows[] = {
    {"_http._tcp.test.", "0 1000 1 a.test", DNS_SRV, 60, ANSWER},
    {"_http._tcp.test.", "0 0 2 a.test", DNS_SRV, 60, ANSWER},
    {"_http._tcp.test.", "1 5 3 a.test", DNS_SRV, 60, ANSWER},
    {"_http._tcp.test.", "1 7 4 a.test", DNS_SRV, 60, ANSWER},
    {"_http._tcp.test.", "2 0 5 a.test", DNS_SRV, 60, ANSWER},
    {"a.test.", "127.0.0.1", DNS_A, 60, ANSWER},
    {0},
};

static struct mk_loop loop;
static uint64_t added_ms;
static struct mk__clock test_clock;
static struct names names;
static struct mk_dial_target target;
static struct server_line line;
static struct upstream_conf conf;
static struct mk_upstream_group *group;

static uint64_t get_ms(void *ctx)
{
    return mk__clock_system.now_ms(ctx) + added_ms;
}

static void set_line(const char *name, const char *host, bool is_srv)
{
    target = (struct mk_dial_target){.host = mk_str_c(host), .port = 80};
    line = (struct server_line){.name = mk_str_c(name), .target = &target, .weight = 1, .is_srv = is_srv};
    conf = (struct upstream_conf){.name = MK_STR("g"),
                                  .servers = {&line, 1},
                                  .balance = UPSTREAM_FIRST,
                                  .retry_most = 7,
                                  .eject_most = 100,
                                  .eject_after = 1,
                                  .retry_time_ms = UINT32_MAX,
                                  .eject_time_ms = 300000,
                                  .resolve_ms = RESOLVE_MS,
                                  .name_servers = dns_fixture_servers()};
}

static int open_all(void **state)
{
    (void)state;
    test_clock = mk__clock_system;
    test_clock.now_ms = get_ms;
    assert_int_equal(lookups_init(), 0);
    dns_fixture_open(one_row);
    names_init(&names);
    set_line("app.test.:80", "app.test.", false);
    return mk__loop_open(&loop, &mk__poller_epoll, &test_clock, NULL);
}

static int close_all(void **state)
{
    (void)state;
    names_stop(&names);
    group_free(group);
    mk__loop_close(&loop);
    mk_epoch_reclaim(servers_retired());
    dns_fixture_close();
    lookups_release();
    return 0;
}

static void open_group(void)
{
    group = group_make(&conf, &names);
    assert_non_null(group);
    names_resolve(&names, FIRST_MS);
}

static bool has_members(const char *expected)
{
    char storage[1024];
    struct mk_buf text;
    const struct members *members = group_members(group);
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    for (unsigned i = 0; i < members->n; i++) {
        mk_buf_adds(&text, i ? MK_STR(" ") : MK_STR(""));
        mk_buf_adds(&text, members->items[i].server->base.address);
    }
    return mk_str_eq(mk_buf_str(&text), mk_str_c(expected));
}

static void assert_members(const char *expected)
{
    assert_true(has_members(expected));
}

/* Lets the addresses get old. */
static void begin_lookup(const struct dns_row *rows)
{
    dns_fixture_set(rows);
    added_ms += RESOLVE_MS;
    mk_test_turn(&loop); /* its waits are those of the time before */
}

/* The same, and waits until the addresses of the rows are there. */
static void await_members(const struct dns_row *rows, const char *expected)
{
    begin_lookup(rows);
    while (!has_members(expected))
        assert_int_equal(mk__loop_turn(&loop), 0);
}

static const char *get_failure(void)
{
    names_lock();
    const char *why = names_get_failure(&group->watches[0]);
    names_unlock();
    return why;
}

/* The same, until the lookup has failed. */
static void await_failure(const struct dns_row *rows)
{
    begin_lookup(rows);
    while (!get_failure())
        assert_int_equal(mk__loop_turn(&loop), 0);
}

TEST(a_group_begins_with_its_addresses, open_all, close_all)
{
    open_group();
    assert_members("127.0.0.1:80");
    const struct mk_upstream_server *base = &group_members(group)->items[0].server->base;
    assert_str_equal(base->name, "app.test.:80");
    assert_str_equal(base->key, "app.test.:80 127.0.0.1:80");
    assert_null(get_failure());
}

TEST(a_group_without_addresses, open_all, close_all)
{
    dns_fixture_set(no_rows);
    set_line("missing.test.:80", "missing.test.", false);
    open_group();
    assert_members("missing.test.:80");
    assert_string_equal(get_failure(), "there is no such name");
}

/* What stays is the same server, with all that is known of it. */
TEST(addresses_change, open_all, close_all)
{
    open_group();
    struct server *first = group_members(group)->items[0].server;
    server_note_failure(first, &conf, &refused, NULL, mk_loop_now_ms(&loop));
    names_start(&names, &loop);
    await_members(two_rows, "127.0.0.1:80 127.0.0.2:80");
    assert_ptr_equal(group_members(group)->items[0].server, first);
    assert_int_equal(first->failures, 1);
    await_failure(no_rows);
    assert_members("127.0.0.1:80 127.0.0.2:80");
    await_members(one_row, "127.0.0.1:80");
}

/* The name servers have said nothing about IPv4. */
TEST(one_family_has_no_answer, open_all, close_all)
{
    open_group();
    names_start(&names, &loop);
    await_members(half_rows, "127.0.0.1:80 [::1]:80");
}

/* ── when a name is looked up again ── */

static uint64_t stopped_ms; /* the time, which only the test moves on */

static uint64_t get_stopped_ms(void *ctx)
{
    (void)ctx;
    return stopped_ms;
}

static void stop_time(void)
{
    stopped_ms = mk_loop_now_ms(&loop);
    test_clock.now_ms = get_stopped_ms;
}

/* The next lookup begins after so long, and not a millisecond before; waits for its end. */
static void assert_next_lookup(uint32_t wait_ms)
{
    stopped_ms += wait_ms - 1;
    mk_test_turn(&loop);
    assert_int_equal(names.running, 0);
    stopped_ms++;
    mk_test_turn(&loop);
    assert_int_equal(names.running, 1);
    while (names.running)
        assert_int_equal(mk__loop_turn(&loop), 0);
}

/* Opens a group that has had its addresses from these rows; `again`: in place of the one before. */
static void start_group(const struct dns_row *rows, bool again)
{
    names_stop(&names);
    if (again)
        group_free(group);
    names_init(&names);
    dns_fixture_set(rows);
    open_group();
    names_start(&names, &loop);
}

/* The first lookup is made while the configuration is loaded, the others in the loop. */
TEST(the_ttl_of_an_answer_decides, open_all, close_all)
{
    static const struct {
        uint32_t resolve_ms;
        uint16_t first_s, second_s; /* of the answers */
        uint32_t first_ms, second_ms;
    } rows[] = {
        {10000, 3, 5, 3000, 5000},     {10000, 0, 1, 1000, 1000},      {10000, 2, 0, 2000, 1000},
        {10000, 10, 11, 10000, 10000}, {10000, 65535, 9, 10000, 9000}, {2000, 60, 1, 2000, 1000},
        {100, 0, 60, 100, 100},        {60000, 59, 61, 59000, 60000},
    };
    static struct dns_row tables[COUNT(rows)][2][2]; /* the thread of the name server may have read those before */
    stop_time();
    for (size_t i = 0; i < COUNT(rows); i++) {
        tables[i][0][0] = (struct dns_row){"app.test.", "127.0.0.1", DNS_A, rows[i].first_s, ANSWER};
        tables[i][1][0] = (struct dns_row){"app.test.", "127.0.0.1", DNS_A, rows[i].second_s, ANSWER};
        conf.resolve_ms = rows[i].resolve_ms;
        start_group(tables[i][0], i > 0);
        dns_fixture_set(tables[i][1]);
        assert_next_lookup(rows[i].first_ms);
        assert_next_lookup(rows[i].second_ms);
    }
}

/* The least of all records that have led to the addresses. */
TEST(the_least_ttl_of_a_service_decides, open_all, close_all)
{
    static const struct {
        uint16_t service_s, address_s;
        uint32_t ms;
    } rows[] = {{7, 4, 4000}, {4, 7, 4000}, {60, 60, 9000}, {10, 8, 8000}};
    static struct dns_row tables[COUNT(rows)][4];
    set_line("srv:_http._tcp.test.", "_http._tcp.test.", true);
    stop_time();
    for (size_t i = 0; i < COUNT(rows); i++) {
        tables[i][0] = (struct dns_row){"_http._tcp.test.", "0 1 1 a.test", DNS_SRV, rows[i].service_s, ANSWER};
        tables[i][1] = (struct dns_row){"a.test.", "127.0.0.1", DNS_A, rows[i].address_s, ANSWER};
        tables[i][2] = (struct dns_row){"a.test.", "127.0.0.2", DNS_A, 9, ANSWER};
        start_group(tables[i], i > 0);
        assert_next_lookup(rows[i].ms);
    }
}

/* After failures: twice as long after each, up to Resolve; and as the TTL says after the next answer. */
TEST(failures_are_waited_for_longer, open_all, close_all)
{
    static const uint32_t waits_ms[] = {1000, 2000, 4000, 8000, RESOLVE_MS, RESOLVE_MS};
    stop_time();
    start_group(one_row, false);
    dns_fixture_set(no_rows);
    assert_next_lookup(3000);
    for (size_t i = 0; i < COUNT(waits_ms); i++) {
        if (i + 1 == COUNT(waits_ms))
            dns_fixture_set(one_row);
        assert_next_lookup(waits_ms[i]);
    }
    assert_null(get_failure());
    assert_next_lookup(3000);
}

/* ── members ── */

/* A server that goes is there until its last request has ended, and is found again until then. */
TEST(a_server_goes_with_requests, open_all, close_all)
{
    dns_fixture_set(two_rows);
    open_group();
    struct server *second = group_members(group)->items[1].server;
    second->load = 1;
    names_start(&names, &loop);
    await_members(one_row, "127.0.0.1:80");
    await_members(two_rows, "127.0.0.1:80 127.0.0.2:80");
    assert_ptr_equal(group_members(group)->items[1].server, second);
    assert_int_equal(second->load, 1);
    await_members(one_row, "127.0.0.1:80");
    server_end(second, NULL);
    await_members(two_rows, "127.0.0.1:80 127.0.0.2:80");
    assert_int_equal(group_members(group)->items[1].server->load, 0);
}

/* The next generation has the addresses without asking, also while name servers are away. */
TEST(generations_share_addresses, open_all, close_all)
{
    static struct names next;
    open_group();
    struct mk_upstream_group *before = group;
    unsigned questions = dns_fixture_questions();
    dns_fixture_set(no_rows);
    names_init(&next);
    group = group_make(&conf, &next);
    names_resolve(&next, FIRST_MS);
    assert_members("127.0.0.1:80");
    assert_int_equal(dns_fixture_questions(), questions);
    group_free(before);
    assert_members("127.0.0.1:80");
    names_start(&next, &loop);
    await_members(two_rows, "127.0.0.1:80 127.0.0.2:80");
    names_stop(&next);
}

TEST(lookups_end_with_their_loop, open_all, close_all)
{
    open_group();
    names_start(&names, &loop);
    unsigned before = dns_fixture_questions();
    begin_lookup(one_row);
    while (dns_fixture_questions() == before)
        assert_int_equal(mk__loop_turn(&loop), 0);
    names_stop(&names);
    names_stop(&names);
    names_start(&names, &loop);
    await_members(two_rows, "127.0.0.1:80 127.0.0.2:80");
}

static int choose(struct mk_upstream_server **ret)
{
    static const struct preference no_preference;
    struct mk_upstream_tries tries = {0};
    struct mk_upstream_wait wait = {.fn = NULL};
    return group_choose(group, &loop, &no_preference, &tries, &wait, ret);
}

/* A channel takes memory: those that are due wait for others. */
TEST(lookups_at_the_same_time, open_all, close_all)
{
    enum { NAMES = 20, MOST = 16 };
    static struct server_line lines[NAMES];
    static struct mk_dial_target targets[NAMES];
    static char hosts[NAMES][16];
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(hosts[i], sizeof(hosts[i]), "n%u.test.", i);
        targets[i] = (struct mk_dial_target){.host = mk_str_c(hosts[i]), .port = 80};
        lines[i] = (struct server_line){.name = mk_str_c(hosts[i]), .target = &targets[i], .weight = 1};
    }
    conf.servers = (struct server_lines){lines, NAMES};
    conf.family = LOOKUP_IPV4;
    open_group();
    names_start(&names, &loop);
    unsigned before = dns_fixture_questions();
    begin_lookup(no_rows);
    assert_int_equal(names.running, MOST);
    while (dns_fixture_questions() < before + NAMES) {
        assert_int_equal(mk__loop_turn(&loop), 0);
        assert_true(names.running <= MOST);
    }
}

TEST(services_have_weights_and_priorities, open_all, close_all)
{
    static const struct {
        const char *address;
        uint32_t weight;
    } wanted[] = {
        {"127.0.0.1:1", 256}, {"127.0.0.1:2", 1}, {"127.0.0.1:3", 5}, {"127.0.0.1:4", 7}, {"127.0.0.1:5", 1},
    };
    dns_fixture_set(service_rows);
    set_line("srv:_http._tcp.test.", "_http._tcp.test.", true);
    open_group();
    struct members *members = group_members(group);
    assert_int_equal(members->n, COUNT(wanted));
    for (unsigned i = 0; i < COUNT(wanted); i++) {
        struct mk_upstream_server *server;
        assert_int_equal(member_weight(&members->items[i]), wanted[i].weight);
        assert_int_equal(choose(&server), 0);
        assert_ptr_equal(server, &members->items[i].server->base);
        assert_str_equal(server->address, wanted[i].address);
        server_drop_load(members->items[i].server);
        server_note_failure(members->items[i].server, &conf, &refused, NULL, mk_loop_now_ms(&loop));
    }
}

TEST(a_service_that_is_not_known_has_no_server, open_all, close_all)
{
    struct mk_upstream_server *server;
    set_line("srv:_http._tcp.test.", "_http._tcp.test.", true);
    open_group();
    assert_int_equal(group_members(group)->n, 0);
    assert_int_equal(choose(&server), -ENXIO);
}

/* ── memory ── */

static int run_once(void *ctx)
{
    (void)ctx;
    group = group_make(&conf, &names);
    if (!group)
        return -ENOMEM;
    names_resolve(&names, FIRST_MS);
    int err = group_members(group)->n == 2 ? 0 : -ENOMEM;
    group_free(group);
    return err;
}

TEST(each_allocation_fails, open_all, close_all)
{
    dns_fixture_set(two_rows);
    assert_true(mk_test_failing_allocs(run_once, NULL) > 10);
    open_group();
}
