// SPDX-License-Identifier: Apache-2.0
/* Exchanges that a handler takes over: the conditions, bytes in both directions, and the end. */
#include "http/h1_fixture.h"

enum { ECHO_BYTES = 64 };

#include "http/echo.h"

#include <stdio.h>

#define UPGRADE "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n"
#define CONNECT "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n"
#define SWITCHED "HTTP/1.1 101 Switching Protocols\r\n" STAMP "Upgrade: echo\r\nConnection: Upgrade\r\n\r\n"

static struct mk_test_client *start(const char *bytes)
{
    reset_echo();
    open_fixture(answer);
    return mk_test_connect(&w, mk_str_c(bytes));
}

TEST(what_may_be_tunnelled)
{
    static const struct {
        const char *request;
        int result;
    } cases[] = {
        {UPGRADE, 0},
        {CONNECT, 0},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 0},
        {"GET / HTTP/1.0\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", -EINVAL},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nUpgrade: x\r\n\r\n", -EINVAL},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n\r\n", -EINVAL},
        {"POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\nx", -EINVAL},
        {GET, -EINVAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        start(cases[i].request);
        mk_test_settle(&w);
        assert_int_equal(echo.result, cases[i].result);
        assert_int_equal(echo.calls > 0, cases[i].result == 0);
        mk__conn_abort_all(&w.http);
        close_fixture();
    }
}

static void take_over_at_end(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)piece, (void)ctx;
    int err = mk_request_take_over(req, ready, &echo);
    assert_int_equal(err, end ? 0 : -EINVAL);
}

static void read_first(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_header(req, MK_STR("Upgrade"), MK_STR("echo"));
    mk_request_read(req, take_over_at_end, NULL);
}

/* The tunnel begins behind a body that was read to its end, wherever the bytes are split. */
TEST(after_a_body)
{
    static const char *const requests[] = {
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\nbodyearly",
        ("POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\nearly"),
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\nearly",
    };
    for (size_t i = 0; i < COUNT(requests); i++)
        for (size_t at = 1; at < strlen(requests[i]); at++) {
            reset_echo();
            open_fixture(read_first);
            struct mk_test_client *c = mk_test_connect(&w, mk_str(requests[i], at));
            mk_test_settle(&w);
            mk_test_send(c, mk_str_c(requests[i] + at));
            mk_test_settle(&w);
            expect_received(c, SWITCHED "early");
            mk__conn_abort_all(&w.http);
            close_fixture();
        }
}

