// SPDX-License-Identifier: Apache-2.0
/* Lookups: of a name server's answers, without an answer, and without memory; in a loop and while the caller waits. */
#include "dns_fixture.h"

#include "testing.h"

#include "plugins/upstream/dns_answer.h"

#include "loop/loop.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>

enum { LONG_MS = 60000 };

static const struct dns_row rows[] = {
    {"app.test.", "127.0.0.2", DNS_A, 30, ANSWER},
    {"app.test.", "127.0.0.1", DNS_A, 7, ANSWER},
    {"app.test.", "::1", DNS_AAAA, 60, ANSWER},
    {"four.test.", "127.0.0.1", DNS_A, 0, ANSWER},
    {"half.test.", "127.0.0.1", DNS_A, 9, ANSWER},
    {"half.test.", NULL, DNS_AAAA, 0, ANSWER_SERVFAIL},
    {"sick.test.", NULL, DNS_A, 0, ANSWER_SERVFAIL},
    {"sick.test.", NULL, DNS_AAAA, 0, ANSWER_SERVFAIL},
    {"silent.test.", NULL, DNS_A, 0, ANSWER_NOTHING},
    {"silent.test.", NULL, DNS_AAAA, 0, ANSWER_NOTHING},
    {"garbage.test.", NULL, DNS_A, 0, ANSWER_GARBAGE},
    {"empty.test.", NULL, DNS_A, 0, ANSWER},
    {"_http._tcp.test.", "1 5 8001 four.test", DNS_SRV, 20, ANSWER},
    {"_http._tcp.test.", "0 7 8002 app.test", DNS_SRV, 40, ANSWER},
    {"_http._tcp.test.", "0 0 8003 missing.test", DNS_SRV, 40, ANSWER},
    {"_none._tcp.test.", "0 0 0 .", DNS_SRV, 40, ANSWER},
    {"_half._tcp.test.", "0 0 1 four.test", DNS_SRV, 40, ANSWER},
    {"_half._tcp.test.", "0 0 2 sick.test", DNS_SRV, 40, ANSWER},
    {0},
};

static struct lookup_query query;
static struct lookup *lookup;

static int open_server(void **state)
{
    (void)state;
    ares_library_init(ARES_LIB_INIT_ALL);
    dns_fixture_open(rows);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    dns_fixture_close();
    ares_library_cleanup();
    return 0;
}

TEST_FILE(open_server, close_server)

static void set_query(const char *host, bool is_srv, int family)
{
    query = (struct lookup_query){host, is_srv, 80, family, dns_fixture_servers()};
}

static const struct lookup_result *look_up(const char *host, bool is_srv, int family)
{
    set_query(host, is_srv, family);
    lookup = lookup_new(&query);
    assert_non_null(lookup);
    lookups_wait(&lookup, 1, LONG_MS);
    return lookup_get_result(lookup);
}

static void assert_addresses(const struct lookup_result *r, const char *expected)
{
    char storage[1024];
    struct mk_buf text;
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    for (unsigned i = 0; i < r->n; i++) {
        mk_buf_adds(&text, i ? MK_STR(" ") : MK_STR(""));
        lookup_print(&r->addresses[i].address, &text);
    }
    assert_str_equal(mk_buf_str(&text), expected);
}

TEST(addresses)
{
    const struct lookup_result *r = look_up("app.test.", false, LOOKUP_ANY);
    assert_int_equal(r->status, LOOKUP_OK);
    assert_addresses(r, "127.0.0.1:80 127.0.0.2:80 [::1]:80");
    assert_int_equal(r->ttl_s, 7);
    assert_false(r->failed_ipv4 || r->failed_ipv6 || r->has_more);
    lookup_free(lookup);
}

TEST(families)
{
    assert_addresses(look_up("app.test.", false, LOOKUP_IPV4), "127.0.0.1:80 127.0.0.2:80");
    lookup_free(lookup);
    assert_addresses(look_up("app.test.", false, LOOKUP_IPV6), "[::1]:80");
    lookup_free(lookup);
    assert_int_equal(look_up("four.test.", false, LOOKUP_IPV6)->status, LOOKUP_NO_ADDRESS);
    lookup_free(lookup);
}

