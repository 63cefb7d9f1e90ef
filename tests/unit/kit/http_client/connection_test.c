// SPDX-License-Identifier: Apache-2.0
/*
 * Connections that are kept between requests: which response keeps one, which request uses it, when it ends, and what
 * is counted of it. With a server in the test.
 */
#include <monkey/kit/backend_stats.h>

#include "counters_memory.h"
#include "http_client_fixture.h"

static const struct mk_counter_info infos[] = MK_BACKEND_STATS_INFOS("test");
static struct mk_http_idle idle;
static struct mk_stats_registry registry;
static struct mk_target_stats stats;

static int open_idle(void **state)
{
    const struct mk_target target = {.text = MK_STR("http://a")};
    mk_test_counters_open(state);
    open_all(state);
    mk_stats_registry_init(&registry, infos);
    assert_int_equal(mk_target_stats_open(&stats, &registry, &target, NULL, NULL), 0);
    mk_http_idle_init(&idle, &loop);
    options.idle = &idle;
    options.stats = stats.backend;
    return 0;
}

static int close_idle(void **state)
{
    mk_http_client_cancel(&client);
    mk_http_idle_close(&idle);
    mk_target_stats_close(&stats, &registry);
    mk_stats_registry_release(&registry);
    close_all(state);
    return mk_test_counters_close(state);
}

static void expect_counts(int64_t opened, int64_t busy, int64_t unused)
{
    assert_int_equal(mk_counter_read(stats.backend->counters[MK_BACKEND_OPENED]), opened);
    assert_int_equal(mk_counter_read(stats.backend->counters[MK_BACKEND_BUSY]), busy);
    assert_int_equal(mk_counter_read(stats.backend->counters[MK_BACKEND_IDLE]), unused);
    assert_int_equal(idle.n, unused);
}

static int64_t count(enum mk_backend_counter counter)
{
    return mk_counter_read(stats.backend->counters[counter]);
}

/* Asks on the connection that was kept. */
static void ask_again(const char *response)
{
    start();
    settle();
    expect(REQUEST);
    reply(response, strlen(response));
}

TEST(a_connection_for_all_requests, open_idle, close_idle)
{
    ask(RESPONSE);
    expect_body("hello", true);
    expect_counts(1, 0, 1);
    for (int i = 0; i < 3; i++) {
        ask_again("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
        expect_body("hi", true);
        expect_counts(1, 0, 1);
    }
    assert_int_equal(count(MK_BACKEND_REQUESTS), 4);
    assert_int_equal(count(MK_BACKEND_RESPONSES + 1), 4);
    assert_int_equal(count(MK_BACKEND_SENT_BYTES), 4 * strlen(REQUEST));
    uint64_t buckets[MK_COUNTER_BUCKETS] = {0}, all = 0;
    mk_counter_read_histogram(stats.backend->counters[MK_BACKEND_CONNECT_DURATION], buckets);
    for (size_t i = 0; i < COUNT(buckets); i++)
        all += buckets[i];
    assert_int_equal(all, 1);
}

/* Without a place for it, each connection ends with its request. */
TEST(a_connection_for_each_request, open_idle, close_idle)
{
    options.idle = NULL;
    for (int i = 1; i < 4; i++) {
        ask(RESPONSE);
        expect_body("hello", true);
        assert_int_equal(recv(peer, body, 1, 0), 0);
        close_peer();
        expect_counts(i, 0, 0);
    }
}

TEST(responses_that_end_a_connection, open_idle, close_idle)
{
    static const char *const responses[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        RESPONSE "x", /* bytes that were not asked for */
        RESPONSE RESPONSE,
        "HTTP/1.1 204 No Content\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n0",
    };
    for (size_t i = 0; i < COUNT(responses); i++) {
        ask(responses[i]);
        assert_int_equal(result, 0);
        assert_int_equal(idle.n, 0);
        close_peer();
    }
}

/* What is left of a body that is too long would be read as the next response. */
TEST(a_body_that_is_not_read_to_its_end, open_idle, close_idle)
{
    static const unsigned wanted[] = {0, 3};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        options.body_bytes_max = wanted[i];
        ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
        assert_int_equal(calls, 1);
        assert_int_equal(idle.n, 0);
        close_peer();
    }
}

TEST(errors_end_a_connection, open_idle, close_idle)
{
    ask(RESPONSE);
    ask_again("nonsense\r\n\r\n");
    expect_error(-EINVAL,
                 "the response is malformed: line 1 of its head, \"nonsense\": it is no status line of HTTP/1");
    expect_counts(1, 0, 0);
    assert_int_equal(count(MK_BACKEND_FAILURES), 1);
    ask(RESPONSE);
    start();
    pass(TIMEOUT_MS);
    expect_error(-ETIMEDOUT, "no response in 2s");
    expect_counts(2, 0, 0);
    assert_int_equal(count(MK_BACKEND_TIMEOUTS), 1);
    ask(RESPONSE);
    start();
    mk_http_client_cancel(&client);
    expect_counts(3, 0, 0);
}

