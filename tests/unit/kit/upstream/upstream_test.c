// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to another server with a protocol of lines: the order of replies, the end of what takes too long, and
 * what happens when the server fails.
 */
#include "core/net/dial_fixture.h"

#include <monkey/kit/upstream.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TIMEOUT_MS = 1000, LINE_BYTES = 32 };

/* A line, and what has become of it. */
struct line {
    struct mk_upstream_call base;
    char bytes[LINE_BYTES], reply[LINE_BYTES], error[MK_UPSTREAM_TEXT_BYTES];
    int err;
    unsigned results, freed;
};

static struct mk_upstream_pool pool;
static struct mk_upstream_options options;
static struct mk_upstream server;
static struct mk_upstream_conn conn;
static struct mk_arena arena;
static struct line hello, lines[64];
static unsigned n_lines, entered, logged, failed, ready;
static char buffer[MK_UPSTREAM_READ_BYTES], rest[4096], last_log[512];
static size_t n_rest;
static int listener, peer; /* peer: the server's end, or -1 */

/* ── the protocol ── */

static struct line *line_of(struct mk_upstream_call *call)
{
    return MK_CONTAINER_OF(call, struct line, base);
}

static void write_line(struct line *line, const char *text)
{
    *line = (struct line){0};
    snprintf(line->bytes, sizeof(line->bytes), "%s\n", text);
    mk_upstream_call_init(&line->base, mk_str_c(line->bytes));
}

static int do_handshake(struct mk_upstream_conn *c)
{
    write_line(&hello, "hello");
    mk_upstream_handshake(c, &hello.base);
    return 0;
}

static void take_line(struct mk_upstream_conn *c, struct mk_str text)
{
    struct mk_upstream_call *call = mk_upstream_first(c);
    if (!call) {
        mk_upstream_fail(c, -EPROTO, "a reply to no call", true);
        return;
    }
    struct line *line = line_of(call);
    mk_upstream_take(c, call);
    mk_upstream_note_reply(c);
    if (!call->has_result)
        snprintf(line->reply, sizeof(line->reply), "%.*s", MK_STR_ARG(text));
    line->results += !call->has_result;
    line->freed++;
    if (line == &hello)
        mk_upstream_accept(c);
}

static void feed(struct mk_upstream_conn *c, const char *bytes, size_t n)
{
    uint64_t serial = c->serial;
    for (size_t i = 0; i < n && c->serial == serial; i++) {
        rest[n_rest++] = bytes[i];
        if (bytes[i] != '\n')
            continue;
        size_t len = n_rest - 1;
        n_rest = 0;
        take_line(c, mk_str(rest, len));
    }
}

static void note_error(struct mk_upstream_conn *c, struct mk_upstream_call *call, int err, const char *text)
{
    struct line *line = line_of(call);
    (void)c;
    line->results++;
    line->err = err;
    snprintf(line->error, sizeof(line->error), "%s", text);
}

static void note_free(struct mk_upstream_conn *c, struct mk_upstream_call *call)
{
    (void)c;
    line_of(call)->freed++;
}

static void note_ready(struct mk_upstream_conn *c)
{
    assert_int_equal(c->state, MK_UPSTREAM_READY);
    ready++;
}

static void drop_rest(struct mk_upstream_conn *c)
{
    (void)c;
    n_rest = 0;
}

static void note_failed(struct mk_upstream_conn *c)
{
    (void)c;
    failed++;
}

#define COMMON \
    .feed = feed, .done = note_error, .free = note_free, .on_ready = note_ready, .on_close = drop_rest, \
    .on_failed = note_failed
static const struct mk_upstream_protocol plain = {COMMON}, with_handshake = {COMMON, .handshake = do_handshake},
                                         lasting = {COMMON, .is_lasting = true}, single = {COMMON, .is_single = true};

/* ── the environment ── */

static void enter(struct mk_upstream_pool *g, void (*fn)(void *data), void *data)
{
    assert_ptr_equal(g, &pool);
    entered++;
    fn(data);
}

static void log_line(struct mk_upstream_pool *g, bool has_failed, const char *text)
{
    assert_ptr_equal(g, &pool);
    logged += has_failed;
    snprintf(last_log, sizeof(last_log), "%s", text);
}

static struct sockaddr_un address_of(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%.90s", mk_test_path("s"));
    return addr;
}

static void start_server(void)
{
    struct sockaddr_un addr = address_of();
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(listener, 8), 0);
}

static void stop_server(void)
{
    close(listener);
    listener = -1;
    unlink(mk_test_path("s"));
}

static void accept_peer(void)
{
    settle();
    peer = accept(listener, NULL, NULL);
    assert_true(peer >= 0);
    settle();
}