/* Without a question to a name server. */
TEST(names_of_the_file_of_hosts)
{
    unsigned before = dns_fixture_questions();
    const struct lookup_result *r = look_up("localhost", false, LOOKUP_IPV4);
    assert_addresses(r, "127.0.0.1:80");
    assert_int_equal(r->ttl_s, UINT32_MAX);
    assert_int_equal(dns_fixture_questions(), before);
    lookup_free(lookup);
}

TEST(failures)
{
    static const struct {
        const char *host;
        bool is_srv;
        enum lookup_status status;
        const char *why;
    } wanted[] = {
        {"missing.test.", false, LOOKUP_NO_ADDRESS, "there is no such name"},
        {"empty.test.", false, LOOKUP_NO_ADDRESS, "the name has no address"},
        {"_missing._tcp.test.", true, LOOKUP_NO_ADDRESS, "there is no such name"},
        {"_none._tcp.test.", true, LOOKUP_NO_ADDRESS, "the name has no address"},
        {"sick.test.", false, LOOKUP_FAILED, "no name server can answer"},
        {"garbage.test.", false, LOOKUP_FAILED, "the answer of the name server is malformed"},
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        const struct lookup_result *r = look_up(wanted[i].host, wanted[i].is_srv, LOOKUP_ANY);
        assert_int_equal(r->n, 0);
        assert_int_equal(r->status, wanted[i].status);
        assert_string_equal(r->why, wanted[i].why);
        lookup_free(lookup);
    }
}

TEST(an_answer_for_one_family)
{
    const struct lookup_result *r = look_up("half.test.", false, LOOKUP_ANY);
    assert_int_equal(r->status, LOOKUP_OK);
    assert_addresses(r, "127.0.0.1:80");
    assert_true(r->failed_ipv6 && !r->failed_ipv4);
    lookup_free(lookup);
}

/* By their priority; a target without an address is left out, one without an answer is noted. */
TEST(services)
{
    const struct lookup_result *r = look_up("_http._tcp.test.", true, LOOKUP_ANY);
    assert_int_equal(r->status, LOOKUP_OK);
    assert_addresses(r, "127.0.0.1:8002 127.0.0.2:8002 [::1]:8002 127.0.0.1:8001");
    assert_int_equal(r->addresses[0].weight, 7);
    assert_int_equal(r->addresses[3].priority, 1);
    assert_int_equal(r->addresses[3].weight, 5);
    assert_int_equal(r->ttl_s, 0);
    assert_false(r->failed_ipv4);
    lookup_free(lookup);
    r = look_up("_half._tcp.test.", true, LOOKUP_IPV4);
    assert_addresses(r, "127.0.0.1:1");
    assert_true(r->failed_ipv4);
    lookup_free(lookup);
}

/* Several at the same time: one that ends does not end the wait for others, and the wait has an end. */
TEST(no_answer_in_time)
{
    struct lookup_query queries[2];
    struct lookup *lookups[2];
    set_query("silent.test.", false, LOOKUP_ANY);
    queries[0] = query;
    set_query("app.test.", false, LOOKUP_ANY);
    queries[1] = query;
    for (unsigned i = 0; i < 2; i++)
        lookups[i] = lookup_new(&queries[i]);
    lookups_wait(lookups, 2, 300);
    assert_int_equal(lookup_get_result(lookups[0])->status, LOOKUP_FAILED);
    assert_string_equal(lookup_get_result(lookups[0])->why, "no name server answers in time");
    for (unsigned i = 0; i < 2; i++)
        lookup_free(lookups[i]);
}

TEST(no_name_server)
{
    struct mk_address nowhere;
    mk_address_set(&nowhere, AF_INET, "\x7f\0\0\1", 1);
    query = (struct lookup_query){"app.test.", false, 80, LOOKUP_ANY, {&nowhere, 1}};
    lookup = lookup_new(&query);
    lookups_wait(&lookup, 1, LONG_MS);
    assert_int_equal(lookup_get_result(lookup)->status, LOOKUP_FAILED);
    lookup_free(lookup);
}

/* ── in a loop ── */

static struct mk_loop loop;
static uint64_t added_ms;
static unsigned ended;

static uint64_t get_ms(void *ctx)
{
    return mk__clock_system.now_ms(ctx) + added_ms;
}

