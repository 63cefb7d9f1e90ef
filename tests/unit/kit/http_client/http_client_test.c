// SPDX-License-Identifier: Apache-2.0
/*
 * One request to a server and its response, on a clock of the test's and with a server in the test: whole and in
 * pieces, cut, above limits, slow and malformed, cancelled in each state, and with each allocation failing.
 */
#include <monkey/kit/fastcgi.h>

#include "http_client_fixture.h"

/* ── responses ── */

TEST(a_response, open_all, close_all)
{
    ask(RESPONSE);
    expect_body("hello", true);
    assert_int_equal(n_fields, 2);
    assert_string_equal(server_field, "test");
    assert_int_equal(recv(peer, body, 1, 0), 0); /* closed */
}

static const struct {
    const char *response, *body;
    bool ends, whole;
} bodies[] = {
    {RESPONSE, "hello", false, true},
    {"HTTP/1.1 200\r\n\r\nhello", "hello", true, true},
    {"HTTP/1.0 200 OK\r\nConnection: x\r\n\r\n", "", true, true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", false, true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nA: b\r\n\r\n", "hello",
     false, true},
    {"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" RESPONSE, "hello", false, true},
};

TEST(bodies, open_all, close_all)
{
    for (size_t i = 0; i < COUNT(bodies); i++) {
        ask(bodies[i].response);
        assert_int_equal(calls, !bodies[i].ends);
        close_peer();
        expect_body(bodies[i].body, bodies[i].whole);
    }
}

TEST(bodies_byte_by_byte, open_all, close_all)
{
    for (size_t i = 0; i < COUNT(bodies); i++) {
        connect_peer();
        expect(REQUEST);
        for (const char *at = bodies[i].response; *at; at++) {
            assert_int_equal(calls, 0);
            reply(at, 1);
        }
        close_peer();
        expect_body(bodies[i].body, bodies[i].whole);
    }
}

