// SPDX-License-Identifier: Apache-2.0
/* Turns of HTTP/2 connections: whose bytes leave when, slow clients, slices, and how a connection ends. */
#include "http/h2.h"
#include "http/h2_world.h"

#include <errno.h>

/* A body of so many bytes, by the path: "/100000". "/wait..." gets no answer yet. */
struct rest {
    size_t at, left;
};

static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct rest *rest = ctx;
    size_t n = rest->left < size ? rest->left : size;
    (void)req;
    for (size_t i = 0; i < n; i++)
        to[i] = mk_test_byte(rest->at + i);
    rest->at += n;
    rest->left -= n;
    return (ssize_t)n;
}

static void give(struct mk_request *req, struct mk_test_world *world)
{
    struct mk_str path = mk_request_path(req);
    remember(req, world);
    if (path.p[1] == 'w')
        return;
    struct rest *rest = mk_arena_zalloc(mk_request_arena(req), sizeof(*rest));
    assert_non_null(rest);
    rest->left = strtoul(path.p + 1, NULL, 10);
    mk_response_length(req, rest->left);
    mk_response_generate(req, generate, rest);
    mk_response_end(req);
}

static void open_windows(struct mk_test_h2 *t, uint32_t bytes)
{
    h2_settings(t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes);
    h2_window(t, 0, INT32_MAX - 65535);
}

static struct mk_test_h2 open_giving(uint32_t window)
{
    struct mk_test_h2 t = h2_open(give);
    t.patterned = true;
    open_windows(&t, window);
    h2_expect(&t, "ACK");
    return t;
}

static void ask(struct mk_test_h2 *t, int32_t id, const char *path, const char *priority)
{
    char fields[256];
    snprintf(fields, sizeof(fields), ":method GET|:scheme http|:path %s|:authority h%s%s", path,
             priority ? "|priority " : "", priority ? priority : "");
    h2_head(t, id, END_HEADERS | END_STREAM, fields);
}

/* ── slow clients ── */

/* So much room at a time: everything arrives, and no more memory is taken than an output is long. */
static void test_slow_clients(void **state)
{
    static const struct {
        size_t room, each;
    } cases[] = {{0, 1}, {0, 9}, {10, 100}, {0, 1000}, {100, 16393}, {0, 20000}, {70000, 65535}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t bytes = cases[i].each < 100 ? 3000 : 300000;
        char path[32];
        struct mk_test_h2 t = open_giving(INT32_MAX);
        snprintf(path, sizeof(path), "/%zu", bytes);
        t.end->room = cases[i].room;
        for (int32_t id = 1; id <= 5; id += 2)
            ask(&t, id, path, "i");
        mk_test_settle(&w);
        for (size_t n = 0; w.done < 3 || mk_test_connection(t.end)->state == MK__CONN_BLOCKED; n++) {
            assert_true(w.account.bytes < 300 * 1024);
            assert_true(n < 100000);
            mk_test_take(t.end, cases[i].each);
            mk_test_settle(&w);
            h2_listen(&t);
        }
        for (size_t id = 0; id < 3; id++)
            assert_int_equal(t.data[id], bytes);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

/* The limit is for taking nothing, and there is one stream after the other. */
static void test_slow_clients_have_their_time(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX);
    t.end->room = 0;
    for (int32_t id = 1; id <= 5; id += 2)
        ask(&t, id, "/100000", NULL);
    for (int i = 0; i < 100 && w.done < 3; i++) {
        mk_test_pass(&w, 19999);
        mk_test_take(t.end, 5000);
        mk_test_settle(&w);
    }
    mk_test_take(t.end, SIZE_MAX);
    mk_test_settle(&w);
    h2_listen(&t);
    for (size_t id = 0; id < 3; id++)
        assert_int_equal(t.data[id], 100000);
    assert_int_equal(w.done, 3);
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

static void test_a_client_that_takes_nothing(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX);
    t.end->room = 20000;
    ask(&t, 1, "/1000000", NULL);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "blocked");
    mk_test_pass(&w, 19000);
    mk_test_take(t.end, 10000);
    mk_test_pass(&w, 19999);
    assert_string_equal(mk_test_state(t.end), "blocked");
    assert_int_equal(w.done, 0);
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);
}

