// SPDX-License-Identifier: Apache-2.0
/*
 * Turns of an HTTP/1 connection: pipelines, malformed requests, slow handlers, clients that disconnect, and each
 * allocation failing. Bodies are tested in body_test.c.
 */
#include "base/asan.h"
#include "http/h1_fixture.h"

#include <errno.h>
#include <stdio.h>

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* ── pipelines ── */

TEST(sixteen_requests_cost_one_read_and_one_write)
{
    char all[16 * sizeof(GET)] = "";
    open_fixture(NULL);
    for (size_t i = 0; i < 16; i++)
        memcpy(all + i * (sizeof(GET) - 1), GET, sizeof(GET));
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    mk_test_settle(&w);
    mk_test_send(c, mk_str_c(all));
    mk_test_settle(&w);
    assert_int_equal(c->reads, 1);
    assert_int_equal(c->writes, 1);
    assert_int_equal(w.requests, 16);
    assert_int_equal(w.done, 16);
    assert_int_equal(count(mk_test_received(c).p, HELLO), 16);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(a_pipeline_in_pieces)
{
    const char *both = GET CLOSE;
    for (size_t piece = 1; piece <= strlen(both); piece++) {
        open_fixture(NULL);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        for (size_t at = 0; at < strlen(both); at += piece) {
            size_t left = strlen(both) - at;
            mk_test_send(c, mk_str(both + at, left < piece ? left : piece));
            mk_test_settle(&w);
        }
        expect_received(c, HELLO HELLO_CLOSE);
        assert_string_equal(mk_test_state(c), "closed");
        close_fixture();
    }
}

TEST(pipelines_of_any_depth)
{
    enum { DEPTH = 5000 };
    static char all[DEPTH * sizeof(GET)];
    open_fixture(NULL);
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(all + i * (sizeof(GET) - 1), GET, sizeof(GET));
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(all));
    c->room = 1000; /* it does not read until it has written everything */
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "write");
    assert_true(w.account.bytes < 256 * 1024);
    mk_test_take(c, SIZE_MAX);
    mk_test_settle(&w);
    assert_int_equal(count(mk_test_received(c).p, HELLO), DEPTH);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

/* In the order of the answers: the first letters of the targets. */
static char answered[256];

static void answer_letter(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str path = mk_request_path(req);
    (void)fixture;
    strncat(answered, path.p + 1, 1);
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

/* A client with one request does not wait until a long pipeline of another one, which came before, is answered. */
TEST(a_pipeline_leaves_turns_to_others)
{
    enum { DEPTH = 100, TURN = 32 };
    static const char one[] = "GET /p HTTP/1.1\r\nHost: h\r\n\r\n";
    static char all[DEPTH * sizeof(one)];
    open_fixture(answer_letter);
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(all + i * (sizeof(one) - 1), one, sizeof(one));
    struct mk_test_client *pipeline = mk_test_connect(&w, MK_STR("")), *other = mk_test_connect(&w, MK_STR(""));
    mk_test_settle(&w);
    answered[0] = '\0';
    mk_test_send(pipeline, mk_str_c(all));
    mk_test_send(other, MK_STR("GET /o HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    assert_int_equal(strlen(answered), DEPTH + 1);
    assert_true(strcspn(answered, "o") <= TURN);
    assert_int_equal(pipeline->writes, (DEPTH + TURN - 1) / TURN);
    assert_int_equal(pipeline->reads, 1);
    assert_int_equal(count(mk_test_received(pipeline).p, HELLO), DEPTH);
    assert_string_equal(mk_test_state(pipeline), "idle");
    close_fixture();
}

/* The rest of a pipeline is not lost if the client has closed its side, or the server drains. */
TEST(a_long_pipeline_that_ends)
{
    enum { DEPTH = 70 };
    static char all[DEPTH * sizeof(GET) + sizeof(CLOSE)];
    open_fixture(NULL);
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(all + i * (sizeof(GET) - 1), GET, sizeof(GET));
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(all));
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_int_equal(count(mk_test_received(c).p, "HTTP/1.1 200"), DEPTH);
    assert_string_equal(mk_test_state(c), "closed");
    memcpy(all + DEPTH * (sizeof(GET) - 1), CLOSE, sizeof(CLOSE));
    c = mk_test_connect(&w, mk_str_c(all));
    mk_test_settle(&w);
    assert_int_equal(count(mk_test_received(c).p, "HTTP/1.1 200"), DEPTH + 1);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

TEST(nothing_is_answered_after_close)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CLOSE GET));
    expect_received(c, HELLO_CLOSE);
    assert_int_equal(w.requests, 1);
    assert_string_equal(mk_test_state(c), "linger"); /* it has sent more than was read */
    c = mk_test_connect(&w, MK_STR(CLOSE));
    expect_received(c, HELLO_CLOSE);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

TEST(so_many_requests_per_connection)
{
    open_fixture(NULL);
    w.settings.requests_max = 3;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET GET));
    mk_test_settle(&w);
    mk_test_send(c, MK_STR(GET));
    expect_received(c, HELLO HELLO HELLO_CLOSE);
    assert_string_equal(mk_test_state(c), "linger"); /* we close: a fourth request may be in flight */
    mk_test_send(c, MK_STR(GET));
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    w.settings.keep_alive = false;
    c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, HELLO_CLOSE);
    close_fixture();
}

