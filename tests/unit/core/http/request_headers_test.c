// SPDX-License-Identifier: Apache-2.0
/* Headers of a request that an access hook replaces. */
#include "testing.h"

#include "harness.h"

#include "http/request.h"

#include <errno.h>
#include <stdio.h>

static struct mk_test_fixture w;

static void begin_request(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture), const char *bytes)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
    mk_test_connect(&w, mk_str_c(bytes));
    mk_test_settle(&w);
    assert_int_equal(w.requests, 1);
}

static void ask(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture), const char *bytes)
{
    begin_request(handler, bytes);
    mk_test_fixture_close(&w);
}

#define HEADER(name, value) \
    { \
        MK_STR(name), MK_STR(value) \
    }
#define NO_HEADER(name) \
    { \
        MK_STR(name), MK_STR_NONE \
    }

static unsigned count_headers(const struct mk_request *req)
{
    struct mk_str name, value;
    unsigned n = 0;
    while (mk_request_header_at(req, n, &name, &value))
        n++;
    return n;
}

static void replace(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char value[] = "ada";
    struct mk_str joined = mk_request_header_by_name(req, MK_STR("remote-user"));
    const struct mk_header_field headers[] = {{MK_STR("Remote-User"), mk_str_c(value)},
                                              HEADER("Cookie", "a=b"),
                                              NO_HEADER("X-Gone"),
                                              HEADER("X-Empty", "")};
    (void)fixture;
    assert_str_equal(joined, "eve, mallory");
    assert_int_equal(mk_request_replace_headers(req, headers, MK_COUNT_OF(headers)), 0);
    memset(value, '!', 3);
    assert_str_equal(joined, "eve, mallory");
    assert_str_equal(mk_request_header_by_name(req, MK_STR("remote-USER")), "ada");
    assert_null(mk_request_header_by_name(req, MK_STR("remote_user")).p);
    assert_null(mk_request_header_by_name(req, MK_STR("x_gone")).p);
    assert_null(mk_request_header_by_name(req, MK_STR("x-gone")).p);
    assert_str_equal(mk_request_header(req, MK_HEADER_COOKIE), "a=b");
    assert_str_equal(mk_request_header_by_name(req, MK_STR("X-Empty")), "");
    assert_str_equal(mk_request_header(req, MK_HEADER_HOST), "h:80");
    assert_str_equal(mk_request_header(req, MK_HEADER_ACCEPT), "x, y");
    assert_int_equal(count_headers(req), 6);
    assert_str_equal(mk_request_host(req), "h");
    assert_str_equal(mk_request_target(req), "/a?b");
    assert_str_equal(mk_request_query(req), "b");
    mk_response_end(req);
}

#define HEAD \
    "GET /a?b HTTP/1.1\r\nHost: h:80\r\nRemote-User: eve\r\nX_Gone: 1\r\nremote_user: x\r\nAccept: x\r\n" \
    "Cookie: c=d\r\nREMOTE-USER: mallory\r\nx-gone: 2\r\nAccept: y\r\n\r\n"

TEST(headers)
{
    ask(replace, HEAD);
}

static void replace_again(struct mk_request *req, struct mk_test_fixture *fixture)
{
    const struct mk_header_field first[] = {HEADER("Remote-User", "ada"), HEADER("Range", "bytes=0-1")};
    const struct mk_header_field second[] = {HEADER("Remote-User", "bob"), HEADER("X-Gone", "back")};
    const struct mk_header_field third[] = {NO_HEADER("Range"), NO_HEADER("Accept")};
    (void)fixture;
    assert_null(mk_request_header(req, MK_HEADER_RANGE).p);
    assert_int_equal(mk_request_replace_headers(req, first, 2), 0);
    assert_str_equal(mk_request_header(req, MK_HEADER_RANGE), "bytes=0-1");
    assert_int_equal(mk_request_replace_headers(req, second, 2), 0);
    assert_str_equal(mk_request_header_by_name(req, MK_STR("remote-user")), "bob");
    assert_str_equal(mk_request_header_by_name(req, MK_STR("x-gone")), "back");
    assert_str_equal(mk_request_header(req, MK_HEADER_RANGE), "bytes=0-1");
    assert_int_equal(mk_request_replace_headers(req, third, 2), 0);
    assert_null(mk_request_header(req, MK_HEADER_RANGE).p);
    assert_null(mk_request_header(req, MK_HEADER_ACCEPT).p);
    assert_str_equal(mk_request_header_by_name(req, MK_STR("remote-user")), "bob");
    assert_int_equal(count_headers(req), 4);
    mk_response_end(req);
}

