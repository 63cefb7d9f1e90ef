// SPDX-License-Identifier: Apache-2.0
/* Request bodies on HTTP/2 streams: their lengths, flow control, and bodies that no handler wants. */
#include "http/h2_fixture.h"

TEST(bodies)
{
    static const struct {
        const char *fields;
        const char *pieces[4]; /* the last one ends it */
        bool trailers;
    } cases[] = {
        {HEAD("POST", "/"), {""}, false},
        {HEAD("POST", "/"), {"hello"}, false},
        {HEAD("POST", "/"), {"hel", "lo"}, false},
        {HEAD("POST", "/"), {"hel", "", "lo", ""}, false},
        {HEAD("POST", "/"), {"hello"}, true},
        {LENGTH(5), {"h", "ello"}, false},
        {LENGTH(5), {"hello"}, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char sent[64] = "";
        int len = 0;
        struct mk_test_h2 t = h2_open(read_all);
        h2_head(&t, 1, END_HEADERS, cases[i].fields);
        for (size_t n = 0; n < 4 && cases[i].pieces[n]; n++) {
            bool last = (n == 3 || !cases[i].pieces[n + 1]) && !cases[i].trailers;
            h2_data(&t, 1, last ? END_STREAM : 0, mk_str_c(cases[i].pieces[n]));
            len += snprintf(sent + len, sizeof(sent) - (size_t)len, "%s", cases[i].pieces[n]);
            if (n % 2)
                mk_test_settle(&w);
        }
        if (cases[i].trailers)
            h2_head(&t, 1, END_HEADERS | END_STREAM, "x-trailer 1");
        h2_expect(&t, HELLO_OF(1));
        assert_str_equal(mk_str(body.bytes, body.len), sent);
        assert_int_equal(body.ends, 1);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

static void read_later(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
}

/* All of it has arrived before it is read. */
TEST(a_body_that_is_read_later)
{
    struct mk_test_h2 t = h2_open(read_later);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, MK_STR("abc"));
    h2_data(&t, 1, END_STREAM, MK_STR("def"));
    h2_expect(&t, "");
    read_all(held_req, &w);
    h2_expect(&t, HELLO_OF(1));
    assert_str_equal(mk_str(body.bytes, body.len), "abcdef");
    assert_int_equal(body.ends, 1);
    h2_close(&t);
}

#define REFUSED_413 "1:413,content-type=text/html; charset=utf-8,content-length=* 1:#*!"

/* Lengths that are not kept are the client's fault; those that are too large get an answer. */
TEST(lengths)
{
    static char much[20000];
    static const struct {
        const char *fields;
        size_t sent;
        bool end;
        handler_fn *handler;
        uint64_t max;
        const char *heard;
    } cases[] = {
        {LENGTH(5), 5, true, read_all, 100, HELLO_OF(1)},
        {LENGTH(5), 4, true, read_all, 100, "1:RST(1)"},
        {LENGTH(5), 6, true, read_all, 100, "1:RST(1)"},
        {LENGTH(5), 0, true, read_all, 100, "1:RST(1)"},
        {LENGTH(x), 1, true, read_all, 100, "1:RST(1)"},
        {LENGTH(-1), 1, true, read_all, 100, "1:RST(1)"},
        {LENGTH(100), 100, true, read_all, 100, HELLO_OF(1)},
        {LENGTH(101), 0, false, read_all, 100, REFUSED_413},
        {HEAD("POST", "/"), 100, true, read_all, 100, HELLO_OF(1)},
        {HEAD("POST", "/"), 101, true, read_all, 100, REFUSED_413},
        {HEAD("POST", "/"), 20000, false, read_all, 100, REFUSED_413 "*"},
        {LENGTH(4096), 4096, true, collect, 5000, "1:200,x-long=a value that is copied,content-length=4096 1:#4096!"},
        {LENGTH(4097), 4097, true, collect, 5000, REFUSED_413},
        {HEAD("POST", "/"), 4097, true, collect, 5000, REFUSED_413},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(cases[i].handler);
        w.settings.limits.body_bytes_max = cases[i].max;
        h2_head(&t, 1, END_HEADERS, cases[i].fields);
        if (cases[i].sent || cases[i].end)
            h2_data(&t, 1, cases[i].end ? END_STREAM : 0, mk_str(much, cases[i].sent));
        h2_expect(&t, cases[i].heard);
        w.handler = NULL;
        h2_get_path(&t, 3, "/");
        h2_expect(&t, "*" HELLO_OF(3));
        h2_close(&t);
    }
}

static void answer_early(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)piece, (void)end, (void)ctx;
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static void read_and_answer_early(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_read(req, answer_early, NULL);
}

/* The handler has ended the response, which waits for its window, when the body becomes too long. */
TEST(a_response_before_a_body_that_is_too_long)
{
    static char much[20000];
    struct mk_test_h2 t = h2_open(read_and_answer_early);
    w.settings.limits.body_bytes_max = 100;
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, MK_STR("x"));
    h2_expect(&t, "*1:200,content-length=5");
    h2_data(&t, 1, 0, mk_str(much, sizeof(much)));
    h2_expect(&t, "*");
    h2_window(&t, 1, 100);
    h2_expect(&t, "1:\"hello\"!*");
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

/* A request that says it has a body of some length, and ends with its head. */
TEST(a_length_without_a_body)
{
    struct mk_test_h2 t = h2_open(read_all);
    h2_head(&t, 1, END_HEADERS | END_STREAM, LENGTH(5));
    h2_expect(&t, "1:RST(1)");
    h2_head(&t, 3, END_HEADERS | END_STREAM, LENGTH(0));
    h2_expect(&t, HELLO_OF(3));
    assert_int_equal(body.ends, 1);
    h2_close(&t);
}

TEST(expectations)
{
    struct mk_test_h2 t = h2_open(read_all);
    h2_head(&t, 1, END_HEADERS, HEAD("POST", "/") "|expect 100-continue");
    h2_expect(&t, "1:100");
    h2_data(&t, 1, END_STREAM, MK_STR("x"));
    h2_expect(&t, HELLO_OF(1));
    w.handler = NULL; /* no handler wants it */
    h2_head(&t, 3, END_HEADERS, HEAD("POST", "/") "|expect 100-continue");
    h2_expect(&t, HELLO_OF(3));
    w.handler = read_all; /* it comes anyway */
    h2_head(&t, 5, END_HEADERS, HEAD("POST", "/") "|expect 100-continue");
    h2_data(&t, 5, END_STREAM, MK_STR("x"));
    h2_expect(&t, HELLO_OF(5));
    h2_head(&t, 7, END_HEADERS | END_STREAM, HEAD("POST", "/") "|expect 100-continue");
    h2_expect(&t, HELLO_OF(7));
    h2_head(&t, 9, END_HEADERS | END_STREAM, HEAD("POST", "/") "|expect x");
    h2_expect(&t, "9:417*!");
    h2_close(&t);
}

/* ── back-pressure ── */

enum { WINDOW_BYTES = 64 * 1024 };

static char window[WINDOW_BYTES];

TEST(a_paused_handler_stops_its_client)
{
    struct mk_test_h2 t = h2_open(pause_body);
    size_t before = w.account.bytes;
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, ""); /* no window is given back */
    assert_true(w.account.bytes >= before + WINDOW_BYTES);
    mk_request_resume(held_req);
    h2_expect(&t, "*1:+*");
    assert_int_equal(body.len, WINDOW_BYTES);
    mk_request_pause(held_req);
    h2_data(&t, 1, END_STREAM, mk_str(window, sizeof(window)));
    h2_expect(&t, "");
    mk_request_resume(held_req);
    mk_test_settle(&w);
    assert_int_equal(body.len, 2 * WINDOW_BYTES);
    assert_int_equal(w.done, 1);
    h2_close(&t);
}

/* A client that sends more violates the protocol. */
TEST(more_than_the_window)
{
    struct mk_test_h2 t = h2_open(pause_body);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_data(&t, 1, 0, MK_STR("x"));
    h2_expect(&t, "1:RST(3)");
    assert_int_equal(w.aborted, 1);
    w.handler = NULL;
    h2_get_path(&t, 3, "/");
    h2_expect(&t, "*" HELLO_OF(3)); /* and the connection's window is whole again */
    h2_close(&t);
}

/* Bodies of all streams together have one window; one that is paused takes only its share of it. */
TEST(a_paused_body_does_not_stop_others)
{
    struct mk_test_h2 t = h2_open(pause_body);
    for (int32_t id = 1; id <= 5; id += 2) {
        h2_post(&t, id);
        h2_data(&t, id, 0, mk_str(window, sizeof(window)));
    }
    w.handler = read_all;
    mk_test_settle(&w);
    h2_post(&t, 7);
    for (int i = 0; i < 16; i++) {
        h2_data(&t, 7, i == 15 ? END_STREAM : 0, mk_str(window, 16384));
        mk_test_settle(&w);
    }
    h2_expect(&t, "*" HELLO_OF(7));
    assert_int_equal(body.len, 16 * 16384);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

/* Small pieces cost memory of their own. */
TEST(many_small_pieces)
{
    struct mk_test_h2 t = h2_open(pause_body);
    h2_post(&t, 1);
    mk_test_settle(&w);
    size_t before = w.account.bytes;
    for (int i = 0; i < WINDOW_BYTES; i++) {
        h2_data(&t, 1, 0, mk_str(window, 1));
        if (i % 1024 == 0)
            mk_test_settle(&w);
    }
    mk_test_settle(&w);
    assert_true(w.account.bytes - before < 4 * WINDOW_BYTES);
    mk_request_resume(held_req);
    mk_test_settle(&w);
    assert_int_equal(body.len, WINDOW_BYTES);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

/* ── bodies that no handler wants ── */

TEST(an_early_answer)
{
    struct mk_test_h2 t = h2_open(NULL);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, 100));
    h2_expect(&t, HELLO_OF(1));
    assert_int_equal(w.done, 1);
    h2_data(&t, 1, END_STREAM, mk_str(window, 100)); /* it may still say what was on its way */
    h2_expect(&t, "");
    assert_string_equal(mk_test_state(t.end), "idle");
    h2_close(&t);
}

TEST(so_much_is_drained)
{
    struct mk_test_h2 t = h2_open(NULL);
    h2_post(&t, 1);
    h2_expect(&t, HELLO_OF(1));
    h2_data(&t, 1, 0, mk_str(window, 8192)); /* discard_bytes_max */
    h2_expect(&t, "");
    h2_data(&t, 1, 0, mk_str(window, 1));
    h2_expect(&t, "1:RST(0)");
    assert_int_equal(w.aborted, 0);
    h2_data(&t, 1, 0, mk_str(window, 16384)); /* was on its way */
    h2_get_path(&t, 3, "/");
    h2_expect(&t, HELLO_OF(3));
    h2_close(&t);
}

/* Of the connection: more than it has in all, in parts that are discarded. */
TEST(discarded_bodies_give_their_window_back)
{
    struct mk_test_h2 t = h2_open(NULL);
    for (int32_t id = 1; id < 128; id += 2) {
        h2_post(&t, id);
        mk_test_settle(&w);
        h2_data(&t, id, END_STREAM, mk_str(window, 8192));
        mk_test_settle(&w);
    }
    assert_int_equal(w.done, 64);
    h2_get_path(&t, 129, "/");
    h2_expect(&t, "*0:+*0:+*0:+*" HELLO_OF(129));
    h2_close(&t);
}

/* The limit of the host counts, although its request has ended when the body is discarded. */
TEST(so_much_of_a_host_is_drained)
{
    static const struct {
        uint64_t server, host;
    } cases[] = {{8192, 100}, {10, 100}};
    static struct mk__http_limits own;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(NULL);
        own = w.settings.limits;
        own.discard_bytes_max = cases[i].host;
        w.settings.limits.discard_bytes_max = cases[i].server;
        w.limits = &own;
        h2_post(&t, 1);
        h2_expect(&t, HELLO_OF(1));
        h2_data(&t, 1, 0, mk_str(window, 100));
        h2_expect(&t, "");
        h2_data(&t, 1, 0, mk_str(window, 1));
        h2_expect(&t, "1:RST(0)");
        h2_close(&t);
    }
}