TEST(http_1_0)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    expect_received(c, HELLO_CLOSE);
    assert_string_equal(mk_test_state(c), "closed");
    c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    expect_received(c, "HTTP/1.1 200 OK\r\n" STAMP "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello");
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

/* ── malformed requests ── */

static const struct {
    const char *bytes;
    const char *line;
} refused[] = {
    {"x\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"GET /\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"GET /a%2Fb HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"},
    {"GET / HTTP/2.0\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n"},
    {"PRI * HTTP/2.0\r\n\r\nXM\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n"},
    {"SAY something\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"SAY something very nice\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 Not Implemented\r\n"},
    {"GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", "HTTP/1.1 417 Expectation Failed\r\n"},
    {POST(1048577), "HTTP/1.1 413 Content Too Large\r\n"},
};

TEST(refuses)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        open_fixture(NULL);
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(refused[i].bytes));
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(c);
        assert_true(mk_str_starts(answer, mk_str_c(refused[i].line)));
        assert_int_equal(count(answer.p, "HTTP/1.1 "), 1);
        assert_int_equal(w.requests, 0); /* the handler has not seen it */
        assert_int_equal(w.done, 1);
        close_fixture();
    }
}

TEST(other_protocols_get_no_answer)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("SAY something nice\r\n\r\n"));
    mk_test_settle(&w);
    assert_str_equal(mk_test_received(c), "");
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.done, 0);
    close_fixture();
}

TEST(a_wrong_path_is_no_reason_to_leave)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n" GET));
    mk_test_settle(&w);
    struct mk_str answer = mk_test_received(c);
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 400 ")));
    assert_non_null(strstr(answer.p, HELLO));
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

/* ── handlers that answer later ── */

static struct mk_timer timer;

static void on_timer(struct mk_timer *t)
{
    (void)t;
    mk_response_write_ref(held_req, MK_STR("hello"));
    mk_response_end(held_req);
}

static void answer_later(struct mk_request *req, struct mk_test_fixture *fixture)
{
    held_req = req;
    mk_timer_init(&timer, on_timer);
    mk_timer_arm(&fixture->loop, &timer, 300);
}

TEST(an_answer_from_a_timer)
{
    open_fixture(answer_later);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET GET));
    mk_test_pass(&w, 299);
    assert_string_equal(mk_test_state(c), "handler");
    assert_int_equal(w.requests, 1); /* one after the other */
    mk_test_pass(&w, 1);
    expect_received(c, HELLO);
    assert_int_equal(w.requests, 2);
    mk_test_pass(&w, 300);
    expect_received(c, HELLO);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

static unsigned cleaned;

static void clean(void *ctx)
{
    (void)ctx;
    cleaned++;
    mk_timer_cancel(&timer);
}

static void answer_later_with_care(struct mk_request *req, struct mk_test_fixture *fixture)
{
    answer_later(req, fixture);
    cleaned = 0;
    assert_int_equal(mk_arena_defer(mk_request_arena(req), clean, NULL), 0);
}

TEST(a_client_leaves_while_a_handler_works)
{
    open_fixture(answer_later_with_care);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_pass(&w, 100);
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 1);
    assert_int_equal(cleaned, 1);
    mk_test_pass(&w, 1000);
    c = mk_test_connect(&w, MK_STR(GET)); /* and one that stays */
    mk_test_pass(&w, 300);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    assert_int_equal(cleaned, 1);
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* The spans of a request that waits stay valid, while other connections use the scratch buffer. */
TEST(a_waiting_request_keeps_its_head)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("PUT /p%20q?r HTTP/1.1\r\nHost: h\r\nX-Own: mine\r\n\r\n"));
    struct mk_request *first = held_req;
    for (int i = 0; i < 10; i++)
        mk_test_connect(&w, MK_STR("GET /another/one/which/is/longer HTTP/1.1\r\nHost: other\r\n\r\n"));
    mk_test_settle(&w);
    assert_str_equal(mk_request_method_name(first), "PUT");
    assert_str_equal(mk_request_target(first), "/p%20q?r");
    assert_str_equal(mk_request_path(first), "/p q");
    assert_str_equal(mk_request_query(first), "r");
    assert_str_equal(mk_request_host(first), "h");
    assert_str_equal(mk_request_header_by_name(first, MK_STR("x-own")), "mine");
    assert_string_equal(mk_test_state(c), "handler");
    close_fixture();
}