TEST(headers_are_replaced_again)
{
    ask(replace_again, HEAD);
}

static void refuse(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static const struct mk_header_field wrong[] = {
        HEADER("Host", "x"),      HEADER("content_length", "1"),
        NO_HEADER("Connection"),  HEADER("", "x"),
        HEADER("a b", "x"),       HEADER("a:b", "x"),
        HEADER("a", "x\r\nb: y"), HEADER("a", "x\n"),
        HEADER("a\r\nb: y", "x"), HEADER("a", "x\r\n\r\n"),
        HEADER("a", "\x7f"),      HEADER("Upgrade", "x"),
    };
    (void)fixture;
    for (unsigned i = 0; i < MK_COUNT_OF(wrong); i++) {
        const struct mk_header_field headers[] = {HEADER("Remote-User", "ada"), wrong[i]};
        assert_int_equal(mk_request_replace_headers(req, headers, 2), -EINVAL);
    }
    assert_str_equal(mk_request_header_by_name(req, MK_STR("remote-user")), "eve, mallory");
    assert_int_equal(count_headers(req), 9);
    mk_response_end(req);
}

TEST(wrong_headers)
{
    ask(refuse, HEAD);
}

static void exceed(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static char value[65000];
    const struct mk_header_field header = {MK_STR("X-Long"), mk_str(value, sizeof(value))};
    const struct mk_header_field small = HEADER("X-Small", "1"), none = NO_HEADER("X-None");
    (void)fixture;
    memset(value, 'a', sizeof(value));
    assert_int_equal(mk_request_replace_headers(req, &header, 1), 0);
    assert_int_equal(mk_request_header_by_name(req, MK_STR("x-long")).len, sizeof(value));
    assert_int_equal(mk_request_replace_headers(req, &header, 1), -ENOBUFS);
    assert_int_equal(mk_request_replace_headers(req, &none, 1), 0); /* there is nothing to do */
    assert_int_equal(mk_request_header_by_name(req, MK_STR("x-long")).len, sizeof(value));
    mk_test_fill_arena(req);
    mk__alloc_countdown = 0;
    assert_int_equal(mk_request_replace_headers(req, &small, 1), -ENOMEM);
    mk__alloc_countdown = -1;
    assert_null(mk_request_header_by_name(req, MK_STR("x-small")).p);
    mk_response_end(req);
}

TEST(limits)
{
    ask(exceed, HEAD);
}

/* The same, in an exchange that waits: the head is in the arena already. */
static struct mk_request *waiting;

static void wait_for_test(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    waiting = req;
}

TEST(in_a_later_turn)
{
    begin_request(wait_for_test, HEAD);
    replace(waiting, &w);
    mk_test_settle(&w);
    mk_test_fixture_close(&w);
}

TEST(names)
{
    assert_true(mk_header_same_name(MK_STR("Remote-User"), MK_STR("rEMOTE_uSER")));
    assert_true(mk_header_same_name(MK_STR(""), MK_STR("")));
    assert_false(mk_header_same_name(MK_STR("Remote-User"), MK_STR("RemoteUser")));
    assert_false(mk_header_same_name(MK_STR("Remote-User"), MK_STR("Remote-User1")));
    assert_true(mk_request_header_reserved(MK_STR("transfer_Encoding")));
    assert_false(mk_request_header_reserved(MK_STR("Authorization")));
}