/* It takes everything but one stream. */
static void test_a_window_that_stays_closed(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(1000);
    ask(&t, 1, "/100000", NULL);
    h2_expect(&t, "1:200* 1:#1000");
    for (int32_t id = 3; id < 11; id += 2) {
        mk_test_pass(&w, 4999);
        ask(&t, id, "/900", NULL);
        h2_expect(&t, "*!");
    }
    mk_test_pass(&w, 3);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(2)");
    h2_close(&t);
}

/* Nobody fills our memory by asking and not listening. */
static void test_questions_without_listening(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    t.end->room = 0;
    size_t before = w.account.bytes;
    for (int i = 0; i < 100000 && mk_test_connection(t.end); i++) {
        h2_ping(&t, false);
        if (i % 10 == 0)
            mk_test_pass(&w, 1000); /* never too often */
        assert_true(w.account.bytes < before + 300 * 1024);
    }
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
}

/* ── windows ── */

static void test_windows(void **state)
{
    static const struct {
        uint32_t each;
        size_t bytes;
    } cases[] = {{1, 100}, {10, 1000}, {16384, 100000}, {16385, 100000}, {65535, 200000}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[32];
        struct mk_test_h2 t = open_giving(0);
        snprintf(path, sizeof(path), "/%zu", cases[i].bytes);
        ask(&t, 1, path, NULL);
        h2_expect(&t, "1:200,content-length=*");
        for (size_t got = 0; got < cases[i].bytes; got = t.data[0]) {
            h2_window(&t, 1, cases[i].each);
            mk_test_settle(&w);
            h2_listen(&t);
            size_t expected = got + cases[i].each < cases[i].bytes ? got + cases[i].each : cases[i].bytes;
            assert_int_equal(t.data[0], expected);
            mk_test_pass(&w, 15000);
            h2_ping(&t, false);
        }
        h2_window(&t, 1, 1); /* a generator says only now that this was all */
        mk_test_settle(&w);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

/* One window for all. */
static void test_the_connections_window(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(give);
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX);
    ask(&t, 1, "/60000", NULL);
    ask(&t, 3, "/60000", NULL);
    h2_expect(&t, "ACK*1:#60000!*3:#5535");
    h2_window(&t, 0, 465);
    h2_expect(&t, "3:#465");
    h2_window(&t, 0, 100000);
    h2_expect(&t, "3:#54000!");
    h2_close(&t);
}

static void test_windows_that_shrink_and_burst(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(1000);
    ask(&t, 1, "/3000", NULL);
    h2_expect(&t, "1:200* 1:#1000");
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0); /* 1000 below nothing */
    h2_window(&t, 1, 1000);
    h2_expect(&t, "ACK");
    h2_window(&t, 1, 1);
    h2_expect(&t, "1:\"?\"");
    h2_window(&t, 1, INT32_MAX);
    h2_window(&t, 1, INT32_MAX); /* too much of it */
    h2_expect(&t, "1:RST(3)");
    h2_window(&t, 0, INT32_MAX);
    h2_expect(&t, "GOAWAY(1,3)");
    h2_close(&t);
}

/* ── whose turn it is ── */

static void test_priorities(void **state)
{
    static const struct {
        const char *priorities[3];
        const char *turns; /* by frames */
    } cases[] = {
        {{NULL, NULL, NULL}, "111333555"},        {{"u=3", "u=3", "u=3"}, "111333555"},
        {{"i", "i", "i"}, "135135135"},           {{"u=4", NULL, "u=1"}, "555333111"},
        {{"u=1,i", "u=0", "u=1,i"}, "333151515"}, {{"u=7", "u=0, i", "u=0, i"}, "353535111"},
        {{"garbled", "u=9", NULL}, "111333555"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = open_giving(INT32_MAX);
        for (int32_t n = 0; n < 3; n++)
            ask(&t, 2 * n + 1, "/49000", cases[i].priorities[n]);
        mk_test_settle(&w);
        h2_listen(&t);
        if (strncmp(t.turns.p, cases[i].turns, 9) != 0)
            fail_msg("case %zu: %s, not %s", i, t.turns.p, cases[i].turns);
        assert_int_equal(w.done, 3);
        h2_close(&t);
    }
}

static void update(struct mk_test_h2 *t, int32_t id, const char *field)
{
    char payload[64];
    h2_put32((uint8_t *)payload, (uint32_t)id);
    strcpy(payload + 4, field);
    h2_frame(t, 0x10, 0, 0, mk_str(payload, 4 + strlen(field)));
}

static void test_updates(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX);
    t.end->room = 0; /* so that all are there before the first byte leaves */
    for (int32_t id = 1; id <= 5; id += 2)
        ask(&t, id, "/200000", NULL);
    mk_test_settle(&w);
    update(&t, 5, "u=0");
    update(&t, 99, "u=0"); /* nobody's yet */
    mk_test_settle(&w);
    mk_test_take(t.end, SIZE_MAX);
    mk_test_settle(&w);
    h2_listen(&t);
    const char *first = strrchr(t.turns.p, '5');
    assert_non_null(first);
    assert_null(strchr(t.turns.p, '3') < first ? t.turns.p : NULL); /* 5 is done before 3 begins */
    assert_int_equal(w.done, 3);
    h2_close(&t);
}