/* ── connections that end ── */

TEST(the_server_closes_an_idle_one, open_idle, close_idle)
{
    ask(RESPONSE);
    close_peer();
    expect_counts(1, 0, 0);
    ask(RESPONSE);
    expect_body("hello", true);
    expect_counts(2, 0, 1);
}

TEST(the_server_sends_on_an_idle_one, open_idle, close_idle)
{
    ask(RESPONSE);
    reply(RESPONSE, strlen(RESPONSE));
    expect_counts(1, 0, 0);
    close_peer();
}

/* The bytes are there when the next request begins, and their event is not: they are not its response. */
TEST(bytes_without_their_event, open_idle, close_idle)
{
    ask(RESPONSE);
    assert_int_equal(send(peer, RESPONSE, strlen(RESPONSE), 0), strlen(RESPONSE));
    int former = peer;
    connect_peer();
    close(former);
    expect(REQUEST);
    reply("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 40);
    expect_body("hi", true);
    expect_counts(2, 0, 1);
}

static void lose_connection(void)
{
    ask(RESPONSE);
    start();
    settle();
    expect(REQUEST);
    close_peer();
}

/* The server has closed it when the request was on its way: another connection carries it. */
TEST(a_kept_one_is_lost, open_idle, close_idle)
{
    lose_connection();
    accept_peer();
    expect(REQUEST);
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("hello", true);
    expect_counts(2, 0, 1);
    assert_int_equal(count(MK_BACKEND_RETRIES + MK_UPSTREAM_KEPT_ENDED), 1);
    assert_int_equal(count(MK_BACKEND_REQUESTS), 2);
    assert_int_equal(count(MK_BACKEND_FAILURES), 0);
}

/* It is sent again once: the second connection is a new one. */
TEST(a_new_one_is_lost_behind_it, open_idle, close_idle)
{
    lose_connection();
    accept_peer();
    expect(REQUEST);
    close_peer();
    expect_error(-EPIPE, "the connection was closed before the response was complete");
    expect_counts(2, 0, 0);
}

TEST(a_kept_one_is_lost_in_its_response, open_idle, close_idle)
{
    ask(RESPONSE);
    start();
    settle();
    expect(REQUEST);
    reply("HTTP/1.1 2", 10);
    close_peer();
    expect_error(-EPIPE, "the connection was closed before the response was complete");
    expect_counts(1, 0, 0);
}

TEST(idle_for_too_long, open_idle, close_idle)
{
    ask(RESPONSE);
    pass(MK_HTTP_IDLE_MS - 1000);
    ask_again(RESPONSE);
    pass(MK_HTTP_IDLE_MS - 1);
    expect_counts(1, 0, 1);
    pass(1);
    expect_counts(1, 0, 0);
}

TEST(cancelled_on_a_kept_one, open_idle, close_idle)
{
    ask(RESPONSE);
    start();
    mk_http_client_cancel(&client);
    settle();
    assert_int_equal(calls, 0);
    expect_counts(1, 0, 0);
    close_peer();
}

/* ── several ── */

/* At most MK_HTTP_IDLE_MAX are kept; the one that was used first is closed. */
TEST(too_many_of_them, open_idle, close_idle)
{
    struct mk_http_client clients[MK_HTTP_IDLE_MAX + 1] = {0};
    int peers[COUNT(clients)];
    char byte;
    for (size_t i = 0; i < COUNT(clients); i++) {
        mk_http_client_start(&clients[i], &loop, &options, ignore_response);
        accept_peer();
        peers[i] = peer;
    }
    for (size_t i = 0; i < COUNT(clients); i++) {
        assert_int_equal(send(peers[i], RESPONSE, strlen(RESPONSE), 0), strlen(RESPONSE));
        settle();
    }
    expect_counts(COUNT(clients), 0, MK_HTTP_IDLE_MAX);
    while (recv(peers[0], &byte, 1, 0) > 0)
        continue;
    assert_int_equal(recv(peers[0], &byte, 1, 0), 0);
    for (size_t i = 0; i < COUNT(clients); i++)
        close(peers[i]);
    peer = -1;
}

/* Another address, and other settings of a transport, have connections of their own. */
TEST(not_for_another_server, open_idle, close_idle)
{
    const char *why;
    const struct mk_dial_target *first = options.target;
    char text[64];
    ask(RESPONSE);
    int former = peer;
    snprintf(text, sizeof(text), "localhost:%u", (unsigned)first->port);
    assert_int_equal(mk_dial_target_parse(&arena, mk_arena_dup(&arena, mk_str_c(text)), 0, &options.target, &why), 0);
    start();
    mk_http_client_cancel(&client);
    expect_counts(1, 0, 1);
    options.target = first;
    options.settings = (struct mk_transport_client *)&options;
    connect_peer();
    expect_counts(2, 1, 1);
    close(former);
}
