// SPDX-License-Identifier: Apache-2.0
/* An exchange as a handler sees it: accessors, and bodies that are collected. */
#include "testing.h"

#include "harness.h"

#include <errno.h>
#include <stdio.h>

static struct mk_test_fixture w;

static void open_fixture(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture))
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
}

static struct mk_test_client *ask(const char *bytes)
{
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(bytes));
    mk_test_settle(&w);
    return c;
}

/* ── accessors ── */

static void look(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str name, value;
    assert_int_equal(mk_request_method(req), MK_PUT);
    assert_str_equal(mk_request_method_name(req), "PUT");
    assert_str_equal(mk_request_target(req), "/a/../b%20c//d?e=%20f");
    assert_str_equal(mk_request_path(req), "/b c/d");
    assert_int_equal(mk_request_path(req).p[6], '\0');
    assert_str_equal(mk_request_query(req), "e=%20f");
    assert_str_equal(mk_request_host(req), "Example.ORG");
    assert_int_equal(mk_request_minor(req), 1);
    assert_ptr_equal(mk_request_loop(req), &fixture->loop);
    assert_str_equal(mk_request_mime(req, MK_STR("x.html")), "text/plain");
    assert_str_equal(mk_request_header(req, MK_HEADER_ACCEPT), "a, b,c, ");
    assert_null(mk_request_header(req, MK_HEADER_RANGE).p);
    assert_null(mk_request_header(req, MK_HEADER_OTHER).p);
    assert_str_equal(mk_request_header_by_name(req, MK_STR("x-OWN")), "1, 2");
    assert_str_equal(mk_request_header_by_name(req, MK_STR("accept")), "a, b,c, "); /* by name as well */
    assert_null(mk_request_header_by_name(req, MK_STR("x-ow")).p);
    assert_true(mk_request_header_at(req, 0, &name, &value));
    assert_str_equal(name, "Host");
    assert_str_equal(value, "Example.ORG:80");
    assert_true(mk_request_header_at(req, 5, &name, &value));
    assert_str_equal(name, "Accept");
    assert_str_equal(value, "");
    assert_false(mk_request_header_at(req, 6, &name, &value));
    mk_response_end(req);
}

TEST(accessors)
{
    open_fixture(look);
    struct mk_test_client *c = ask("PUT /a/../b%20c//d?e=%20f HTTP/1.1\r\nHost: Example.ORG:80\r\nAccept: a\r\n"
                                   "X-Own: 1\r\naccept: b,c\r\nx-own: 2\r\nAccept:\r\n\r\n");
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

static void look_at_little(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_request_method(req), MK_OPTIONS);
    assert_str_equal(mk_request_path(req), mk_request_minor(req) ? "*" : "/");
    assert_null(mk_request_query(req).p);
    assert_str_equal(mk_request_host(req), mk_request_minor(req) ? "h" : "");
    mk_response_end(req);
}

TEST(what_is_not_there)
{
    open_fixture(look_at_little);
    ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    ask("OPTIONS / HTTP/1.0\r\n\r\n");
    assert_int_equal(w.requests, 2);
    mk_test_fixture_close(&w);
}

static void look_at_root(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_str_equal(mk_request_path(req), "/");
    assert_str_equal(mk_request_host(req), "[::1]");
    assert_str_equal(mk_request_query(req), "");
    mk_response_end(req);
}