TEST(echo)
{
    struct mk_test_client *c = start(UPGRADE "early");
    expect_received(c, SWITCHED "early");
    assert_string_equal(mk_test_state(c), "tunnel");
    mk_test_send(c, MK_STR("hello"));
    expect_received(c, "hello");
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_int_equal(echo.ended, 1);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

TEST(connect)
{
    struct mk_test_client *c = start(CONNECT "x");
    expect_received(c, OK "Upgrade: echo\r\n\r\nx"); /* the handler has added the field */
    mk__conn_abort_all(&w.http);
    close_fixture();
}

/* One byte at a time in either direction, and more than fits into any buffer. */
TEST(back_pressure)
{
    struct mk_test_client *c = start(UPGRADE);
    mk_test_settle(&w);
    mk_test_received(c);
    echo.most = 3;
    c->room = 0;
    for (int i = 0; i < 100; i++)
        mk_test_send(c, MK_STR("0123456789"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, "");
    for (int i = 0; i < 1000; i++) {
        mk_test_take(c, 1);
        mk_test_settle(&w);
    }
    struct mk_str all = mk_test_received(c);
    assert_int_equal(all.len, 1000);
    for (size_t i = 0; i < all.len; i++)
        assert_int_equal(all.p[i], '0' + i % 10);
    mk__conn_abort_all(&w.http);
    close_fixture();
}

/* The head cannot be sent at once: the tunnel begins afterwards. */
TEST(the_head_waits)
{
    struct mk_test_client *c = start("");
    c->room = 5;
    mk_test_send(c, MK_STR(UPGRADE "abc"));
    mk_test_settle(&w);
    assert_int_equal(echo.calls, 0);
    for (int i = 0; i < 200; i++) {
        mk_test_take(c, 1);
        mk_test_settle(&w);
    }
    assert_string_equal(mk_test_received(c).p, SWITCHED "abc");
    mk__conn_abort_all(&w.http);
    close_fixture();
}

static void assert_header(struct mk_request *req, const char *name, const char *value)
{
    struct mk_str found = mk_request_header_by_name(req, mk_str_c(name));
    if (!value)
        assert_null(found.p);
    else
        assert_str_equal(found, value);
}

/* While a tunnel lasts, the head has no more bytes than are of use, and memory has the size of them. */
TEST(what_is_kept_of_the_head)
{
    static const char *const requests[] = {
        "GET /a%20b?c HTTP/1.1\r\nConnection: Upgrade\r\nSec-WebSocket-Key: k\r\nhOsT:  h:80 \r\nX-A: one\r\n"
        "upgrade: echo\r\nsec-websocket-protocol: p\r\nX-Empty:\r\nx-a: two\r\nSec-WebSocket: w\r\n\r\n",
        "GET http://h:80/a%20b?c HTTP/1.1\r\nHost: h:80\r\nX-A: one, two\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"
        "X-Empty:\r\nSec-WebSocket: w\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct mk_test_client *c = start(requests[i]);
        expect_received(c, SWITCHED);
        assert_string_equal(mk_test_state(c), "tunnel");
        assert_str_equal(mk_request_method_name(held_req), "GET");
        assert_str_equal(mk_request_path(held_req), "/a b");
        assert_str_equal(mk_request_query(held_req), "c");
        assert_str_equal(mk_request_host(held_req), "h");
        assert_header(held_req, "Host", "h:80");
        assert_header(held_req, "X-A", "one, two");
        assert_header(held_req, "X-Empty", "");
        assert_header(held_req, "Sec-WebSocket", "w");
        assert_header(held_req, "Sec-WebSocket-Key", NULL);
        assert_header(held_req, "Sec-WebSocket-Protocol", NULL);
        assert_header(held_req, "Connection", NULL);
        assert_null(mk_request_header(held_req, MK_HEADER_UPGRADE).p);
        assert_int_equal(mk_request_head_bytes(held_req), strlen(requests[i]));
        mk__conn_abort_all(&w.http);
        close_fixture();
    }
}

TEST(a_long_head_takes_its_own_size)
{
    char request[2048];
    int n = snprintf(request, sizeof(request),
                     "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"
                     "X-A: %0600d\r\n\r\n",
                     0);
    assert_true(n < (int)sizeof(request));
    struct mk_test_client *c = start(request);
    expect_received(c, SWITCHED);
    assert_int_equal(mk_request_header_by_name(held_req, MK_STR("X-A")).len, 600);
    assert_in_range(held_req->arena.bytes, 600, 700);
    mk__conn_abort_all(&w.http);
    close_fixture();
}

TEST(it_may_be_taken_later)
{
    struct mk_test_client *c = start("");
    echo.late = true;
    mk_test_send(c, MK_STR(UPGRADE "x"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handler");
    take(held_req);
    expect_received(c, SWITCHED "x");
    mk__conn_abort_all(&w.http);
    close_fixture();
}

TEST(silence_is_limited)
{
    struct mk_test_client *c = start(UPGRADE);
    mk_test_settle(&w);
    mk_test_pass(&w, 3599999);
    mk_test_send(c, MK_STR("x"));
    mk_test_pass(&w, 3599999);
    assert_string_equal(mk_test_state(c), "tunnel");
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

TEST(a_tunnel_that_is_woken)
{
    struct mk_test_client *c = start(UPGRADE);
    mk_test_settle(&w);
    echo.deaf = true;
    mk_test_send(c, MK_STR("held"));
    mk_test_settle(&w);
    unsigned before = echo.calls;
    mk_test_pass(&w, 1000);
    assert_int_equal(echo.calls, before);
    echo.deaf = false;
    mk_tunnel_wake(held_req);
    mk_test_settle(&w);
    assert_int_equal(echo.calls, before + 1);
    assert_non_null(strstr(mk_test_received(c).p, "held"));
    mk__conn_abort_all(&w.http);
    close_fixture();
}

TEST(it_hears_of_a_drain)
{
    start(UPGRADE);
    mk_test_settle(&w);
    assert_false(echo.events & MK_TUNNEL_DRAINING);
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_true(echo.events & MK_TUNNEL_DRAINING);
    assert_int_equal(w.closed, 0);
    mk_tunnel_end(held_req);
    mk_test_settle(&w);
    assert_int_equal(w.done, 1);
    mk__conn_abort_all(&w.http);
    close_fixture();
}

TEST(ends)
{
    struct mk_test_client *c = start(UPGRADE);
    mk_test_settle(&w);
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();

    c = start(UPGRADE);
    mk_test_settle(&w);
    mk_test_send(c, MK_STR("!"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 1);
    close_fixture();

    c = start(UPGRADE "x");
    mk_test_settle(&w);
    echo.shuts = true;
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_true(c->shut);
    close_fixture();
}
