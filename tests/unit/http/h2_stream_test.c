// SPDX-License-Identifier: Apache-2.0
/* Exchanges on streams: the limits of their waits, bodies on their way in, and memory that runs out everywhere. */
#include "http/h2_world.h"

#include <errno.h>
#include <monkey/tunnel.h>

/* ── the limits of waits, to the millisecond ── */

static void give_a_part(struct mk_request *req, struct mk_test_world *world)
{
    remember(req, world);
    mk_response_borrow(req, MK_STR("part"));
}

static void give_a_part_and_read(struct mk_request *req, struct mk_test_world *world)
{
    give_a_part(req, world);
    mk_request_read(req, gather, NULL);
}

static void pause_body(struct mk_request *req, struct mk_test_world *world)
{
    remember(req, world);
    read_all(req, world);
    mk_request_pause(req);
}

static ssize_t never(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req, (void)to, (void)size, (void)ctx;
    return -EAGAIN;
}

static void generate_never(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    mk_response_generate(req, never, NULL);
    mk_response_end(req);
}

static void take_over(struct mk_request *req, unsigned events, void *ctx)
{
    (void)req, (void)events, (void)ctx;
}

static void tunnel(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    assert_int_equal(mk_request_take_over(req, take_over, NULL), 0);
}

#define PAGE(status) "1:" #status ",content-type=text/html; charset=utf-8,content-length=* 1:#*!"

enum { BODY = 1, CLOSED = 2, TUNNEL = 4 }; /* a body that does not come; a window that is closed */

static const struct {
    const char *name;
    handler_fn *handler;
    uint32_t ms;
    const char *before, *after;
    unsigned what;
} waits[] = {
    {"body", read_all, 30000, "", PAGE(408), BODY},
    {"body, after the head", give_a_part_and_read, 30000, "1:200 1:\"part\"", "1:RST(2)", BODY},
    {"handler", remember, 60000, "", PAGE(503), 0},
    {"handler, with a body that nobody reads", remember, 60000, "", PAGE(503), BODY},
    {"handler, after the head", give_a_part, 60000, "1:200 1:\"part\"", "1:RST(2)", 0},
    {"paused body", pause_body, 60000, "", PAGE(503), BODY},
    {"generator", generate_never, 60000, "1:200", "1:RST(2)", 0},
    {"send", NULL, 20000, "1:200,content-length=5", "1:RST(2)", CLOSED},
    {"send, without an end", give_a_part, 20000, "1:200", "1:RST(2)", CLOSED},
    {"tunnel", tunnel, 3600000, "1:200", "1:RST(2)", TUNNEL},
};

static void test_every_wait_has_its_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(waits); i++) {
        struct mk_test_h2 t = h2_open(waits[i].handler);
        if (waits[i].what & CLOSED) {
            h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
            h2_expect(&t, "ACK");
        }
        h2_head(&t, 1, END_HEADERS | (waits[i].what & (BODY | TUNNEL) ? 0 : END_STREAM),
                waits[i].what & TUNNEL ? HEAD("CONNECT", "/") "|:protocol x" : HEAD("GET", "/"));
        h2_expect(&t, waits[i].before);
        assert_string_equal(mk_test_state(t.end), "streams");
        for (uint32_t ms = 1000; ms < waits[i].ms; ms += 1000) { /* which others have nothing to do with */
            mk_test_pass(&w, 1000);
            h2_ping(&t, false);
            h2_expect(&t, "PONG");
        }
        mk_test_pass(&w, 999);
        h2_expect(&t, "");
        if (w.done)
            fail_msg("%s: ends too early", waits[i].name);
        mk_test_pass(&w, 1);
        h2_expect(&t, waits[i].after);
        if (!w.done)
            fail_msg("%s: ends too late", waits[i].name);
        assert_int_equal(w.aborted, waits[i].after[2] == 'R');
        w.handler = NULL;
        if (waits[i].what & CLOSED)
            h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535);
        h2_get_path(&t, 3, "/");
        h2_expect(&t, "*" HELLO_OF(3)); /* the others are none the worse for it */
        h2_close(&t);
    }
}

