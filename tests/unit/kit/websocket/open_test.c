// SPDX-License-Identifier: Apache-2.0
/* The life of WebSockets: closing by either side, time, failures, and the end of the stream. */
#include "fixture.h"

TEST(the_peer_closes)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    feed_frame(p, 0x88,
               "\x03\xe8"
               "bye",
               5);
    run(p, MK_TUNNEL_READ);
    assert_sent_text(p, "\x88\x02\x03\xe8");
    assert_logged(&f, "close 1000 \"bye\"\n");
    disconnect(p);
    p = connect_plain(&f);
    feed_frame(p, 0x88, "", 0);
    run(p, MK_TUNNEL_READ);
    assert_sent_text(p, "\x88\x00");
    assert_logged(&f, "close 1005 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

TEST(we_close)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    mk_ws_close(p->ws, 0, MK_STR_NONE);
    mk_ws_close(p->ws, 4000, MK_STR("again"));
    run(p, 0);
    assert_sent_text(p, "\x88\x00");
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "x", 1), -EPIPE);
    feed_text(p, "too late");
    feed_frame(p, 0x89, "", 0);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "");
    feed_frame(p, 0x88, "", 0);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 1005 \"\"\n");
    assert_sent(p, "", 0);
    disconnect(p);
    fixture_close(&f);
}

TEST(a_peer_that_does_not_answer_the_close)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.close_ms = 700;
    struct peer *p = connect_plain(&f);
    mk_ws_close(p->ws, 1001, MK_STR("restart"));
    run(p, 0);
    mk_test_pass(&f.fixture, 699);
    assert_false(p->ended);
    mk_test_pass(&f.fixture, 1);
    assert_true(p->ended);
    assert_logged(&f, "close 1001 \"restart\"\n");
    disconnect(p);
    fixture_close(&f);
}

/* A close frame stands behind what waits, and its peer has until close_ms to take both. */
TEST(closing_behind_a_queue)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->room = 3;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "hello", 5), 0);
    mk_ws_close(p->ws, 1000, MK_STR_NONE);
    feed_frame(p, 0x88, "\x03\xe8", 2);
    run(p, MK_TUNNEL_READ);
    assert_false(p->ended);
    p->room = 100;
    run(p, MK_TUNNEL_WRITE);
    assert_sent_text(p, "\x81\x05hello\x88\x02\x03\xe8");
    assert_true(p->ended);
    assert_logged(&f, "close 1000 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

TEST(keep_alive)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.ping_ms = 1000;
    f.settings.pong_ms = 300;
    struct peer *p = connect_plain(&f);
    mk_test_pass(&f.fixture, 600);
    feed_text(p, "alive");
    run(p, MK_TUNNEL_READ);
    mk_test_pass(&f.fixture, 999);
    assert_sent(p, "", 0);
    mk_test_pass(&f.fixture, 1);
    assert_sent_text(p, "\x89\x00");
    feed_frame(p, 0x8a, "", 0);
    run(p, MK_TUNNEL_READ);
    mk_test_pass(&f.fixture, 1000);
    assert_sent_text(p, "\x89\x00");
    mk_test_pass(&f.fixture, 299);
    assert_false(p->ended);
    mk_test_pass(&f.fixture, 1);
    assert_true(p->ended);
    assert_logged(&f, "text \"alive\"\npong \"\"\nclose 1006 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

TEST(without_pings)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.ping_ms = UINT32_MAX;
    struct peer *p = connect_plain(&f);
    mk_test_pass(&f.fixture, MK_TEST_DAY_MS);
    assert_sent(p, "", 0);
    assert_false(p->ended);
    disconnect(p);
    fixture_close(&f);
}

/* A WebSocket that is paused does not read pongs, and is not ended for that. */
TEST(pings_while_paused)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.ping_ms = 1000;
    f.settings.pong_ms = 300;
    struct peer *p = connect_plain(&f);
    mk_ws_pause(p->ws);
    mk_test_pass(&f.fixture, 10000);
    assert_false(p->ended);
    mk_ws_resume(p->ws);
    p->woken = false;
    mk_test_pass(&f.fixture, 10000);
    assert_true(p->ended);
    f.log[0] = '\0';
    disconnect(p);
    fixture_close(&f);
}

TEST(the_server_drains)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    run(p, MK_TUNNEL_DRAINING);
    assert_sent_text(p, "\x88\x02\x03\xe9");
    feed_frame(p, 0x88, "\x03\xe9", 2);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 1001 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

TEST(the_stream_is_lost)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    feed_frame(p, 0x01, "half", 4);
    p->room = 1;
    run(p, MK_TUNNEL_READ);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "queued", 6), 0);
    struct mk_ws *ws = p->ws;
    mk_ws_lost(ws);
    assert_logged(&f, "close 1006 \"\"\n");
    p->ended = true;
    disconnect(p);
    fixture_close(&f);
}

