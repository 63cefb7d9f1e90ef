// SPDX-License-Identifier: Apache-2.0
/* Turns of HTTP/2 connections: whose bytes leave when, slow clients, windows and slices. */
#include "http/h2_fixture.h"

#include <errno.h>

/* ── slow clients ── */

/* The client reads so many bytes at a time: everything arrives, and no more memory is taken than an output is long. */
TEST(slow_clients)
{
    static const struct {
        size_t room, each;
    } cases[] = {{0, 1}, {0, 9}, {10, 100}, {0, 1000}, {100, 16393}, {0, 20000}, {70000, 65535}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t bytes = cases[i].each < 100 ? 3000 : 300000;
        char path[32];
        struct mk_test_h2 t = h2_open_giving(INT32_MAX);
        snprintf(path, sizeof(path), "/%zu", bytes);
        t.end->room = cases[i].room;
        for (int32_t id = 1; id <= 5; id += 2)
            h2_ask(&t, id, path, "i");
        mk_test_settle(&w);
        for (size_t n = 0; w.done < 3 || mk_test_connection(t.end)->state == MK__CONN_STREAMS_WRITE; n++) {
            assert_true(w.account.bytes < 360 * 1024); /* a write, what is held of it, and a session */
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
TEST(slow_clients_have_their_time)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX);
    t.end->room = 0;
    for (int32_t id = 1; id <= 5; id += 2)
        h2_ask(&t, id, "/100000", NULL);
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

TEST(a_client_that_takes_nothing)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX);
    t.end->room = 20000;
    h2_ask(&t, 1, "/1000000", NULL);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "streams_write");
    mk_test_pass(&w, 19000);
    mk_test_take(t.end, 10000);
    mk_test_pass(&w, 19999);
    assert_string_equal(mk_test_state(t.end), "streams_write");
    assert_int_equal(w.done, 0);
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);
}

/* It takes everything but one stream. */
TEST(a_window_that_stays_closed)
{
    struct mk_test_h2 t = h2_open_giving(1000);
    h2_ask(&t, 1, "/100000", NULL);
    h2_expect(&t, "1:200* 1:#1000");
    for (int32_t id = 3; id < 11; id += 2) {
        mk_test_pass(&w, 4999);
        h2_ask(&t, id, "/900", NULL);
        h2_expect(&t, "*!");
    }
    mk_test_pass(&w, 3);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(2)");
    h2_close(&t);
}

/* A stream may wait while others have the window of the connection; when they no longer send, its time begins anew. */
TEST(a_stream_behind_others)
{
    struct mk_test_h2 t = h2_open(h2_give);
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX);
    h2_ask(&t, 1, "/100000", "u=0");
    h2_ask(&t, 3, "/1000", NULL);
    h2_expect(&t, "ACK*1:#65535*");
    mk_test_pass(&w, 15000);
    h2_window(&t, 0, 1000);
    h2_expect(&t, "1:#1000");
    mk_test_pass(&w, 19999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(2)");
    mk_test_pass(&w, 4999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "3:RST(2)");
    h2_close(&t);
}