TEST(a_body_of_the_request, open_all, close_all)
{
    options.head = MK_STR("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n");
    options.body = MK_STR("abc");
    connect_peer();
    expect("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("hello", true);
}

/* More than the sockets hold: the rest is sent when the server reads. */
TEST(a_large_request, open_all, close_all)
{
    enum { BYTES = 8 << 20 };
    char *large = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t come = 0, wanted = options.head.len + BYTES;
    options.body = mk_str(large, BYTES);
    connect_peer();
    while (come < wanted) {
        char chunk[65536];
        ssize_t n = recv(peer, chunk, sizeof(chunk), 0);
        come += n > 0 ? (size_t)n : 0;
        settle();
    }
    assert_int_equal(come, wanted);
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("hello", true);
    munmap(large, BYTES);
}

TEST(a_response_to_head, open_all, close_all)
{
    options.head = MK_STR("HEAD / HTTP/1.1\r\n\r\n");
    connect_peer();
    expect("HEAD / HTTP/1.1\r\n\r\n");
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("", true);
}

/* The exchange ends with the head. */
TEST(a_body_that_is_not_wanted, open_all, close_all)
{
    options.body_bytes_max = 0;
    ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nthat is not chunked");
    expect_body("", false);
}

TEST(a_body_above_its_limit, open_all, close_all)
{
    options.body_bytes_max = 3;
    ask("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\nhello");
    expect_body("hel", false);
    close_peer();
    connect_peer();
    const char *pieces[] = {"HTTP/1.1 200 OK\r\n\r\nh", "e", "l"};
    for (size_t i = 0; i < COUNT(pieces); i++) {
        assert_int_equal(calls, 0);
        reply(pieces[i], 1 + (i ? 0 : strlen(pieces[0]) - 1));
    }
    expect_body("hel", false);
}

TEST(without_a_request, open_all, close_all)
{
    options.head = MK_STR("");
    connect_peer();
    assert_int_equal(calls, 1);
    assert_int_equal(result, 0);
    assert_int_equal(status, 0);
    expect("");
}

static void start_again(struct mk_http_client *c, const struct mk_http_response *r)
{
    assert_int_equal(r->err, -EINVAL);
    calls++;
    mk_http_client_start(c, &loop, &options, note_response);
    assert_string_equal(r->error,
                        "the response is malformed: line 1 of its head, \"?\": it is no status line of HTTP/1");
}

TEST(started_again_in_the_callback, open_all, close_all)
{
    connect_peer();
    client.fn = start_again;
    reply("?\r\n", 3);
    close_peer();
    assert_int_equal(calls, 1);
    accept_peer();
    calls = 0;
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("hello", true);
}

/* ── another protocol ── */

#define OUT(text, length) "\1\6\0\1\0" length "\0\0" text
#define OOPS "\1\7\0\1\0\4\0\0oops"
#define END "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"
#define PONG OUT("A: b\n\n", "\6") OOPS OUT("pong", "\4")

static void connect_fastcgi(void)
{
    static struct mk_fastcgi_response state;
    state = (struct mk_fastcgi_response){0};
    options.codec = &mk_fastcgi_codec;
    options.codec_state = &state;
    connect_peer();
    expect(REQUEST);
}

TEST(a_response_of_fastcgi, open_all, close_all)
{
    static const char all[] = PONG END;
    for (size_t size = 1; size < sizeof(all); size += 7) {
        connect_fastcgi();
        for (size_t at = 0; at + 1 < sizeof(all); at += size) {
            assert_int_equal(calls, 0);
            reply(all + at, sizeof(all) - 1 - at < size ? sizeof(all) - 1 - at : size);
        }
        expect_body("pong", true);
        close_peer();
    }
    options.body_bytes_max = 0;
    connect_fastcgi();
    reply(all, sizeof(OUT("A: b\n\n", "\6")) - 1);
    expect_body("", false);
}

TEST(failures_of_fastcgi, open_all, close_all)
{
    static const char overloaded[] = "\1\3\0\1\0\10\0\0\0\0\0\0\2\0\0\0";
    connect_fastcgi();
    reply(overloaded, sizeof(overloaded) - 1);
    expect_error(-EUSERS, "the server is overloaded");
    connect_fastcgi();
    reply(END, sizeof(END) - 1); /* without a head */
    expect_error(-EPIPE, "the connection was closed before the response was complete");
    connect_fastcgi();
    reply(PONG, sizeof(PONG) - 1);
    close_peer();
    expect_error(-EPIPE, "the connection was closed before the response was complete");
    connect_fastcgi();
    reply("HTTP/1.1 400 Bad\r\n", 18);
    expect_error(-EINVAL, "the response is malformed");
}

/* Error output that does not end may not keep the loop. */
TEST(too_much_around_a_response, open_all, close_all)
{
    static char record[8 + 65528] = "\1\7\0\1\377\370";
    connect_fastcgi();
    for (unsigned i = 0; i < 17 && !calls; i++)
        for (size_t at = 0; at < sizeof(record) && !calls; at += sizeof(record) / 8)
            reply(record + at, sizeof(record) / 8);
    expect_error(-EFBIG, "the server sends more than the response");
}

/* ── failures ── */

TEST(malformed_responses, open_all, close_all)
{
    static const char *const rows[][2] = {
        {"SSH-2.0-OpenSSH_9.2\r\n", "line 1 of its head, \"SSH-2.0-OpenSSH_9.2\": it is no status line of HTTP/1"},
        {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
         "line 2 of its head, \"A b: c\": its name is empty, or has a byte that no name has"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
         "line 3 of its head, \"Content-Length: 2\": it has a Content-Length before"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", "the size of a chunk is malformed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[200];
        snprintf(text, sizeof(text), "the response is malformed: %s", rows[i][1]);
        ask(rows[i][0]);
        expect_error(-EINVAL, text);
    }
    ask("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    expect_error(-EPROTO, "the response switches to another protocol");
}

TEST(limits_of_the_head, open_all, close_all)
{
    char line[] = "HTTP/1.1 100 Continue\r\n\r\n", text[1100];
    memset(text, 'a', sizeof(text));
    connect_peer();
    reply("HTTP/1.1 200 OK\r\nA: ", 20);
    reply(text, 980);
    expect_error(-EMSGSIZE, "the head of the response is too long");
    ask("HTTP/1.1 200 OK\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\n\r\n");
    expect_error(-EMSGSIZE, "the head of the response is too long");
    connect_peer();
    for (int i = 0; i < 17; i++) {
        assert_int_equal(calls, 0);
        reply(line, strlen(line));
    }
    expect_error(-ELOOP, "the server sends too many interim responses");
}

TEST(a_connection_that_ends, open_all, close_all)
{
    static const char *const beginnings[] = {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"};
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        ask(beginnings[i]);
        close_peer();
        expect_error(-EPIPE, "the connection was closed before the response was complete");
    }
    connect_peer(); /* the request is not read */
    close_peer();
    expect_error(-ECONNRESET, "the connection was reset before the response was complete");
    assert_true(is_connected);
}

TEST(refused, open_all, close_all)
{
    close(listener);
    listener = -1;
    start();
    settle();
    expect_error(-ECONNREFUSED, "Connection refused");
    assert_false(is_connected);
}

TEST(timeouts, open_all, close_all)
{
    static const struct {
        const char *response, *error;
    } rows[] = {
        {"", "no response in 2s"},
        {"HTTP/1.1 200 OK\r\n", "no response in 2s"},
        {"HTTP/1.1 200 OK\r\n\r\n", "no whole response in 2s"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        connect_peer();
        uint64_t began = now_ms;
        for (const char *at = rows[i].response; *at; at++) { /* bytes that come do not move the end */
            reply(at, 1);
            pass(10);
        }
        pass(began + TIMEOUT_MS - 1 - now_ms);
        assert_int_equal(calls, 0);
        pass(1);
        expect_error(-ETIMEDOUT, rows[i].error);
    }
    options.timeout_ms = 1500;
    options.body = mk_str(mmap(NULL, 8 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 8 << 20);
    connect_peer();
    pass(1500);
    expect_error(-ETIMEDOUT, "the request was not taken in 1500ms");
    assert_true(is_connected);
    munmap((void *)(uintptr_t)options.body.p, options.body.len);
}

/* The name is not resolved in time. */
TEST(a_dial_without_an_end, open_all, close_all)
{
    const char *why;
    gated = true;
    assert_int_equal(mk_dial_target_parse(&arena, MK_STR("slow.test:80"), 0, &options.target, &why), 0);
    start();
    pass(TIMEOUT_MS);
    gated = false;
    sem_post(&gate);
    expect_error(-ETIMEDOUT, "no connection in 2s");
    assert_false(is_connected);
}

/* A dial to a Unix socket needs no event. */
TEST(a_loop_that_cannot_watch, open_all, close_all)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char text[sizeof(addr.sun_path) + 8];
    const char *why;
    assert_int_equal(mk_test_folder_make(state), 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%.90s", mk_test_path("s"));
    snprintf(text, sizeof(text), "unix:%s", addr.sun_path);
    assert_int_equal(mk_dial_target_parse(&arena, mk_arena_dup(&arena, mk_str_c(text)), 0, &options.target, &why), 0);
    close(listener);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(listener, 8), 0);
    refuses_events = true;
    start();
    settle();
    expect_error(-ENOSPC, "No space left on device");
    assert_int_equal(mk_test_folder_remove(state), 0);
}

/* ── transports ── */

static unsigned handshakes, notified, closed;
static int handshake_result, connect_result;

static int connect_test(struct mk_io *io, struct mk_worker *worker, struct mk_transport_client *settings)
{
    (void)worker;
    assert_ptr_equal(settings, &handshakes);
    assert_true(io->fd >= 0);
    return connect_result;
}

static int do_handshake(struct mk_io *io)
{
    (void)io;
    handshakes++;
    return handshake_result;
}

static ssize_t read_test(struct mk_io *io, void *to, size_t size)
{
    return mk_transport_plain.read(io, to, size);
}

static ssize_t write_test(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    return mk_transport_plain.write(io, vec, n, flags);
}

static void notify(struct mk_io *io)
{
    (void)io;
    notified++;
}

static void close_test(struct mk_io *io)
{
    closed++;
    close(io->fd);
}

static const char *describe(const struct mk_io *io, int err, struct mk_buf *out)
{
    assert_true(io->fd >= 0);
    mk_buf_addf(out, "the transport fails: %d", err);
    return "error";
}

static const struct mk_transport transport = {.name = "test",
                                              .connect = connect_test,
                                              .handshake = do_handshake,
                                              .read = read_test,
                                              .write = write_test,
                                              .close_notify = notify,
                                              .close = close_test,
                                              .describe_error = describe};

static int open_transport(void **state)
{
    open_all(state);
    options.transport = &transport;
    options.settings = (struct mk_transport_client *)(void *)&handshakes;
    handshakes = notified = closed = 0;
    handshake_result = connect_result = 0;
    return 0;
}

TEST(a_handshake, open_transport, close_all)
{
    handshake_result = -EAGAIN;
    connect_peer();
    expect("");
    handshake_result = 0;
    reply(RESPONSE, strlen(RESPONSE));
    expect_body("hello", true);
    assert_true(handshakes >= 2);
    assert_int_equal(notified, 1);
    assert_int_equal(closed, 1);
}

TEST(a_handshake_that_fails, open_transport, close_all)
{
    handshake_result = -EPROTO;
    connect_peer();
    expect_error(-EPROTO, "the transport fails: -71");
    assert_false(is_connected);
    assert_int_equal(closed, 1);
    connect_result = -ENOMEM;
    connect_peer();
    expect_error(-ENOMEM, "the transport fails: -12");
    assert_false(is_connected);
    assert_int_equal(closed, 2);
    assert_int_equal(notified, 0);
}

TEST(a_handshake_that_takes_too_long, open_transport, close_all)
{
    handshake_result = -EINPROGRESS;
    connect_peer();
    pass(TIMEOUT_MS);
    expect_error(-ETIMEDOUT, "no TLS handshake in 2s");
    assert_false(is_connected);
    assert_int_equal(closed, 1);
}

/* Errors of the response are not those of the transport. */
TEST(a_malformed_response_of_a_transport, open_transport, close_all)
{
    connect_peer();
    reply("?\r\n", 3);
    expect_error(-EINVAL, "the response is malformed: line 1 of its head, \"?\": it is no status line of HTTP/1");
}

/* ── cancelled ── */

TEST(cancelled_in_each_state, open_transport, close_all)
{
    static const char *const beginnings[] = {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\nhel"};
    mk_http_client_cancel(&client); /* was never started */
    start();
    mk_http_client_cancel(&client);
    settle();
    handshake_result = -EAGAIN;
    connect_peer();
    mk_http_client_cancel(&client);
    close_peer();
    handshake_result = 0;
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        connect_peer();
        reply(beginnings[i], strlen(beginnings[i]));
        mk_http_client_cancel(&client);
        mk_http_client_cancel(&client);
        close_peer();
    }
    pass(2 * TIMEOUT_MS);
    assert_int_equal(calls, 0);
    assert_int_equal(closed, 4);
}

TEST(cancelled_when_the_loop_has_ended, open_transport, close_all)
{
    connect_peer();
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    mk_http_client_cancel(&client);
    assert_int_equal(closed, 1);
    assert_int_equal(mk__loop_open(&loop, &test_poller, &test_clock, NULL), 0);
    assert_int_equal(mk__resolver_open(&loop, look_up), 0);
}

/* ── memory ── */

static int run_once(void *ctx)
{
    (void)ctx;
    connect_peer();
    if (!calls)
        reply(RESPONSE, strlen(RESPONSE));
    close(peer);
    peer = -1;
    settle();
    assert_int_equal(calls, 1);
    if (result < 0)
        assert_string_equal(error_text, "there is no memory for the response");
    return result;
}

TEST(each_allocation_fails, open_all, close_all)
{
    assert_int_equal(mk_test_failing_allocs(run_once, NULL), 3); /* connection, fields, and what is read */
}
