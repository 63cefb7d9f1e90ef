// SPDX-License-Identifier: Apache-2.0
/* What a server with `Type Forward` gets of the headers of a request. The subject needs a server: end-to-end tests. */
#include "plugins/auth/forward_request.h"

#include "harness.h"
#include "testing.h"

#include <errno.h>

static struct mk_test_fixture w;
static const struct forward_conf conf = {
    .to = {.authority = MK_STR("auth:9000"), .path = MK_STR("/verify?x")},
    .copy = {{MK_STR("Remote-User"), MK_STR("Cookie")}, 2},
    .cache_by = {{MK_STR("Cookie"), MK_STR("X-Key")}, 2},
};

static void ask(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture), const char *bytes)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
    mk_test_connect(&w, mk_str_c(bytes));
    mk_test_settle(&w);
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

#define GET(lines) "GET / HTTP/1.1\r\nHost: example.org\r\n" lines "\r\n"
#define SUBJECT "X-Forwarded-Method: GET\r\n"

static void write_head(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_buf head;
    (void)fixture;
    mk_buf_init(&head, FORWARD_HEAD_BYTES_MAX);
    forward_write_head(&head, req, &conf, MK_STR(SUBJECT), 1);
    assert_str_equal(mk_buf_str(&head),
                     "GET /verify?x HTTP/1.1\r\nHost: auth:9000\r\nCookie: a=b\r\nX-Key: 1\r\n"
                     "x_key: 2\r\n" SUBJECT "Via: 1.1 monkey-0000000000000001\r\nX-Request-Id: id7\r\n\r\n");
    mk_buf_release(&head);
    mk_response_end(req);
}

TEST(head)
{
    ask(write_head, GET("Cookie: a=b\r\nremote_user: root\r\nRange: "
                        "bytes=0-1\r\nX_Forwarded_Anything: x\r\nx-original-url: /a\r\nX-Key: 1\r\n"
                        "Content-Length: 0\r\nx_key: 2\r\nIf_Match: *\r\nConnection: x-gone, TE\r\nX-Gone: 1\r\n"
                        "TE: trailers\r\nX-Request-Id: id7\r\nExpect: 100-continue\r\nKeep-Alive: 1\r\n"));
}

static void write_deciding(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_buf text;
    (void)fixture;
    mk_buf_init(&text, FORWARD_SUBJECT_BYTES_MAX);
    forward_write_deciding(&text, req, &conf);
    assert_str_equal(mk_buf_str(&text), "x_key: 1\r\nCOOKIE: a=b\r\nX-Key: \r\n");
    mk_buf_release(&text);
    mk_response_end(req);
}

TEST(deciding)
{
    ask(write_deciding, GET("x_key: 1\r\nCOOKIE: a=b\r\nAuthorization: x\r\nX-Key:\r\nCookies: 1\r\n"));
}

static bool is_valid;

static void check_connection(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    is_valid = forward_is_connection_valid(req, &conf);
    mk_response_end(req);
}

TEST(connection)
{
    static const struct {
        const char *bytes;
        bool is_valid;
    } rows[] = {
        {GET(""), true},
        {GET("Connection: close, x-other\r\nConnection: remote\r\n"), true},
        {GET("Connection: remote-user\r\n"), false},
        {GET("Connection: close\r\nConnection: x,REMOTE_USER\r\n"), false},
        {GET("Connection: cookie\r\n"), false},
        {GET("Connection: x_key, close\r\n"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ask(check_connection, rows[i].bytes);
        assert_int_equal(is_valid, rows[i].is_valid);
    }
}