/* A client that sends requests but reads nothing cannot use up the memory. */
TEST(questions_without_listening)
{
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

TEST(windows)
{
    static const struct {
        uint32_t each;
        size_t bytes;
    } cases[] = {{1, 100}, {10, 1000}, {16384, 100000}, {16385, 100000}, {65535, 200000}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[32];
        struct mk_test_h2 t = h2_open_giving(0);
        snprintf(path, sizeof(path), "/%zu", cases[i].bytes);
        h2_ask(&t, 1, path, NULL);
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
TEST(the_connections_window)
{
    struct mk_test_h2 t = h2_open(h2_give);
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX);
    h2_ask(&t, 1, "/60000", NULL);
    h2_ask(&t, 3, "/60000", NULL);
    h2_expect(&t, "ACK*1:#60000!*3:#5535");
    h2_window(&t, 0, 465);
    h2_expect(&t, "3:#465");
    h2_window(&t, 0, 100000);
    h2_expect(&t, "3:#54000!");
    h2_close(&t);
}

TEST(windows_that_shrink_and_burst)
{
    struct mk_test_h2 t = h2_open_giving(1000);
    h2_ask(&t, 1, "/3000", NULL);
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

/* A SETTINGS frame may open the window of a stream to its limit, not beyond it: RFC 9113 section 6.9.2. */
TEST(windows_that_settings_open)
{
    static const struct {
        uint32_t more;
        const char *expected;
    } cases[] = {{65535, "ACK"}, {65536, "GOAWAY(*,3)"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(h2_give);
        h2_ask(&t, 1, "/100000", NULL);
        h2_expect(&t, "*1:#65535");
        h2_window(&t, 1, cases[i].more); /* that of the connection stays closed */
        h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX);
        h2_expect(&t, cases[i].expected);
        h2_close(&t);
    }
}

/* ── whose turn it is ── */

TEST(priorities)
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
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open_giving(INT32_MAX);
        for (int32_t n = 0; n < 3; n++)
            h2_ask(&t, 2 * n + 1, "/49000", cases[i].priorities[n]);
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
    int len = snprintf(payload + 4, sizeof(payload) - 4, "%s", field);
    h2_frame(t, 0x10, 0, 0, mk_str(payload, 4 + (size_t)len));
}

TEST(updates)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX);
    t.end->room = 0; /* so that all are there before the first byte leaves */
    for (int32_t id = 1; id <= 5; id += 2)
        h2_ask(&t, id, "/200000", NULL);
    mk_test_settle(&w);
    update(&t, 5, "u=0");
    update(&t, 99, "u=0"); /* the stream does not exist yet */
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
TEST(the_urgent_one_cannot)
{
    struct mk_test_h2 t = h2_open_giving(16384);
    h2_ask(&t, 1, "/49000", "u=0");
    h2_expect(&t, "1:200* 1:#16384");
    h2_ask(&t, 3, "/16383", NULL);
    h2_expect(&t, "3:200* 3:#16383!");
    h2_window(&t, 1, 100000);
    h2_expect(&t, "1:#32616!");
    h2_close(&t);
}

/* Of one connection so much, then another one has its turn. */
TEST(slices)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX), other = h2_connect();
    h2_ask(&t, 1, "/8000000", NULL);
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
TEST(slices_of_input)
{
    static char much[16384];
    struct mk_test_h2 t = h2_open(read_all), other = h2_connect();
    h2_post(&t, 1);
    mk_test_settle(&w);
    h2_data(&t, 1, 0, mk_str(much, sizeof(much)));
    for (int i = 0; i < 20; i++)
        h2_frame(&t, 0xfa, 0, 0, mk_str(much, sizeof(much))); /* of an unknown type */
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

TEST(many_at_once)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX);
    for (int32_t n = 0; n < 100; n++)
        h2_ask(&t, 2 * n + 1, n % 2 ? "/1000" : "/20000", n % 3 ? "i" : NULL);
    mk_test_settle(&w);
    h2_listen(&t);
    for (int n = 0; n < 100; n++)
        assert_int_equal(t.data[n], n % 2 ? 1000 : 20000);
    assert_int_equal(w.done, 100);
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

TEST(more_than_there_may_be)
{
    struct mk_test_h2 t = h2_open(remember);
    for (int32_t n = 0; n < 101; n++)
        h2_get_path(&t, 2 * n + 1, "/");
    h2_expect(&t, "GOAWAY(199,1)"); /* it knows the limit */
    assert_int_equal(w.requests, 100);
    assert_int_equal(w.aborted, 100);
    h2_close(&t);

    open_fixture(remember);
    t = h2_begin(mk_test_connect(&w, MK_STR("")));
    for (int32_t n = 0; n < 101; n++)
        h2_get_path(&t, 2 * n + 1, "/");
    h2_expect(&t, "*201:RST(7)"); /* this one does not yet: refused */
    assert_int_equal(w.requests, 100);
    mk__conn_abort_all(&w.http);
    h2_close(&t);
}