static void close_peer(void)
{
    close(peer);
    peer = -1;
    settle();
}

/* Checks what the server has received since the last time. */
static void expect(const char *text)
{
    char bytes[4096];
    settle();
    ssize_t n = recv(peer, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);
    bytes[n > 0 ? n : 0] = '\0';
    assert_string_equal(bytes, text);
}

static void reply(const char *text)
{
    assert_int_equal(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    settle();
}

static struct line *send_line(const char *text)
{
    struct line *line = &lines[n_lines++];
    write_line(line, text);
    line->err = mk_upstream_send(&conn, &line->base);
    return line;
}

static void expect_error(const struct line *line, int err, const char *text)
{
    assert_int_equal(line->results, 1);
    assert_int_equal(line->err, err);
    assert_non_null(strstr(line->error, text));
}

static void expect_reply(const struct line *line, const char *text)
{
    assert_int_equal(line->results, 1);
    assert_int_equal(line->freed, 1);
    assert_int_equal(line->err, 0);
    assert_string_equal(line->reply, text);
}

static int open_all(void **state)
{
    static const struct test_host none[] = {{0}};
    static char text[600];
    const char *error;
    assert_int_equal(mk_test_folder_make(state), 0);
    open_fixture(none);
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    options = (struct mk_upstream_options){.name = "Lines", .connect_timeout_ms = 500, .timeout_ms = TIMEOUT_MS};
    options.timeouts_max = 2;
    options.pending_max = 8;
    options.queue_bytes_max = 1 << 20;
    snprintf(text, sizeof(text), "unix:%s", mk_test_path("s"));
    assert_int_equal(mk_dial_target_parse(&arena, mk_str_c(text), 0, &options.target, &error), 0);
    mk_upstream_pool_init(&pool, &loop, buffer);
    pool.enter = enter;
    pool.log = log_line;
    mk_upstream_init(&server, &pool, &options);
    mk_upstream_conn_init(&conn, &server, &plain);
    n_lines = entered = logged = failed = ready = 0;
    n_rest = 0;
    peer = -1;
    start_server();
    return 0;
}

static int close_all(void **state)
{
    mk_upstream_stop(&conn, true);
    for (unsigned i = 0; i < n_lines; i++)
        assert_true(lines[i].freed == 1 || lines[i].err < 0);
    if (peer >= 0)
        close(peer);
    stop_server();
    mk_arena_release(&arena);
    close_fixture();
    assert_int_equal(mk_test_folder_remove(state), 0);
    return 0;
}

/* Connects, and has one reply. */
static void connect_all(void)
{
    struct line *first = send_line("first");
    accept_peer();
    expect("first\n");
    reply("1\n");
    expect_reply(first, "1");
}

/* ── tests ── */

TEST(calls_of_a_turn_are_one_write, open_all, close_all)
{
    struct line *a = send_line("a"), *b = send_line("b");
    assert_int_equal(conn.state, MK_UPSTREAM_DIALING);
    accept_peer();
    assert_int_equal(ready, 1);
    struct line *c = send_line("c");
    expect("a\nb\nc\n");
    reply("1\n2");
    expect_reply(a, "1");
    assert_int_equal(b->results, 0);
    reply("2\n3\n");
    expect_reply(b, "22");
    expect_reply(c, "3");
    assert_int_equal(conn.n_calls, 0);
    assert_true(entered >= 4);
}

TEST(handshake_calls_come_first, open_all, close_all)
{
    mk_upstream_conn_init(&conn, &server, &with_handshake);
    struct line *a = send_line("a");
    accept_peer();
    expect("hello\n");
    assert_int_equal(conn.state, MK_UPSTREAM_HANDSHAKE);
    assert_int_equal(ready, 0);
    reply("welcome\n");
    expect_reply(&hello, "welcome");
    expect("a\n");
    reply("1\n");
    expect_reply(a, "1");
}

TEST(a_handshake_without_a_reply, open_all, close_all)
{
    options.timeouts_max = 1;
    options.wait_timeout_ms = 60000;
    mk_upstream_conn_init(&conn, &server, &with_handshake);
    send_line("a");
    accept_peer();
    pass(TIMEOUT_MS);
    expect_error(&hello, -ETIMEDOUT, "no reply within 1000 ms");
    assert_int_equal(hello.freed, 1);
    assert_int_equal(failed, 1);
    expect_error(&lines[0], -ETIMEDOUT, "no reply within 1000 ms");
}

TEST(calls_without_a_reply, open_all, close_all)
{
    write_line(&lines[n_lines++], "push");
    lines[0].base.has_reply = false;
    assert_int_equal(mk_upstream_send(&conn, &lines[0].base), 0);
    accept_peer();
    expect("push\n");
    assert_int_equal(lines[0].freed, 1);
    assert_int_equal(lines[0].results, 0);
    reply("1\n");
    assert_int_equal(server.err, -EPROTO);
    assert_non_null(strstr(server.text, "Lines unix:"));
    assert_non_null(strstr(server.text, ": a reply to no call"));
}

TEST(a_late_reply_is_dropped, open_all, close_all)
{
    connect_all();
    struct line *a = send_line("a");
    pass(TIMEOUT_MS - 1);
    assert_int_equal(a->results, 0);
    pass(1);
    expect_error(a, -ETIMEDOUT, "no reply within 1000 ms");
    assert_int_equal(a->freed, 0);
    struct line *b = send_line("b");
    expect("a\nb\n");
    reply("late\n2\n");
    assert_int_equal(a->freed, 1);
    assert_string_equal(a->reply, "");
    expect_reply(b, "2");
    assert_int_equal(failed, 0);
}

TEST(a_server_that_is_silent, open_all, close_all)
{
    connect_all();
    struct line *a = send_line("a");
    pass(TIMEOUT_MS);
    expect_error(a, -ETIMEDOUT, "no reply");
    assert_int_equal(failed, 0);
    struct line *b = send_line("b");
    pass(TIMEOUT_MS); /* two in a row */
    expect_error(b, -ETIMEDOUT, "no reply");
    assert_int_equal(failed, 1);
    assert_int_equal(logged, 1);
    assert_non_null(strstr(last_log, "it does not reply; it is tried again until the server replies"));
    assert_int_equal(conn.state, MK_UPSTREAM_CLOSED);
}

/* Bytes come, but no reply is whole. */
TEST(a_server_that_is_too_slow, open_all, close_all)
{
    options.closes_late = true;
    connect_all();
    struct line *a = send_line("a");
    for (unsigned i = 0; i < 19; i++) {
        pass(TIMEOUT_MS / 10);
        reply("x");
    }
    expect_error(a, -ETIMEDOUT, "no reply");
    assert_int_equal(failed, 0);
    pass(TIMEOUT_MS / 10);
    assert_int_equal(failed, 1);
    assert_int_equal(a->freed, 1);
}

TEST(refused_calls_wait_for_a_while, open_all, close_all)
{
    options.wait_timeout_ms = 300;
    stop_server();
    struct line *a = send_line("a");
    settle();
    assert_int_equal(conn.state, MK_UPSTREAM_BACKOFF);
    assert_int_equal(a->results, 0);
    assert_int_equal(logged, 1);
    unsigned ms = 0; /* the first failure after 300 ms is at 750 at the latest; how long the next delay is, is random */
    for (; ms < 800 && !a->results; ms += 10)
        pass(10);
    expect_error(a, -ENOENT, "Lines unix:");
    assert_int_equal(send_line("b")->err, -ENOENT);
    assert_int_equal(logged, 1);
    start_server();
    pass(1800 - ms); /* nothing waits, and so nothing dials */
    struct line *c = send_line("c");
    accept_peer();
    expect("c\n");
    reply("3\n");
    expect_reply(c, "3");
    assert_non_null(strstr(last_log, ": connected again"));
    assert_int_equal(server.err, 0);
}

TEST(delays_grow, open_all, close_all)
{
    static const unsigned most[] = {50, 100, 200, 400, 800, 1000, 1000};
    options.wait_timeout_ms = options.timeout_ms = 60000;
    stop_server();
    send_line("a");
    for (unsigned i = 0; i < MK_COUNT_OF(most); i++) {
        settle();
        assert_int_equal(conn.state, MK_UPSTREAM_BACKOFF);
        assert_int_equal(failed, i + 1);
        uint64_t delay_ms = server.down_until_ms - now_ms;
        assert_in_range(delay_ms, most[i] / 2, most[i]);
        pass(delay_ms);
    }
}

TEST(calls_that_were_sent_are_lost, open_all, close_all)
{
    options.wait_timeout_ms = 60000;
    connect_all();
    struct line *a = send_line("a");
    settle();
    struct line *b = send_line("b");
    close_peer();
    expect_error(a, -EPIPE, "the connection");
    assert_int_equal(b->results, 0); /* it was not sent */
    pass(50);
    accept_peer();
    expect("b\n");
    reply("2\n");
    expect_reply(b, "2");
}

TEST(an_idle_connection_is_no_failure, open_all, close_all)
{
    connect_all();
    close_peer();
    assert_int_equal(conn.state, MK_UPSTREAM_CLOSED);
    assert_int_equal(failed, 0);
    assert_int_equal(server.failures, 0);
    struct line *a = send_line("a");
    accept_peer();
    expect("a\n");
    reply("1\n");
    expect_reply(a, "1");
}

TEST(a_lost_connection_is_dialed_at_once, open_all, close_all)
{
    options.redials_at_once = true;
    connect_all();
    struct line *a = send_line("a");
    expect("a\n");
    close_peer();
    expect_error(a, -EPIPE, "the server has closed the connection");
    assert_int_equal(server.failures, 0);
    struct line *b = send_line("b");
    assert_int_equal(b->err, 0);
    accept_peer();
    expect("b\n");
    reply("2\n");
    expect_reply(b, "2");
}

TEST(a_lasting_connection_is_made_again, open_all, close_all)
{
    mk_upstream_conn_init(&conn, &server, &lasting);
    mk_upstream_connect(&conn);
    accept_peer();
    assert_int_equal(ready, 1);
    close_peer();
    assert_int_equal(conn.state, MK_UPSTREAM_BACKOFF);
    pass(50);
    assert_int_equal(ready, 2);
}

TEST(a_single_connection_is_not, open_all, close_all)
{
    mk_upstream_conn_init(&conn, &server, &single);
    connect_all();
    struct line *a = send_line("a");
    close_peer();
    expect_error(a, -EPIPE, "");
    assert_int_equal(failed, 1);
    pass(5000);
    assert_int_equal(conn.state, MK_UPSTREAM_CLOSED);
    assert_int_equal(ready, 1);
}

TEST(limits, open_all, close_all)
{
    options.queue_bytes_max = 20;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(send_line("a")->err, 0);
    assert_int_equal(send_line("a")->err, -EBUSY);
    assert_non_null(strstr(server.text, "8 calls"));
    accept_peer();
    reply("1\n1\n1\n1\n1\n1\n1\n1\n");
    assert_int_equal(send_line("twenty bytes or more")->err, -EBUSY);
    assert_int_equal(send_line("less than that")->err, 0);
}

/* Another connection works: the server has not failed. */
TEST(several_connections, open_all, close_all)
{
    struct mk_upstream_conn other;
    connect_all();
    int first = peer;
    mk_upstream_conn_init(&other, &server, &plain);
    mk_upstream_connect(&other);
    accept_peer();
    assert_int_equal(server.n_ready, 2);
    struct line *lost = &lines[n_lines++];
    write_line(lost, "lost");
    assert_int_equal(mk_upstream_send(&other, &lost->base), 0);
    expect("lost\n");
    close_peer();
    expect_error(lost, -EPIPE, "the server has closed the connection");
    assert_int_equal(server.n_ready, 1);
    assert_int_equal(server.failures, 0);
    assert_true(other.retry_ms > now_ms);
    assert_int_equal(logged, 0);
    peer = first;
    struct line *a = send_line("a");
    expect("a\n");
    reply("1\n");
    expect_reply(a, "1");
    mk_upstream_stop(&other, true);
}

TEST(a_stop_cancels_calls, open_all, close_all)
{
    connect_all();
    struct line *sent = send_line("a");
    settle();
    struct line *waiting = send_line("b");
    mk_upstream_stop(&conn, true);
    expect_error(sent, -ECANCELED, "the service ends");
    expect_error(waiting, -ECANCELED, "the service ends");
    assert_int_equal(sent->freed + waiting->freed, 2);
    assert_int_equal(conn.n_calls, 0);
}

/* The peer reads nothing: what is written partly is resumed at its byte. */
TEST(a_full_socket, open_all, close_all)
{
    static char big[1 << 20];
    struct line *line = &lines[n_lines++];
    options.queue_bytes_max = sizeof(big);
    connect_all();
    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = '\n';
    *line = (struct line){0};
    mk_upstream_call_init(&line->base, mk_str(big, sizeof(big)));
    assert_int_equal(mk_upstream_send(&conn, &line->base), 0);
    settle();
    assert_true(conn.written > 0 && conn.written < sizeof(big));
    size_t received = 0;
    while (received < sizeof(big)) {
        char bytes[65536];
        ssize_t n = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT);
        assert_true(n > 0);
        received += (size_t)n;
        settle();
    }
    assert_int_equal(received, sizeof(big));
    reply("1\n");
    expect_reply(line, "1");
}

TEST(events_that_are_refused, open_all, close_all)
{
    options.wait_timeout_ms = 60000;
    refuses_events = true;
    struct line *a = send_line("a");
    settle();
    assert_int_equal(failed, 1);
    assert_int_equal(server.err, -ENOSPC);
    refuses_events = false;
    pass(50);
    accept_peer(); /* that one was closed */
    close(peer);
    accept_peer();
    expect("a\n");
    reply("1\n");
    expect_reply(a, "1");
}
