// SPDX-License-Identifier: Apache-2.0
/* Streams that a handler takes over: conditions, bytes in both directions, and the end. */
#include "http/h2_fixture.h"

enum { ECHO_BYTES = 40000 };

#include "http/echo.h"

#define EXTENDED HEAD("CONNECT", "/") "|:protocol echo"
#define CONNECT ":method CONNECT|:authority h:1"

static struct mk_test_h2 start(const char *fields)
{
    reset_echo();
    struct mk_test_h2 t = h2_open(answer);
    if (fields)
        h2_head(&t, 1, END_HEADERS, fields);
    return t;
}

static struct mk_test_h2 start_echo(void)
{
    struct mk_test_h2 t = start(EXTENDED);
    h2_expect(&t, "1:200");
    return t;
}

static void finish(struct mk_test_h2 *t)
{
    mk__conn_abort_all(&w.http);
    h2_close(t);
}

TEST(what_may_be_tunnelled)
{
    static const struct {
        const char *fields;
        uint8_t flags;
        int result;
        const char *heard;
    } cases[] = {
        {EXTENDED, 0, 0, "1:200"},
        {EXTENDED "|origin o", 0, 0, "1:200"},
        {CONNECT, 0, 0, "1:200"},
        {HEAD("GET", "/"), END_STREAM, -EINVAL, "1:400*!"},
        {HEAD("POST", "/"), 0, -EINVAL, "1:400*!"},
        {HEAD("GET", "/") "|upgrade echo", END_STREAM, 1, "1:RST(1)"},
        {HEAD("GET", "/") "|:protocol echo", 0, 1, "1:RST(1)"},
        {":method CONNECT|:authority h|:protocol echo", 0, 1, "1:RST(1)"},
        {":method CONNECT|:authority h:1|:path /", 0, 1, "1:RST(1)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = start(NULL);
        echo.result = 1;
        h2_head(&t, 1, END_HEADERS | cases[i].flags, cases[i].fields);
        h2_expect(&t, cases[i].heard);
        assert_int_equal(echo.result, cases[i].result);
        assert_int_equal(echo.calls > 0, cases[i].result == 0);
        finish(&t);
    }
}

TEST(echo)
{
    struct mk_test_h2 t = start(EXTENDED);
    h2_data(&t, 1, 0, MK_STR("early"));
    h2_expect(&t, "1:200 1:\"early\"");
    assert_string_equal(mk_test_state(t.end), "streams");
    h2_data(&t, 1, 0, MK_STR("hello"));
    h2_expect(&t, "1:\"hello\"");
    h2_data(&t, 1, END_STREAM, MK_STR("end"));
    h2_expect(&t, "1:\"end\"!");
    assert_int_equal(echo.ended, 1);
    assert_string_equal(mk_test_state(t.end), "idle");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

/* Many times what fits into anything, with windows that open by little. */
TEST(back_pressure)
{
    enum { ROUNDS = 40, BYTES = 16384 };
    static char block[BYTES];
    struct mk_test_h2 t = start(EXTENDED);
    t.patterned = true;
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100);
    mk_test_settle(&w);
    size_t sent = 0, before = w.account.bytes;
    for (int i = 0; i < 4; i++) { /* as much as there is a window for */
        for (size_t n = 0; n < BYTES; n++)
            block[n] = mk_test_byte(sent + n);
        h2_data(&t, 1, 0, mk_str(block, BYTES));
        sent += BYTES;
    }
    mk_test_settle(&w);
    h2_listen(&t);
    assert_int_equal(t.data[0], 100);
    assert_true(w.account.bytes < before + 128 * 1024);
    for (int i = 0; i < 10000 && t.data[0] < sent; i++) {
        h2_window(&t, 1, 1000);
        h2_window(&t, 0, 1000);
        mk_test_settle(&w);
        h2_listen(&t);
    }
    assert_int_equal(t.data[0], sent);
    assert_int_equal(echo.read, sent);
    assert_int_equal(w.done, 0);
    finish(&t);
}

TEST(no_reader)
{
    static char window[65536];
    struct mk_test_h2 t = start_echo();
    echo.deaf = true;
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, "");
    h2_data(&t, 1, 0, MK_STR("x"));
    h2_expect(&t, "1:RST(3)"); /* beyond its window */
    assert_int_equal(w.aborted, 1);
    finish(&t);
}

/* A handler that reads between two turns opens the window at once. */
TEST(a_window_that_opens_between_turns)
{
    static char window[65536];
    struct mk_test_h2 t = start_echo();
    echo.deaf = true;
    h2_data(&t, 1, 0, mk_str(window, sizeof(window)));
    h2_expect(&t, "");
    size_t left = 40000;
    while (left)
        left -= (size_t)mk_tunnel_read(held_req, window, left);
    h2_expect(&t, "1:+*");
    finish(&t);
}

TEST(it_may_be_taken_later)
{
    struct mk_test_h2 t = start(NULL);
    echo.late = true;
    h2_head(&t, 1, END_HEADERS, EXTENDED);
    h2_data(&t, 1, 0, MK_STR("x"));
    h2_expect(&t, "");
    take(held_req);
    h2_expect(&t, "1:200 1:\"x\"");
    finish(&t);
}