TEST(a_write_that_fails)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->error = -EPIPE;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "x", 1), -EPIPE);
    assert_non_null(p->ws); /* not from within the call */
    assert_true(p->woken);
    run(p, 0);
    assert_logged(&f, "close 1006 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

/* At once, behind a close frame if there is room for it; no timer and no wakeup is needed. */
TEST(ended)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->woken = false;
    mk_ws_end(p->ws, MK_WS_GOING_AWAY, MK_STR_NONE);
    assert_true(p->ended && !p->woken);
    assert_logged(&f, "close 1001 \"\"\n");
    assert_sent_text(p, "\x88\x02\x03\xe9");
    disconnect(p);
    fixture_close(&f);
}

/* on_close of one WebSocket may end another one. */
static struct peer *other;

static void close_other(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    see_close(ws, code, reason, ctx);
    if (other && other->ws)
        mk_ws_abort(other->ws);
}

TEST(handlers_that_end_others)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.handlers.on_close = close_other;
    struct peer *p = connect_plain(&f);
    other = connect_plain(&f);
    p->error = -EPIPE;
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 1006 \"\"\nclose 1006 \"\"\n");
    disconnect(p);
    disconnect(other);
    other = NULL;
    fixture_close(&f);
}

/* It was not read, so the peer is asked anew before it is given up. */
TEST(a_pause_that_ends_when_a_pong_is_overdue)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.ping_ms = 1000;
    f.settings.pong_ms = 500;
    struct peer *p = connect_plain(&f);
    mk_ws_pause(p->ws);
    mk_test_pass(&f.fixture, 1400); /* the ping was sent after 1000 */
    assert_sent_text(p, "\x89\x00");
    mk_ws_resume(p->ws);
    mk_test_pass(&f.fixture, 200); /* the pong would be overdue after 100 */
    assert_false(p->ended);
    mk_test_pass(&f.fixture, 2000);
    assert_true(p->ended);
    assert_logged(&f, "close 1006 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

/* The peer's answer is read although the WebSocket does not want messages. */
TEST(a_close_while_it_is_paused)
{
    struct fixture f;
    fixture_open(&f);
    for (int later = 0; later < 2; later++) {
        struct peer *p = connect_plain(&f);
        mk_ws_pause(p->ws);
        feed_text(p, "not wanted");
        run(p, MK_TUNNEL_READ);
        mk_ws_close(p->ws, 4000, MK_STR_NONE);
        if (later)
            mk_ws_pause(p->ws);
        run(p, 0);
        assert_sent_text(p, "\x88\x02\x0f\xa0");
        feed_frame(p, 0x88, "\x0f\xa0", 2);
        run(p, MK_TUNNEL_READ);
        assert_true(p->ended);
        assert_logged(&f, "close 4000 \"\"\n");
        disconnect(p);
    }
    fixture_close(&f);
}

/* ── why it has ended ── */

static void lose(struct peer *p)
{
    p->fin = true;
    run(p, MK_TUNNEL_READ);
}

static void close_by_peer(struct peer *p)
{
    feed_frame(p, 0x88, "\x03\xe9", 2);
    run(p, MK_TUNNEL_READ);
}

static void close_by_us(struct peer *p)
{
    mk_ws_close(p->ws, 1002, MK_STR_NONE);
    close_by_peer(p);
}

static void close_without_answer(struct peer *p)
{
    mk_ws_close(p->ws, 1000, MK_STR_NONE);
    lose(p);
}

static void abort_ws(struct peer *p)
{
    mk_ws_abort(p->ws);
}

static void break_protocol(struct peer *p)
{
    feed(p, "\x83\x80\0\0\0", 6); /* an opcode that does not exist */
    run(p, MK_TUNNEL_READ);
}

static void be_silent(struct peer *p)
{
    mk_test_pass(&p->fixture->fixture, 60000);
}

TEST(causes)
{
    static const struct {
        void (*end)(struct peer *p);
        enum mk_ws_cause cause;
    } rows[] = {
        {lose, MK_WS_CAUSE_LOST},         {close_by_peer, MK_WS_CAUSE_PEER},
        {close_by_us, MK_WS_CAUSE_LOCAL}, {close_without_answer, MK_WS_CAUSE_LOCAL},
        {abort_ws, MK_WS_CAUSE_LOCAL},    {break_protocol, MK_WS_CAUSE_ERROR},
        {be_silent, MK_WS_CAUSE_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        fixture_open(&f);
        f.cause = ~0u;
        struct peer *p = connect_plain(&f);
        rows[i].end(p);
        if (p->ws)
            run(p, 0); /* a stream that has failed ends in the next turn */
        assert_int_equal(f.cause, rows[i].cause);
        disconnect(p);
        fixture_close(&f);
    }
}

TEST(utf8)
{
    assert_true(mk_ws_is_utf8("gr\xc3\xbc"
                              "n",
                              5));
    assert_true(mk_ws_is_utf8(NULL, 0));
    assert_false(mk_ws_is_utf8("gr\xc3", 3));
    assert_false(mk_ws_is_utf8("\xff", 1));
}