/* ── memory ── */

static void collected(struct mk_request *req, struct mk_str data, bool end, void *ctx)
{
    (void)end;
    (void)ctx;
    if (mk_response_header(req, MK_STR("X-Long"), MK_STR("a value that is copied")) < 0 ||
        mk_response_write(req, data) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void collect(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_test_fill_arena(req);
    mk_request_collect(req, 0, collected, NULL);
}

#define HUNDRED "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789"
#define LONG_GET "GET " HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED " HTTP/1.1\r\nHost: h\r\n\r\n"

static const struct {
    const char *first, *second;
    handler_fn *handler;
    size_t room;
} scenarios[] = {
    {GET GET, GET, NULL, SIZE_MAX},
    {GET "GET / HT", "TP/1.1\r\nHost: h\r\n\r\n", NULL, SIZE_MAX},
    {GET GET, GET, NULL, 100},
    {POST(10) "01234", "56789" GET, read_all, SIZE_MAX},
    {POST(3000) "01234", GET, collect, SIZE_MAX},
    {POST(10) "01234", "56789" GET, collect, 30},
    {CHUNKED "5\r\n01234", "\r\n5\r\n56789\r\n0\r\n\r\n" GET, collect, SIZE_MAX},
    {POST(10), "0123456789", NULL, SIZE_MAX},
    {"x\r\n", "y", NULL, SIZE_MAX},
    {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", GET, NULL, SIZE_MAX},
    {GET, GET, generate_x, SIZE_MAX},
    {GET, "", remember, SIZE_MAX}, /* answered by the limit */
    {"GET", "", NULL, 10},
    {LONG_GET, LONG_GET, remember, SIZE_MAX},
    {LONG_GET, POST(10) "0", NULL, 10},
};

/* Whichever allocation fails: the connection is closed or continues, and nothing leaks. */
static void play(size_t i)
{
    open_fixture(scenarios[i].handler);
    long countdown = mk__alloc_countdown;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    if (c) {
        c->room = scenarios[i].room;
        mk_test_send(c, mk_str_c(scenarios[i].first));
        mk_test_settle(&w);
        mk_test_send(c, mk_str_c(scenarios[i].second));
        mk_test_settle(&w);
        mk_test_take(c, SIZE_MAX);
        mk_test_settle(&w);
        mk_test_pass(&w, 200000); /* no limit is longer */
        assert_string_equal(mk_test_state(c), "closed");
    }
    assert_int_equal(w.closed, 1);
    assert_true(countdown < 0 || c || mk__alloc_countdown < 0);
    close_fixture();
}

TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        for (long n = 3;; n++) { /* the first three are mk__http_init's */
            mk__alloc_countdown = n;
            play(i);
            bool all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            if (all_fine)
                break;
            assert_true(n < 100);
        }
    }
}

TEST(a_budget_is_kept)
{
    open_fixture(remember);
    w.account.bytes_max = w.account.bytes + 64 * 1024;
    unsigned served = 0, refused_count = 0;
    for (int i = 0; i < 200; i++) {
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        bool open = c && mk_test_connection(c);
        served += open;
        refused_count += !open;
        assert_true(w.account.bytes <= w.account.bytes_max);
        mk_test_settle(&w);
    }
    assert_true(served > 10 && refused_count > 10);
    mk__conn_abort_all(&w.http);
    mk_test_settle(&w);
    w.handler = NULL;
    expect_received(mk_test_connect(&w, MK_STR(GET)), HELLO); /* it recovers */
    close_fixture();
}

/* Under AddressSanitizer and MemorySanitizer each object of a pool is a separate allocation. */

TEST(a_small_request_allocates_nothing)
{
    enum { MANY = 1 << 20 };
    if (MK__POOL_IS_MALLOC)
        skip();
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, HELLO);
    size_t bytes = w.account.bytes;
    mk__alloc_countdown = MANY;
    for (int i = 0; i < 100; i++) {
        mk_test_send(c, MK_STR("GET /some/file.html?with=query HTTP/1.1\r\nHost: example.org\r\n"
                               "User-Agent: x\r\nAccept: */*\r\n\r\n"));
        expect_received(c, HELLO);
    }
    long left = mk__alloc_countdown;
    mk__alloc_countdown = -1;
    assert_int_equal(left, MANY);
    assert_int_equal(w.account.bytes, bytes);
    close_fixture();
}

TEST(an_idle_connection_is_small)
{
    open_fixture(NULL);
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    size_t before = w.account.bytes;
    for (int i = 0; i < 320; i++)
        mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_true((w.account.bytes - before) / 320 <= 300);
    assert_true(sizeof(struct mk__conn) <= 280); /* budgets of idle connections, and of states of plugins, go by it */
    close_fixture();
}