/* A stream whose window is closed does not hold up the others, whatever its urgency. */
static void test_the_urgent_one_cannot(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(16384);
    ask(&t, 1, "/49000", "u=0");
    h2_expect(&t, "1:200* 1:#16384");
    ask(&t, 3, "/16383", NULL);
    h2_expect(&t, "3:200* 3:#16383!");
    h2_window(&t, 1, 100000);
    h2_expect(&t, "1:#32616!");
    h2_close(&t);
}

/* Of one connection so much, then another one has its turn. */
static void test_slices(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX), other = h2_connect();
    ask(&t, 1, "/8000000", NULL);
    h2_get_path(&other, 1, "/5");
    unsigned turns = 0;
    while (!w.done && turns++ < 10)
        assert_int_equal(mk__loop_turn(&w.loop), 0);
    h2_listen(&t);
    h2_listen(&other);
    assert_int_equal(other.data[0], 5);
    assert_true(t.data[0] > 0 && t.data[0] < 2000000);
    mk_test_settle(&w);
    h2_listen(&t);
    assert_int_equal(t.data[0], 8000000);
    h2_free(&other);
    h2_close(&t);
}

/* Input likewise. */
static void test_slices_of_input(void **state)
{
    static char much[16384];
    (void)state;
    struct mk_test_h2 t = h2_open(read_all), other = h2_connect();
    h2_post(&t, 1);
    mk_test_settle(&w);
    h2_data(&t, 1, 0, mk_str(much, sizeof(much)));
    for (int i = 0; i < 20; i++)
        h2_frame(&t, 0xfa, 0, 0, mk_str(much, sizeof(much))); /* of a kind that nobody knows */
    h2_get_path(&other, 1, "/");
    w.handler = NULL;
    assert_int_equal(mk__loop_turn(&w.loop), 0);
    assert_int_equal(mk__loop_turn(&w.loop), 0);
    h2_listen(&other);
    assert_int_equal(other.data[0], 5);
    assert_true(t.end->read_at < t.end->to_server.len);
    mk_test_settle(&w);
    h2_free(&other);
    h2_close(&t);
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX);
    for (int32_t n = 0; n < 100; n++)
        ask(&t, 2 * n + 1, n % 2 ? "/1000" : "/20000", n % 3 ? "i" : NULL);
    mk_test_settle(&w);
    h2_listen(&t);
    for (int n = 0; n < 100; n++)
        assert_int_equal(t.data[n], n % 2 ? 1000 : 20000);
    assert_int_equal(w.done, 100);
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

static void test_more_than_there_may_be(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(remember);
    for (int32_t n = 0; n < 101; n++)
        h2_get_path(&t, 2 * n + 1, "/");
    h2_expect(&t, "GOAWAY(199,1)"); /* it knows the limit */
    assert_int_equal(w.requests, 100);
    h2_close(&t);

    open_world(remember);
    t = h2_begin(mk_test_connect(&w, MK_STR("")));
    for (int32_t n = 0; n < 101; n++)
        h2_get_path(&t, 2 * n + 1, "/");
    h2_expect(&t, "*201:RST(7)"); /* this one does not yet: refused */
    assert_int_equal(w.requests, 100);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}

/* ── ends ── */