static void test_each_stream_has_its_own(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(remember);
    h2_get_path(&t, 1, "/");
    mk_test_pass(&w, 30000);
    h2_get_path(&t, 3, "/");
    mk_test_pass(&w, 29999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, PAGE(503));
    mk_test_pass(&w, 29999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "3:503*!");
    h2_close(&t);
}

static void test_limits_of_a_host(void **state)
{
    static struct mk__http_limits own;
    (void)state;
    struct mk_test_h2 t = h2_open(remember);
    own = w.settings.limits;
    own.wait_ms[MK__WAIT_HANDLER] = 10;
    w.limits = &own;
    h2_get_path(&t, 1, "/");
    mk_test_pass(&w, 10);
    h2_expect(&t, PAGE(503));
    h2_close(&t);
}

/* ── bodies ── */

#define LENGTH(n) HEAD("POST", "/") "|content-length " #n

static void test_bodies(void **state)
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
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char sent[64] = "";
        struct mk_test_h2 t = h2_open(read_all);
        h2_head(&t, 1, END_HEADERS, cases[i].fields);
        for (size_t n = 0; n < 4 && cases[i].pieces[n]; n++) {
            bool last = (n == 3 || !cases[i].pieces[n + 1]) && !cases[i].trailers;
            h2_data(&t, 1, last ? END_STREAM : 0, mk_str_c(cases[i].pieces[n]));
            strcat(sent, cases[i].pieces[n]);
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

static void read_later(struct mk_request *req, struct mk_test_world *world)
{
    remember(req, world);
}

/* It has come, wholly, before anybody reads it. */
static void test_a_body_that_is_read_later(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(read_later);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, MK_STR("abc"));
    h2_data(&t, 1, END_STREAM, MK_STR("def"));
    h2_expect(&t, "");
    read_all(current, &w);
    h2_expect(&t, HELLO_OF(1));
    assert_str_equal(mk_str(body.bytes, body.len), "abcdef");
    assert_int_equal(body.ends, 1);
    h2_close(&t);
}