TEST(an_absolute_target)
{
    open_fixture(look_at_root);
    ask("GET http://[::1]:80? HTTP/1.1\r\nHost: other\r\n\r\n");
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

/* Asked for again and again, as by a handler that reads one cookie after the other. */
static void look_for_many_lines(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str cookies = mk_request_header(req, MK_HEADER_COOKIE), own;
    size_t bytes = fixture->account.bytes;
    assert_int_equal(cookies.len, 10 * 202 - 2);
    assert_memory_equal(cookies.p + 200, "; 00", 4);
    for (unsigned i = 0; i < 1000; i++) {
        assert_ptr_equal(mk_request_header(req, MK_HEADER_COOKIE).p, cookies.p);
        own = mk_request_header_by_name(req, MK_STR("x-own"));
        assert_str_equal(own, "1, , 3");
        assert_ptr_equal(mk_request_header_by_name(req, MK_STR("X-Own")).p, own.p);
    }
    assert_in_range(fixture->account.bytes, bytes, bytes + 4096);
    mk_response_end(req);
}

TEST(lines_are_joined_once)
{
    char text[4096];
    struct mk_buf head;
    mk_buf_init_fixed(&head, text, sizeof(text));
    mk_buf_addf(&head, "GET / HTTP/1.1\r\nHost: h\r\nX-Own: 1\r\n");
    for (unsigned i = 0; i < 10; i++)
        mk_buf_addf(&head, "Cookie: %0200d\r\n", 0);
    mk_buf_addf(&head, "x-own:\r\nX-OWN: 3\r\n\r\n");
    open_fixture(look_for_many_lines);
    ask(mk_buf_cstr(&head));
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

static const char *slash_form; /* NULL: without memory */

static void look_for_slash_form(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk__alloc_countdown = slash_form ? -1 : 0;
    struct mk_str found = mk_request_add_slash(req);
    mk__alloc_countdown = -1;
    if (slash_form)
        assert_str_equal(found, slash_form);
    else
        assert_null(found.p);
    mk_response_end(req);
}

TEST(a_slash_is_added)
{
    static const struct {
        const char *target, *expected;
    } cases[] = {
        {"/a", "/a/"},
        {"/", "//"},
        {"/a?", "/a/?"},
        {"/a%20b%c3%bc?c=%20d&/", "/a%20b%C3%BC/?c=%20d&/"},
        {"//other.example/%5cx", "/other.example/%5Cx/"}, /* no authority */
        {"/a:b@c;d?http://e", "/a:b@c;d/?http://e"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        open_fixture(look_for_slash_form);
        slash_form = cases[i].expected;
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i].target);
        ask(text);
        assert_int_equal(w.requests, 1);
        mk_test_fixture_close(&w);
    }
}

TEST(no_memory_for_a_slash)
{
    char text[1024];
    open_fixture(look_for_slash_form);
    slash_form = NULL;
    snprintf(text, sizeof(text), "GET /%0500d HTTP/1.1\r\nHost: h\r\n\r\n", 0);
    ask(text);
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

static void look_for_long_list(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk__alloc_countdown = 0;
    struct mk_str joined = mk_request_header_by_name(req, MK_STR("A"));
    bool failed = mk__alloc_countdown < 0;
    mk__alloc_countdown = -1;
    assert_true(failed);
    assert_int_equal(joined.len, 900); /* the first line alone, rather than nothing */
    mk_response_end(req);
}

TEST(no_memory_to_join)
{
    char text[2048];
    open_fixture(look_for_long_list);
    int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\nA: %0900d\r\nA: %0900d\r\n\r\n", 0, 0);
    assert_true(n < (int)sizeof(text));
    ask(text);
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

/* ── collecting ── */

static char body[8192];
static size_t body_len, bytes_max;
static unsigned calls;

static void on_body(struct mk_request *req, struct mk_str data, bool end, void *ctx)
{
    assert_ptr_equal(ctx, &calls);
    assert_true(end);
    assert_int_equal(data.p[data.len], '\0');
    memcpy(body, data.p, data.len + 1);
    body_len = data.len;
    calls++;
    mk_response_end(req);
}

static void collect(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_collect(req, bytes_max, on_body, &calls);
}

#define POST(length) "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " #length "\r\n\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *bytes;
    size_t bytes_max;
    const char *body; /* NULL: 413 */
} collections[] = {
    {POST(5) "hello", 0, "hello"},
    {POST(5) "hello", 5, "hello"},
    {POST(5) "hello", 4, NULL},
    {POST(5), 4, NULL}, /* known before it comes */
    {POST(0), 1, ""},
    {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", 1, ""},
    {CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 5, "hello"},
    {CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 4, NULL},
    {CHUNKED "0\r\n\r\n", 4, ""},
    {POST(4097), 0, NULL}, /* the limit of the settings */
};

TEST(collects)
{
    for (size_t i = 0; i < COUNT(collections); i++) {
        open_fixture(collect);
        calls = 0;
        bytes_max = collections[i].bytes_max;
        struct mk_test_client *c = ask(collections[i].bytes);
        struct mk_str answer = mk_test_received(c);
        assert_int_equal(calls, collections[i].body != NULL);
        assert_true(mk_str_starts(answer, collections[i].body ? MK_STR("HTTP/1.1 200 ") : MK_STR("HTTP/1.1 413 ")));
        if (collections[i].body)
            assert_str_equal(mk_str(body, body_len), collections[i].body);
        mk_test_fixture_close(&w);
    }
}

TEST(collects_much_in_pieces)
{
    open_fixture(collect);
    calls = 0;
    bytes_max = 0;
    struct mk_test_client *c = ask(POST(4096));
    for (int i = 0; i < 4096; i++) {
        char byte = (char)('a' + i % 26);
        assert_int_equal(calls, 0);
        mk_test_send(c, mk_str(&byte, 1));
        mk_test_settle(&w);
    }
    assert_int_equal(calls, 1);
    assert_int_equal(body_len, 4096);
    for (int i = 0; i < 4096; i++)
        assert_int_equal(body[i], 'a' + i % 26);
    mk_test_fixture_close(&w);
}

static void collect_late(struct mk_request *req, struct mk_test_fixture *fixture)
{
    fixture->ctx = req;
}

TEST(collects_later)
{
    open_fixture(collect_late);
    calls = 0;
    struct mk_test_client *c = ask(POST(5) "hello");
    mk_test_pass(&w, 100);
    mk_request_collect(w.ctx, 0, on_body, &calls);
    mk_test_settle(&w);
    assert_int_equal(calls, 1);
    assert_string_equal(body, "hello");
    assert_string_equal(mk_test_state(c), "idle");
    mk_test_fixture_close(&w);
}

TEST(the_account_is_charged)
{
    open_fixture(collect);
    bytes_max = 1 << 20;
    w.settings.limits.body_bytes_max = 1 << 20;
    struct mk_test_client *c = ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    w.account.bytes_max = w.account.bytes + 20000;
    char block[1000] = "";
    for (int i = 0; i < 100 && !c->from_server.len; i++) {
        mk_test_send(c, mk_str(block, sizeof(block)));
        mk_test_settle(&w);
        assert_true(w.account.bytes <= w.account.bytes_max);
    }
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
    mk_test_fixture_close(&w);
}