/* Who sends no more takes no more than what is there already. */
static void test_the_client_ends_its_side(void **state)
{
    (void)state;
    struct mk_test_h2 t = open_giving(INT32_MAX);
    ask(&t, 1, "/100000", NULL);
    ask(&t, 3, "/wait", NULL);
    mk_test_fin(t.end);
    h2_expect(&t, "1:200* 1:#100000!");
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_int_equal(w.done, 2);
    assert_int_equal(w.aborted, 1);
    h2_close(&t);
}

static void test_a_client_that_goes(void **state)
{
    static const char *const paths[] = {"/wait", "/1000000", NULL};
    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        for (int resets = 0; resets < 2; resets++) {
            struct mk_test_h2 t = open_giving(INT32_MAX);
            t.end->room = 30000;
            if (paths[i])
                ask(&t, 1, paths[i], NULL);
            else
                h2_head(&t, 1, 0, HEAD("GET", "/")); /* amid a head */
            mk_test_settle(&w);
            if (resets)
                mk_test_reset(t.end);
            else
                mk_test_fin(t.end);
            mk_test_pass(&w, resets ? 0 : 100000);
            assert_string_equal(mk_test_state(t.end), "closed");
            assert_int_equal(w.done, paths[i] != NULL);
            assert_int_equal(w.aborted, paths[i] != NULL);
            h2_close(&t);
        }
    }
}

static void test_idle_connections_end(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, HELLO_OF(1));
    mk_test_pass(&w, 3000);
    h2_ping(&t, false); /* is no work */
    mk_test_pass(&w, 1999);
    h2_expect(&t, "PONG");
    assert_string_equal(mk_test_state(t.end), "idle");
    mk_test_pass(&w, 1);
    h2_expect(&t, "GOAWAY(1,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    mk_test_fin(t.end);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
}

static void test_nothing_is_asked(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    assert_string_equal(mk_test_state(t.end), "fresh");
    for (int i = 0; i < 14; i++) {
        mk_test_pass(&w, 1000);
        h2_ping(&t, false);
    }
    mk_test_pass(&w, 999);
    h2_expect(&t, "PONG*PONG");
    mk_test_pass(&w, 1);
    h2_expect(&t, "GOAWAY(0,0)");
    mk_test_pass(&w, 2000);
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
}