static struct mk__clock test_clock;

static int open_loop(void **state)
{
    (void)state;
    test_clock = mk__clock_system;
    test_clock.now_ms = get_ms;
    ended = 0;
    return mk__loop_open(&loop, &mk__poller_epoll, &test_clock, NULL);
}

static int close_loop(void **state)
{
    (void)state;
    mk__loop_close(&loop);
    return 0;
}

static void on_end(struct lookup *l, void *ctx)
{
    assert_ptr_equal(l, lookup);
    assert_ptr_equal(ctx, &ended);
    ended++;
}

static const struct lookup_result *look_up_in_loop(const char *host, bool is_srv)
{
    set_query(host, is_srv, LOOKUP_ANY);
    lookup = lookup_new(&query);
    lookup_start(lookup, &loop, on_end, &ended);
    assert_int_equal(ended, 0);
    while (!ended)
        assert_int_equal(mk__loop_turn(&loop), 0);
    return lookup_get_result(lookup);
}

TEST(addresses_in_a_loop, open_loop, close_loop)
{
    assert_addresses(look_up_in_loop("app.test.", false), "127.0.0.1:80 127.0.0.2:80 [::1]:80");
    lookup_free(lookup);
}

TEST(services_in_a_loop, open_loop, close_loop)
{
    assert_int_equal(look_up_in_loop("_http._tcp.test.", true)->n, 4);
    lookup_free(lookup);
}

TEST(hosts_in_a_loop, open_loop, close_loop)
{
    assert_int_equal(look_up_in_loop("localhost", false)->status, LOOKUP_OK);
    lookup_free(lookup);
}

TEST(no_answer_in_a_loop, open_loop, close_loop)
{
    set_query("silent.test.", false, LOOKUP_ANY);
    lookup = lookup_new(&query);
    lookup_start(lookup, &loop, on_end, &ended);
    unsigned before = dns_fixture_questions();
    while (dns_fixture_questions() < before + 2)
        assert_int_equal(mk__loop_turn(&loop), 0); /* it asks once more */
    assert_int_equal(ended, 0);
    added_ms += LOOKUP_MS_MAX;
    while (!ended)
        assert_int_equal(mk__loop_turn(&loop), 0);
    assert_string_equal(lookup_get_result(lookup)->why, "no name server answers in time");
    lookup_free(lookup);
}

TEST(a_lookup_is_freed_before_its_end, open_loop, close_loop)
{
    set_query("silent.test.", false, LOOKUP_ANY);
    lookup = lookup_new(&query);
    lookup_start(lookup, &loop, on_end, &ended);
    lookup_free(lookup);
    set_query("localhost", false, LOOKUP_ANY);
    lookup = lookup_new(&query);
    lookup_start(lookup, &loop, on_end, &ended);
    lookup_free(lookup);
    lookup_free(lookup_new(&query));
    assert_int_equal(ended, 0);
}

/* ── memory ── */

static int run_once(void *ctx)
{
    const char *host = ctx;
    set_query(host, host[0] == '_', LOOKUP_ANY);
    lookup = lookup_new(&query);
    if (!lookup)
        return -ENOMEM;
    lookups_wait(&lookup, 1, LONG_MS);
    int err = lookup_get_result(lookup)->status == LOOKUP_OK ? 0 : -ENOMEM;
    lookup_free(lookup);
    return err;
}

TEST(each_allocation_fails)
{
    static char host[] = "app.test.", service[] = "_http._tcp.test.";
    assert_true(mk_test_failing_allocs(run_once, host) >= 4);
    assert_true(mk_test_failing_allocs(run_once, service) >= 4);
}

/* The library's memory. */
static long countdown = -1;

static void *allocate(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void *reallocate(void *p, size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : realloc(p, size);
}

TEST(each_allocation_of_the_library_fails)
{
    bool has_failed = true;
    ares_library_cleanup();
    assert_int_equal(ares_library_init_mem(ARES_LIB_INIT_ALL, allocate, free, reallocate), 0);
    for (long n = 0; has_failed; n++) {
        char host[] = "four.test.";
        countdown = n;
        run_once(host); /* a lookup may do without what has failed */
        has_failed = countdown < 0;
        countdown = -1;
        assert_int_equal(run_once(host), 0);
    }
}
