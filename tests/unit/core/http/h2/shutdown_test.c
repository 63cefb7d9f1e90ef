// SPDX-License-Identifier: Apache-2.0
/* How HTTP/2 connections end: clients that close, timeouts, GOAWAY of either side. */
#include "http/h2/h2.h"
#include "http/h2_fixture.h"
#include "http/h2/evict.h"

/* ── ends ── */

/* A client that has closed its side gets what was already written. */
TEST(the_client_ends_its_side)
{
    struct mk_test_h2 t = h2_open_giving(INT32_MAX);
    h2_ask(&t, 1, "/100000", NULL);
    h2_ask(&t, 3, "/wait", NULL);
    mk_test_fin(t.end);
    h2_expect(&t, "1:200* 1:#100000!");
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_int_equal(w.done, 2);
    assert_int_equal(w.aborted, 1);
    h2_close(&t);
}

TEST(a_client_that_goes)
{
    static const char *const paths[] = {"/wait", "/1000000", NULL};
    for (size_t i = 0; i < COUNT(paths); i++) {
        for (int resets = 0; resets < 2; resets++) {
            struct mk_test_h2 t = h2_open_giving(INT32_MAX);
            t.end->room = 30000;
            if (paths[i])
                h2_ask(&t, 1, paths[i], NULL);
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

TEST(idle_connections_end)
{
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

TEST(nothing_is_asked)
{
    struct mk_test_h2 t = h2_open(NULL);
    assert_string_equal(mk_test_state(t.end), "new");
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

TEST(a_head_without_an_end)
{
    struct mk_test_h2 t = h2_open(NULL);
    h2_head(&t, 1, 0, HEAD("GET", "/"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "read_head");
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

/* ── GOAWAY ── */

static void wait_or_hello(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (mk_request_path(req).len > 1)
        return;
    mk_response_write_ref(req, MK_STR("hello"));
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

TEST(drain)
{
    static const struct {
        int what;
        const char *heard;
        const char *state;
    } cases[] = {
        {IDLE, "GOAWAY(1,0)", "linger"},
        {BUSY, "GOAWAY(2147483647,0) PING", "streams"},
        {FRESH, "GOAWAY(2147483647,0) PING", "new"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = bring_to(cases[i].what);
        mk__conn_drain_all(&w.http);
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
            struct mk__h2_stream *s = MK_LIST_FIRST(&mk__h2_of(conn)->streams, struct mk__h2_stream, link);
            mk_response_end(s->req);
            h2_expect(&t, "1:200,content-length=0!");
        }
        mk_test_pass(&w, 15000);
        assert_string_equal(mk_test_state(t.end), "closed");
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

/* The clients do not acknowledge the PING: with any other frames they have the grace period. */
TEST(a_drain_waits_a_moment)
{
    for (int what = FRESH; what <= BUSY; what++) {
        struct mk_test_h2 t = bring_to(what);
        if (what == IDLE) { /* it has had the warning before */
            mk__conn_retire_all(&w.http);
            mk_test_pass(&w, 3000);
            assert_string_equal(mk_test_state(t.end), "idle");
        }
        mk__conn_drain_all(&w.http);
        h2_expect(&t, "GOAWAY(2147483647,0) PING");
        mk_test_pass(&w, what == BUSY ? 1500 : 999);
        h2_expect(&t, "");
        mk_test_pass(&w, 1);
        if (what == BUSY) {
            assert_string_equal(mk_test_state(t.end), "streams");
            mk_response_end(held_req);
            h2_expect(&t, "1:200*");
            mk_test_pass(&w, 500);
            h2_window(&t, 0, 1000);
            mk_test_pass(&w, 499);
            assert_string_equal(mk_test_state(t.end), "idle");
            mk_test_pass(&w, 1);
        }
        h2_expect(&t, what == FRESH ? "GOAWAY(0,0)" : "GOAWAY(1,0)");
        assert_string_equal(mk_test_state(t.end), "linger");
        h2_close(&t);
    }
}

TEST(a_moment_is_not_prolonged)
{
    struct mk_test_h2 t = bring_to(FRESH);
    mk__conn_drain_all(&w.http);
    for (int i = 0; i < 9; i++) {
        mk_test_pass(&w, 111);
        h2_ping(&t, false);
        h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000);
    }
    h2_expect(&t, "GOAWAY(2147483647,0) PING*PONG ACK");
    mk_test_pass(&w, 1);
    h2_expect(&t, "GOAWAY(0,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);

    t = bring_to(FRESH); /* nor by requests, but these are answered */
    mk__conn_drain_all(&w.http);
    mk_test_pass(&w, 999);
    h2_get_path(&t, 1, "/wait");
    mk_test_pass(&w, 3000);
    h2_expect(&t, "GOAWAY(2147483647,0) PING");
    mk_response_end(held_req);
    h2_expect(&t, "1:200,content-length=0! GOAWAY(1,0)");
    h2_close(&t);
}

/* A client that reads nothing gets no GOAWAY either. */
TEST(a_moment_for_the_deaf)
{
    struct mk_test_h2 t = bring_to(FRESH);
    t.end->room = 0;
    mk__conn_drain_all(&w.http);
    mk_test_pass(&w, 999);
    assert_string_equal(mk_test_state(t.end), "streams_write");
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
}

static void answer_and_close(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_close_connection(req);
    mk_response_end(req);
}

TEST(a_handler_closes)
{
    struct mk_test_h2 t = h2_open(answer_and_close);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "GOAWAY(2147483647,0) PING 1:200,content-length=0!");
    mk_test_pass(&w, 999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "GOAWAY(1,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

/* Connections end with what they have; idle ones have their time. */
TEST(leave)
{
    struct mk_test_h2 t = bring_to(IDLE);
    mk__conn_retire_all(&w.http);
    h2_expect(&t, "GOAWAY(2147483647,0) PING");
    assert_string_equal(mk_test_state(t.end), "idle");
    mk__conn_retire_all(&w.http); /* twice is once */
    h2_expect(&t, "");
    h2_get_path(&t, 3, "/");
    h2_expect(&t, HELLO_OF(3));
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(3,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

TEST(so_many_requests_per_connection)
{
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

TEST(without_keep_alive)
{
    open_fixture(NULL);
    w.settings.keep_alive = false;
    struct mk_test_h2 t = h2_begin(mk_test_connect(&w, MK_STR("")));
    h2_get_path(&t, 1, "/");
    h2_ping(&t, true);
    h2_expect(&t, "*GOAWAY(2147483647,0)*PING*" HELLO_OF(1));
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(1,0)");
    h2_close(&t);
}

/* The next generation may lie where the last one did. */
TEST(other_settings_at_the_same_place)
{
    struct mk__context_buffers none = {0};
    struct mk_test_h2 t = bring_to(IDLE);
    mk__http_apply_settings(&w.http, w.http.settings, &none);
    h2_expect(&t, "GOAWAY(2147483647,0) PING");
    struct mk_test_h2 later = h2_connect();
    h2_get_path(&later, 1, "/");
    h2_expect(&later, HELLO_OF(1)); /* it began with these, and stays */
    h2_free(&later);
    h2_close(&t);
}

/* It never answers our PING, as if it had not heard that it should go. */
TEST(a_client_that_does_not_go)
{
    char goaway[32];
    open_fixture(NULL);
    const int most = (int)w.settings.h2->streams_max;
    w.settings.keep_alive = false;
    struct mk_test_h2 t = h2_begin(mk_test_connect(&w, MK_STR("")));
    h2_expect(&t, "*GOAWAY(2147483647,0)*");
    for (int i = 0; i < most; i++) {
        h2_get_path(&t, 2 * i + 1, "/");
        h2_expect(&t, "*:\"hello\"!");
    }
    for (int i = most; i < most + 2; i++)
        h2_get_path(&t, 2 * i + 1, "/");
    snprintf(goaway, sizeof(goaway), "*GOAWAY(%d,0)*", 2 * most + 3);
    h2_expect(&t, goaway);
    h2_close(&t);
}

/* Its generation has given way to one without HTTP/2. */
TEST(limits_when_it_is_switched_off)
{
    struct mk_test_h2 t = bring_to(IDLE);
    int64_t most = w.settings.h2->rates_max[MK__H2_FLOOD_PING];
    w.settings.h2 = NULL;
    for (int64_t i = 0; i <= most; i++)
        h2_ping(&t, false);
    h2_expect(&t, "*GOAWAY(*,11)");
    h2_close(&t);
}

/* An idle session holds more than it is worth when memory is short. */
TEST(idle_ones_go_when_memory_is_short)
{
    struct mk_test_h2 t = bring_to(IDLE);
    w.account.bytes_max = w.account.bytes + w.account.bytes / 3 + 64 * 1024;
    h2_ping(&t, false);
    h2_expect(&t, "PONG");
    w.account.bytes_max = w.account.bytes + w.account.bytes / 4;
    h2_get_path(&t, 3, "/wait");
    h2_expect(&t, "");
    mk_response_end(held_req);
    h2_expect(&t, "3:200*GOAWAY(3,0)"); /* behind the last answer */
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

/* Idle connections have no turn of their own: accepting another one gives them one. */
TEST(silent_ones_go_when_memory_is_short)
{
    struct mk_test_h2 t[3];
    t[0] = bring_to(IDLE);
    struct mk_test_client *h1 = mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    for (int i = 1; i < 3; i++) {
        t[i] = h2_connect();
        h2_get_path(&t[i], 1, i == 1 ? "/wait" : "/");
        h2_expect(&t[i], i == 1 ? "" : HELLO_OF(1));
    }
    w.account.bytes_max = w.account.bytes * 2;
    mk__h2_evict_close_idle(&w.http, 16);
    h2_expect(&t[0], "");
    w.account.bytes_max = w.account.bytes + w.account.bytes / 4;
    size_t before = w.account.bytes;
    mk__h2_evict_close_idle(&w.http, 1);
    assert_true(w.account.bytes + 1024 < before); /* at once: other connections wait */
    h2_expect(&t[0], "GOAWAY(1,0)");
    h2_expect(&t[2], "");
    w.account.bytes_max = w.account.bytes + w.account.bytes / 4;
    mk__h2_evict_close_idle(&w.http, 16);
    h2_expect(&t[2], "GOAWAY(1,0)");
    assert_string_equal(mk_test_state(t[0].end), "linger");
    assert_string_equal(mk_test_state(t[1].end), "streams");
    assert_string_equal(mk_test_state(h1), "idle");
    w.account.bytes_max = 0;
    mk_test_reset(t[1].end);
    h2_free(&t[1]);
    h2_free(&t[2]);
    h2_close(&t[0]);
}

TEST(goaway_of_the_client)
{
    struct mk_test_h2 t = bring_to(BUSY);
    h2_goaway(&t);
    h2_expect(&t, "");
    assert_string_equal(mk_test_state(t.end), "streams");
    mk_response_end(held_req);
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