static void test_a_head_without_an_end(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    h2_head(&t, 1, 0, HEAD("GET", "/"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "head");
    mk_test_pass(&w, 10000);
    h2_frame(&t, NGHTTP2_CONTINUATION, 0, 1, MK_STR("")); /* that is no progress */
    mk_test_pass(&w, 4999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "GOAWAY(*");
    assert_string_equal(mk_test_state(t.end), "linger");
    assert_int_equal(w.requests, 0);
    h2_close(&t);
}

/* ── farewells ── */

static void wait_or_hello(struct mk_request *req, struct mk_test_world *world)
{
    remember(req, world);
    if (mk_request_path(req).len > 1)
        return;
    mk_response_borrow(req, MK_STR("hello"));
    mk_response_end(req);
}

enum { FRESH, IDLE, BUSY };

static struct mk_test_h2 bring_to(int what)
{
    struct mk_test_h2 t = h2_open(wait_or_hello);
    if (what == IDLE)
        h2_get_path(&t, 1, "/");
    if (what == BUSY)
        h2_get_path(&t, 1, "/wait");
    h2_expect(&t, "*");
    return t;
}

static void test_drain(void **state)
{
    static const struct {
        int what;
        const char *heard;
        const char *state;
    } cases[] = {
        {IDLE, "GOAWAY(2147483647,0) GOAWAY(1,0)", "linger"},
        {BUSY, "GOAWAY(2147483647,0) PING", "streams"},
        {FRESH, "GOAWAY(2147483647,0) PING", "fresh"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = bring_to(cases[i].what);
        mk__conn_drain(&w.http);
        h2_expect(&t, cases[i].heard);
        assert_string_equal(mk_test_state(t.end), cases[i].state);
        if (cases[i].what != IDLE) {
            h2_get_path(&t, 3, "/"); /* was on its way */
            h2_expect(&t, HELLO_OF(3) "*");
            h2_ping(&t, true);
            mk_test_settle(&w);
            if (cases[i].what == BUSY)
                h2_expect(&t, "GOAWAY(3,0)");
        }
        if (cases[i].what == BUSY) {
            struct mk__conn *conn = mk_test_connection(t.end);
            struct mk__h2_stream *s = MK_LIST_FIRST(&conn->h2->streams, struct mk__h2_stream, link);
            mk_response_end(s->req);
            h2_expect(&t, "1:200,content-length=0!");
        }
        mk_test_pass(&w, 15000);
        assert_string_equal(mk_test_state(t.end), "closed");
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

/* Connections end with what they have; idle ones have their time. */
static void test_leave(void **state)
{
    (void)state;
    struct mk_test_h2 t = bring_to(IDLE);
    mk__conn_leave(&w.http);
    h2_expect(&t, "GOAWAY(2147483647,0) PING");
    assert_string_equal(mk_test_state(t.end), "idle");
    mk__conn_leave(&w.http); /* twice is once */
    h2_expect(&t, "");
    h2_get_path(&t, 3, "/");
    h2_expect(&t, HELLO_OF(3));
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(3,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

static void test_so_many_requests_per_connection(void **state)
{
    (void)state;
    struct mk_test_h2 t = h2_open(NULL);
    w.settings.requests_max = 2;
    h2_get_path(&t, 1, "/");
    h2_expect(&t, HELLO_OF(1));
    h2_get_path(&t, 3, "/");
    h2_expect(&t, "*GOAWAY(2147483647,0)*PING*");
    h2_get_path(&t, 5, "/");
    h2_expect(&t, HELLO_OF(5)); /* it did not know */
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(5,0)");
    h2_get_path(&t, 7, "/"); /* it does */
    h2_expect(&t, "");
    assert_int_equal(w.requests, 3);
    h2_close(&t);
}

static void test_without_keep_alive(void **state)
{
    (void)state;
    open_world(NULL);
    w.settings.keep_alive = false;
    struct mk_test_h2 t = h2_begin(mk_test_connect(&w, MK_STR("")));
    h2_get_path(&t, 1, "/");
    h2_ping(&t, true);
    h2_expect(&t, "*GOAWAY(2147483647,0)*PING*" HELLO_OF(1));
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(1,0)");
    h2_close(&t);
}

/* An idle session holds more than it is worth when memory is short. */
static void test_idle_ones_go_when_memory_is_short(void **state)
{
    (void)state;
    struct mk_test_h2 t = bring_to(IDLE);
    w.account.bytes_max = w.account.bytes + w.account.bytes / 3 + 64 * 1024;
    h2_ping(&t, false);
    h2_expect(&t, "PONG");
    w.account.bytes_max = w.account.bytes + w.account.bytes / 4;
    h2_get_path(&t, 3, "/wait");
    h2_expect(&t, "");
    mk_response_end(current);
    h2_expect(&t, "3:200*");
    h2_ping(&t, false);
    h2_expect(&t, "*GOAWAY(3,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

static void test_a_clients_farewell(void **state)
{
    (void)state;
    struct mk_test_h2 t = bring_to(BUSY);
    h2_goaway(&t);
    h2_expect(&t, "");
    assert_string_equal(mk_test_state(t.end), "streams");
    mk_response_end(current);
    h2_expect(&t, "1:200,content-length=0!*");
    assert_string_equal(mk_test_state(t.end), "linger");
    assert_int_equal(w.aborted, 0);
    h2_close(&t);

    t = bring_to(IDLE);
    h2_goaway(&t);
    h2_expect(&t, "");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_clients),
        cmocka_unit_test(test_slow_clients_have_their_time),
        cmocka_unit_test(test_a_client_that_takes_nothing),
        cmocka_unit_test(test_a_window_that_stays_closed),
        cmocka_unit_test(test_questions_without_listening),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_the_connections_window),
        cmocka_unit_test(test_windows_that_shrink_and_burst),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_the_urgent_one_cannot),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_slices_of_input),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_more_than_there_may_be),
        cmocka_unit_test(test_the_client_ends_its_side),
        cmocka_unit_test(test_a_client_that_goes),
        cmocka_unit_test(test_idle_connections_end),
        cmocka_unit_test(test_nothing_is_asked),
        cmocka_unit_test(test_a_head_without_an_end),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_so_many_requests_per_connection),
        cmocka_unit_test(test_without_keep_alive),
        cmocka_unit_test(test_idle_ones_go_when_memory_is_short),
        cmocka_unit_test(test_a_clients_farewell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