static void collected(struct mk_request *req, struct mk_str data, bool end, void *ctx)
{
    (void)end, (void)ctx;
    if (mk_response_header(req, MK_STR("X-Long"), MK_STR("a value that is copied")) < 0 ||
        mk_response_write(req, data) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void collect(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    mk_request_collect(req, 0, collected, NULL);
}

#define REFUSED_413 "1:413,content-type=text/html; charset=utf-8,content-length=* 1:#*!"

/* Lengths that are not kept are the client's fault; those that are too large get an answer. */
static void test_lengths(void **state)
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
    (void)state;
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

/* A request that says it has a body of some length, and ends with its head. */
static void test_a_length_without_a_body(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(read_all);
    h2_head(&t, 1, END_HEADERS | END_STREAM, LENGTH(5));
    h2_expect(&t, "1:RST(1)");
    h2_head(&t, 3, END_HEADERS | END_STREAM, LENGTH(0));
    h2_expect(&t, HELLO_OF(3));
    assert_int_equal(body.ends, 1);
    h2_close(&t);
}

static void test_expectations(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(read_all);
    h2_head(&t, 1, END_HEADERS, HEAD("POST", "/") "|expect 100-continue");
    h2_expect(&t, "1:100");
    h2_data(&t, 1, END_STREAM, MK_STR("x"));
    h2_expect(&t, HELLO_OF(1));
    w.handler = NULL; /* nobody wants it */
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

static void test_a_paused_handler_stops_its_client(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(pause_body);
    size_t before = w.account.bytes;
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, ""); /* no window is given back */
    assert_true(w.account.bytes >= before + WINDOW_BYTES);
    mk_request_resume(current);
    h2_expect(&t, "*1:+*");
    assert_int_equal(body.len, WINDOW_BYTES);
    mk_request_pause(current);
    h2_data(&t, 1, END_STREAM, mk_str(window, sizeof(window)));
    h2_expect(&t, "");
    mk_request_resume(current);
    mk_test_settle(&w);
    assert_int_equal(body.len, 2 * WINDOW_BYTES);
    assert_int_equal(w.done, 1);
    h2_close(&t);
}

/* Who goes on nevertheless has not understood the protocol. */
static void test_more_than_the_window(void **state)
{
    (void)state;
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
static void test_a_paused_body_does_not_stop_others(void **state)
{
    (void)state;
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
static void test_many_small_pieces(void **state)
{
    (void)state;
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
    mk_request_resume(current);
    mk_test_settle(&w);
    assert_int_equal(body.len, WINDOW_BYTES);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

/* ── bodies that nobody wants ── */

static void test_an_early_answer(void **state)
{
    (void)state;
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

static void test_so_much_is_drained(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    h2_post(&t, 1);
    h2_expect(&t, HELLO_OF(1));
    h2_data(&t, 1, 0, mk_str(window, 8192)); /* drain_bytes_max */
    h2_expect(&t, "");
    h2_data(&t, 1, 0, mk_str(window, 1));
    h2_expect(&t, "1:RST(0)");
    assert_int_equal(w.aborted, 0);
    h2_data(&t, 1, 0, mk_str(window, 16384)); /* was on its way */
    h2_get_path(&t, 3, "/");
    h2_expect(&t, HELLO_OF(3));
    h2_close(&t);
}

static void test_and_for_so_long(void **state)
{
    (void)state;
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
static void test_a_body_that_nobody_reads(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(give_a_part);
    h2_post(&t, 1);
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, "1:200 1:\"part\"");
    mk_response_end(current);
    h2_expect(&t, "1:!*"); /* and then it is thrown away */
    h2_get_path(&t, 3, "/");
    w.handler = NULL;
    mk_test_settle(&w);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

static void test_a_slow_body(void **state)
{
    (void)state;
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

/* ── resets ── */

static void test_a_client_takes_it_back(void **state)
{
    static const struct {
        handler_fn *handler;
        bool has_body;
    } cases[] = {
        {remember, false}, {read_all, true}, {pause_body, true}, {give_a_part, false}, {generate_never, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(cases[i].handler);
        size_t before = w.account.bytes;
        h2_head(&t, 1, END_HEADERS | (cases[i].has_body ? 0 : END_STREAM), HEAD("GET", "/"));
        if (cases[i].has_body)
            h2_data(&t, 1, 0, mk_str(window, 10000));
        mk_test_settle(&w);
        assert_int_equal(w.done, 0);
        h2_rst(&t, 1);
        mk_test_settle(&w);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 1);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_rst(&t, 1); /* once more does no harm */
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_get_path(&t, 3, "/");
        h2_rst(&t, 3); /* in the same turn */
        mk_test_settle(&w);
        assert_int_equal(w.done, 2);
        assert_true(w.account.bytes < before + 32 * 1024); /* a room for heads stays */
        h2_close(&t);
    }
}

static void test_heads_that_nobody_accepts(void **state)
{
    static const struct {
        const char *fields, *heard;
    } cases[] = {
        {HEAD("GET", "/%zz"), "1:400*!"},
        {HEAD("GET", "/a%2Fb"), "1:404*!"},
        {HEAD("GET", "/") "|host other", "1:400*!"},
        {":method GET|:scheme http|:path /", "1:RST(1)"},
        {":method GET|:scheme http|:authority h", "1:RST(1)"},
        {HEAD("GET", "/") "|Upper 1", "1:RST(1)"},
        {HEAD("GET", "/") "|connection close", "1:RST(1)"},
        {HEAD("GET", "/") "|transfer-encoding chunked", "1:RST(1)"},
        {"x y|:method GET|:scheme http|:path /|:authority h", "1:RST(1)"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(NULL);
        h2_head(&t, 1, END_HEADERS | END_STREAM, cases[i].fields);
        h2_expect(&t, cases[i].heard);
        assert_int_equal(w.requests, 0);
        h2_get_path(&t, 3, "/");
        h2_expect(&t, HELLO_OF(3));
        h2_close(&t);
    }
}

/* ── memory ── */

static void fill_and_collect(struct mk_request *req, struct mk_test_world *world)
{
    mk_test_fill_arena(req);
    collect(req, world);
}

static void echo_ready(struct mk_request *req, unsigned events, void *ctx)
{
    char bytes[100];
    ssize_t n;
    (void)events, (void)ctx;
    while ((n = mk_tunnel_read(req, bytes, sizeof(bytes))) > 0)
        if (mk_tunnel_write(req, bytes, (size_t)n) < 0) {
            mk_response_abort(req);
            return;
        }
    if (n == 0)
        mk_tunnel_end(req);
}

static void echo(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    if (mk_request_take_over(req, echo_ready, NULL) < 0)
        mk_response_error(req, 503);
}

static const struct {
    handler_fn *handler;
    const char *fields;
    size_t room;
} scenarios[] = {
    {NULL, HEAD("GET", "/"), SIZE_MAX},
    {NULL, HEAD("POST", "/"), 60},
    {read_all, HEAD("POST", "/"), SIZE_MAX},
    {fill_and_collect, HEAD("POST", "/"), SIZE_MAX},
    {collect, LENGTH(6), 100},
    {pause_body, HEAD("POST", "/"), SIZE_MAX},
    {generate_x, HEAD("GET", "/"), SIZE_MAX},
    {remember, HEAD("GET", "/"), SIZE_MAX},
    {echo, HEAD("CONNECT", "/") "|:protocol x", SIZE_MAX},
    {NULL, HEAD("GET", "/%zz"), SIZE_MAX},
};

/* Whatever is missing: streams or the connection end, or go on, and nothing is lost. */
static void play(size_t i)
{
    open_world(scenarios[i].handler);
    struct mk_test_client *end = mk_test_connect(&w, MK_STR(""));
    if (end) {
        end->room = scenarios[i].room;
        struct mk_test_h2 t = h2_begin(end);
        for (int32_t id = 1; id <= 3; id += 2) {
            h2_head(&t, id, END_HEADERS, scenarios[i].fields);
            h2_data(&t, id, 0, MK_STR("abc"));
            mk_test_settle(&w);
            h2_data(&t, id, END_STREAM, MK_STR("def"));
        }
        mk_test_settle(&w);
        mk_test_take(end, SIZE_MAX);
        h2_goaway(&t);
        mk_test_pass(&w, MK_TEST_DAY_MS);
        assert_string_equal(mk_test_state(end), "closed");
        h2_free(&t);
    }
    assert_int_equal(w.closed, 1);
    close_world(); /* which says that nothing is left */
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        for (long n = 3;; n++) { /* the first three are mk__http_open's */
            mk__alloc_countdown = n;
            play(i);
            bool all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            if (all_fine)
                break;
            assert_true(n < 1000);
        }
    }
}

/* What a connection took is given back when it goes, whatever was under way. */
static void test_the_account_is_back_where_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        struct mk_test_h2 t = h2_open(scenarios[i].handler), second;
        h2_get_path(&t, 1, "/");
        mk_test_settle(&w);
        size_t before = w.account.bytes;
        for (int round = 0; round < 3; round++) {
            second = h2_connect();
            h2_head(&second, 1, END_HEADERS, scenarios[i].fields);
            h2_data(&second, 1, 0, MK_STR("abcdef"));
            h2_head(&second, 3, 0, scenarios[i].fields); /* amid a head */
            mk_test_settle(&w);
            assert_true(w.account.bytes > before);
            mk_test_reset(second.end);
            mk_test_settle(&w);
            h2_free(&second);
        }
        assert_true(w.account.bytes <= before + 4 * MK__REQUEST_BYTES + 64); /* of pools, which keep a block */
        h2_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_wait_has_its_limit),
        cmocka_unit_test(test_each_stream_has_its_own),
        cmocka_unit_test(test_limits_of_a_host),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_a_body_that_is_read_later),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_a_length_without_a_body),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_a_paused_handler_stops_its_client),
        cmocka_unit_test(test_more_than_the_window),
        cmocka_unit_test(test_a_paused_body_does_not_stop_others),
        cmocka_unit_test(test_many_small_pieces),
        cmocka_unit_test(test_an_early_answer),
        cmocka_unit_test(test_so_much_is_drained),
        cmocka_unit_test(test_and_for_so_long),
        cmocka_unit_test(test_a_body_that_nobody_reads),
        cmocka_unit_test(test_a_slow_body),
        cmocka_unit_test(test_a_client_takes_it_back),
        cmocka_unit_test(test_heads_that_nobody_accepts),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_the_account_is_back_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