TEST(silence_is_limited)
{
    struct mk_test_h2 t = start_echo();
    mk_test_pass(&w, 3599999);
    h2_data(&t, 1, 0, MK_STR("x"));
    mk_test_pass(&w, 3599999);
    h2_expect(&t, "1:\"x\"");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(2)");
    assert_int_equal(w.aborted, 1);
    finish(&t);
}

TEST(a_tunnel_that_is_woken)
{
    struct mk_test_h2 t = start_echo();
    echo.deaf = true;
    h2_data(&t, 1, 0, MK_STR("held"));
    mk_test_settle(&w);
    unsigned before = echo.calls;
    mk_test_pass(&w, 1000);
    assert_int_equal(echo.calls, before);
    echo.deaf = false;
    mk_tunnel_wake(held_req);
    h2_expect(&t, "1:\"held\"");
    assert_true(echo.calls > before && echo.calls < before + 4);
    finish(&t);
}

TEST(it_hears_of_a_drain)
{
    struct mk_test_h2 t = start_echo();
    assert_false(echo.events & MK_TUNNEL_DRAINING);
    unsigned before = echo.calls;
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_true(echo.events & MK_TUNNEL_DRAINING);
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_int_equal(echo.calls, before + 1); /* once */
    mk_tunnel_end(held_req);
    h2_expect(&t, "GOAWAY(2147483647,0) PING 1:!*");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    finish(&t);
}

TEST(ends)
{
    struct mk_test_h2 t = start_echo();
    mk_test_reset(t.end);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);

    t = start_echo();
    h2_rst(&t, 1);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "idle");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);

    t = start_echo();
    h2_data(&t, 1, 0, MK_STR("!"));
    h2_expect(&t, "1:RST(2)");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);

    t = start_echo();
    echo.shuts = true;
    h2_data(&t, 1, END_STREAM, MK_STR("x"));
    h2_expect(&t, "1:\"x\"!");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    h2_close(&t);
}

/* We end it: what the client still sends is thrown away, for as long as that of others. */
TEST(our_end)
{
    struct mk_test_h2 t = start_echo();
    mk_tunnel_end(held_req);
    h2_expect(&t, "1:!");
    assert_int_equal(w.done, 1);
    h2_data(&t, 1, 0, MK_STR("more"));
    mk_test_pass(&w, 1999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:RST(0)");
    assert_string_equal(mk_test_state(t.end), "idle");
    h2_close(&t);
}

/* What was written before the end arrives before it. */
TEST(the_end_comes_last)
{
    static char block[16384];
    struct mk_test_h2 t = start(NULL);
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 5);
    h2_head(&t, 1, END_HEADERS, EXTENDED);
    h2_expect(&t, "ACK 1:200");
    assert_int_equal(mk_tunnel_write(held_req, block, sizeof(block)), 16384);
    assert_int_equal(mk_tunnel_write(held_req, block, 1), -EAGAIN);
    mk_tunnel_end(held_req);
    h2_expect(&t, "1:#5");
    h2_window(&t, 1, 10000);
    h2_expect(&t, "1:#10000");
    h2_window(&t, 1, 10000);
    h2_expect(&t, "1:#6379!");
    assert_int_equal(w.done, 1);
    h2_close(&t);
}

/* We end our side only, and read on. */
TEST(a_half)
{
    struct mk_test_h2 t = start_echo();
    assert_int_equal(mk_tunnel_write(held_req, "last", 4), 4);
    assert_int_equal(mk_tunnel_shutdown(held_req), 0);
    assert_int_equal(mk_tunnel_write(held_req, "x", 1), -EPIPE);
    h2_expect(&t, "1:\"last\"!");
    assert_int_equal(w.done, 0);
    echo.deaf = true;
    h2_data(&t, 1, 0, MK_STR("more"));
    mk_test_settle(&w);
    char bytes[10];
    assert_int_equal(mk_tunnel_read(held_req, bytes, sizeof(bytes)), 4);
    assert_int_equal(mk_tunnel_read(held_req, bytes, sizeof(bytes)), -EAGAIN);
    echo.deaf = false;
    echo.read = 0;
    h2_data(&t, 1, END_STREAM, MK_STR("most"));
    mk_test_settle(&w);
    assert_int_equal(echo.read, 4);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    assert_string_equal(mk_test_state(t.end), "idle");
    h2_close(&t);
}

/* Likewise, and then one side resets it. */
TEST(ends_of_a_half)
{
    static const struct {
        const char *bytes; /* of the client; NULL: its reset; "": our end */
        const char *heard;
        unsigned aborted;
    } cases[] = {{NULL, "", 1}, {"!", "1:RST(2)", 1}, {"", "", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = start_echo();
        mk_tunnel_shutdown(held_req);
        h2_expect(&t, "1:!");
        if (!cases[i].bytes)
            h2_rst(&t, 1);
        else if (cases[i].bytes[0])
            h2_data(&t, 1, 0, mk_str_c(cases[i].bytes));
        else
            mk_tunnel_end(held_req);
        h2_expect(&t, cases[i].heard);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, cases[i].aborted);
        mk_test_pass(&w, 2000);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_close(&t);
    }
}