TEST(and_for_so_long)
{
    struct mk_test_h2 t = h2_open(NULL);
    h2_post(&t, 1);
    h2_expect(&t, HELLO_OF(1));
    mk_test_pass(&w, 1000);
    h2_data(&t, 1, 0, mk_str(window, 1));
    mk_test_pass(&w, 999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(0)");
    assert_string_equal(mk_test_state(t.end), "idle");
    h2_close(&t);
}

/* An answer that takes its time while the body waits: the window stays closed. */
TEST(a_body_that_is_not_read)
{
    struct mk_test_h2 t = h2_open(give_a_part);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, "1:200 1:\"part\"");
    mk_response_end(held_req);
    h2_expect(&t, "1:!*"); /* and then it is thrown away */
    h2_get_path(&t, 3, "/");
    w.handler = NULL;
    mk_test_settle(&w);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

TEST(a_slow_body)
{
    struct mk_test_h2 t = h2_open(read_all);
    w.settings.limits.body_rate_min = 100;
    h2_post(&t, 1);
    for (int i = 0; i < 60 && !w.done; i++) {
        mk_test_pass(&w, 1000);
        h2_data(&t, 1, 0, MK_STR("x"));
        mk_test_settle(&w);
        h2_listen(&t);
    }
    assert_int_equal(mk_test_state(t.end)[0], 's');
    h2_expect(&t, PAGE(408));
    h2_close(&t);
}
