// SPDX-License-Identifier: Apache-2.0
/*
 * The handshake of the transport: what it waits for, its timeout, its steps, and which connection is closed for
 * another.
 */
#include "testing.h"

#include "harness.h"

#include <errno.h>

#define REQUEST MK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n")

static struct mk_test_fixture w;
static struct mk_transport shaking;
static int
    handshake_result; /* of the first step of each connection, and of those behind it until a test says otherwise */

/* Reads the input, as a handshake does, unless it is its last step. */
static int handshake(struct mk_io *io)
{
    struct mk_test_client *c = io->state;
    assert_false(c->closed);
    if (!c->handshake_steps++)
        c->handshake_result = handshake_result;
    c->read_at = c->handshake_result == -EAGAIN ? c->to_server.len : c->read_at;
    return c->handshake_result;
}

static void notify_close(struct mk_io *io)
{
    struct mk_test_client *c = io->state;
    c->notified++;
}

/* The message is held until the socket takes it. */
static int flush(struct mk_io *io)
{
    const struct mk_test_client *c = io->state;
    return c->room ? 0 : -EAGAIN;
}

static int open_fixture(void **state)
{
    (void)state;
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    shaking = mk_test_memory;
    shaking.handshake = handshake;
    shaking.close_notify = notify_close;
    w.transport = &shaking;
    handshake_result = -EAGAIN;
    w.settings.handshakes_max = 100;
    return mk_test_http_open(&w);
}

static int close_fixture(void **state)
{
    (void)state;
    mk_test_fixture_close(&w);
    return 0;
}

static struct mk_test_client *arrive(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    assert_non_null(c);
    return c;
}

TEST(it_waits_for_bytes_and_for_room, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handshake");
    unsigned before = c->handshake_steps;
    mk_test_send(c, MK_STR("hello"));
    mk_test_settle(&w);
    assert_int_equal(c->handshake_steps, before + 1);
    mk_test_take(c, 1); /* it does not wait for that */
    mk_test_settle(&w);
    assert_int_equal(c->handshake_steps, before + 1);
    c->handshake_result = -EINPROGRESS;
    mk_test_send(c, MK_STR("hello"));
    mk_test_settle(&w);
    assert_int_equal(c->handshake_steps, before + 2);
    mk_test_take(c, 1);
    mk_test_settle(&w);
    assert_int_equal(c->handshake_steps, before + 3);
    assert_string_equal(mk_test_state(c), "handshake");
    assert_int_equal(w.requests, 0);

    c->handshake_result = 0;
    mk_test_send(c, REQUEST); /* with the last of the handshake */
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(w.requests, 1);
    assert_int_equal(w.http.handshakes, 0);
    unsigned done = c->handshake_steps;
    mk_test_send(c, REQUEST);
    mk_test_settle(&w);
    assert_int_equal(w.requests, 2);
    assert_int_equal(c->handshake_steps, done); /* once is enough */
}

TEST(one_that_is_done_at_once, open_fixture, close_fixture)
{
    handshake_result = 0;
    struct mk_test_client *c = mk_test_connect(&w, REQUEST);
    mk_test_settle(&w);
    assert_int_equal(c->handshake_steps, 1);
    assert_int_equal(w.requests, 1);
    assert_string_equal(mk_test_state(c), "idle");
}

TEST(one_that_is_done_with_nothing_behind_it, open_fixture, close_fixture)
{
    handshake_result = 0;
    struct mk_test_client *c = arrive();
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "new");
}

TEST(one_that_fails, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    c->handshake_result = -EPROTO;
    mk_test_send(c, MK_STR("garbage"));
    mk_test_settle(&w);
    assert_true(c->closed);
    assert_int_equal(w.closed, 1);
    assert_int_equal(w.http.handshakes, 0);
    handshake_result = -EPROTO;
    assert_true(arrive()->closed);
    assert_int_equal(w.requests, 0);
}

TEST(its_time_is_limited, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    mk_test_pass(&w, 5000);
    mk_test_send(c, MK_STR("a byte now and then gives no more time"));
    mk_test_pass(&w, 4999);
    assert_string_equal(mk_test_state(c), "handshake");
    mk_test_pass(&w, 1);
    assert_true(c->closed);
    assert_int_equal(mk_test_received(c).len, 0); /* no response is possible */
}

TEST(the_head_has_its_own_time, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    mk_test_pass(&w, 9000);
    c->handshake_result = 0;
    mk_test_send(c, MK_STR("G"));
    mk_test_pass(&w, 14999);
    assert_string_equal(mk_test_state(c), "read_head");
    mk_test_pass(&w, 1);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 408 ")));
}

static unsigned count_handshake_steps(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w.n_clients; i++)
        n += w.clients[i]->handshake_steps;
    return n;
}

TEST(a_turn_has_four_steps, open_fixture, close_fixture)
{
    struct mk_test_client *clients[11], *served;
    w.transport = NULL;
    served = mk_test_connect(&w, REQUEST);
    mk_test_settle(&w);
    w.transport = &shaking;
    for (size_t i = 0; i < COUNT(clients); i++)
        clients[i] = arrive();
    mk_test_settle(&w);
    unsigned before = count_handshake_steps();
    for (size_t i = 0; i < COUNT(clients); i++) {
        clients[i]->handshake_result = 0;
        mk_test_send(clients[i], MK_STR("x"));
    }
    mk_test_send(served, REQUEST);
    for (unsigned turn = 1; turn <= 3; turn++) {
        assert_int_equal(mk__loop_turn(&w.loop), 0);
        assert_int_equal(count_handshake_steps() - before, turn < 3 ? turn * 4 : 11);
        assert_int_equal(w.requests, 2); /* in the first turn, besides the handshakes */
    }
    mk_test_settle(&w);
    for (size_t i = 0; i < COUNT(clients); i++)
        assert_string_equal(mk_test_state(clients[i]), "read_head");
}

/* Connections in the queue are not overtaken by those whose input arrives later. */
TEST(steps_are_taken_in_order, open_fixture, close_fixture)
{
    struct mk_test_client *clients[24];
    for (size_t i = 0; i < COUNT(clients); i++)
        clients[i] = arrive();
    mk_test_settle(&w);
    unsigned sent = 0;
    for (unsigned turn = 1; turn <= 6; turn++) {
        for (unsigned n = turn == 1 ? 8 : 4; n && sent < COUNT(clients); n--)
            mk_test_send(clients[sent++], MK_STR("x"));
        assert_int_equal(mk__loop_turn(&w.loop), 0);
        for (unsigned i = 0; i < COUNT(clients); i++)
            if (clients[i]->handshake_steps != (i < turn * 4 ? 2 : 1))
                fail_msg("turn %u, client %u: %u steps", turn, i, clients[i]->handshake_steps);
    }
}

TEST(one_that_waits_for_its_step_may_end, open_fixture, close_fixture)
{
    struct mk_test_client *clients[6];
    for (size_t i = 0; i < COUNT(clients); i++)
        clients[i] = arrive();
    mk_test_settle(&w);
    for (size_t i = 0; i < COUNT(clients); i++)
        mk_test_send(clients[i], MK_STR("x"));
    assert_int_equal(mk__loop_turn(&w.loop), 0);
    assert_int_equal(clients[5]->handshake_steps, 1);
    mk_test_pass(&w, 200);
    assert_int_equal(mk__conn_close_idle(&w.http, 6), 6);
    for (size_t i = 0; i < COUNT(clients); i++)
        assert_true(clients[i]->closed);
    mk_test_settle(&w);
}

TEST(the_oldest_gives_way, open_fixture, close_fixture)
{
    w.settings.handshakes_max = 2;
    struct mk_test_client *first = arrive(), *second = arrive();
    first->handshake_result = 0;
    mk_test_send(first, MK_STR("x"));
    mk_test_settle(&w);
    struct mk_test_client *third = arrive();
    assert_false(first->closed || second->closed); /* the first is done, and does not count */
    struct mk_test_client *fourth = arrive();
    assert_true(second->closed);
    assert_false(first->closed || third->closed || fourth->closed);
    assert_int_equal(w.http.handshakes, 2);
}

TEST(all_above_a_lowered_limit_give_way, open_fixture, close_fixture)
{
    struct mk_test_client *clients[5];
    struct mk__context_buffers none = {0};
    static struct mk__http_settings lower;
    lower = w.settings;
    for (size_t i = 0; i < COUNT(clients); i++)
        clients[i] = arrive();
    lower.handshakes_max = 2;
    mk__http_apply_settings(&w.http, &lower, &none);
    struct mk_test_client *last = arrive();
    assert_int_equal(w.http.handshakes, 2);
    assert_true(clients[3]->closed);
    assert_false(clients[4]->closed || last->closed);
}

TEST(room_is_made_of_handshakes, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    assert_int_equal(mk__conn_close_idle(&w.http, 1), 0);
    mk_test_pass(&w, 200);
    assert_int_equal(mk__conn_close_idle(&w.http, 1), 1);
    assert_true(c->closed);
    assert_int_equal(w.http.handshakes, 0);
}

TEST(a_drain_lets_it_end, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handshake");
    c->handshake_result = 0;
    mk_test_send(c, REQUEST);
    mk_test_settle(&w);
    struct mk_str answer = mk_test_received(c);
    assert_non_null(memmem(answer.p, answer.len, "Connection: close", 17));
}

/* After the handshake the drain waits for a request in flight, but not forever. */
TEST(a_drain_gives_a_moment_behind_it, open_fixture, close_fixture)
{
    handshake_result = -EINPROGRESS;
    struct mk_test_client *late = arrive();
    handshake_result = 0;
    struct mk_test_client *early = arrive(), *silent = arrive(), *idle = arrive();
    mk_test_send(idle, REQUEST);
    mk_test_pass(&w, 3000);
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_true(idle->closed);
    assert_string_equal(mk_test_state(late), "handshake");
    late->handshake_result = 0;
    mk_test_take(late, 1);
    mk_test_pass(&w, 999);
    struct mk_test_client *asks[] = {early, late};
    for (size_t i = 0; i < COUNT(asks); i++) {
        assert_string_equal(mk_test_state(asks[i]), "new");
        mk_test_send(asks[i], REQUEST);
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(asks[i]);
        assert_non_null(memmem(answer.p, answer.len, "Connection: close", 17));
    }
    assert_string_equal(mk_test_state(silent), "new");
    mk_test_pass(&w, 1);
    assert_true(silent->closed && silent->notified);
}

/* Neither empty lines nor a turn without input extend the grace period. */
TEST(the_moment_is_one, open_fixture, close_fixture)
{
    handshake_result = 0;
    struct mk_test_client *c = arrive();
    mk__conn_drain_all(&w.http);
    for (int i = 0; i < 3; i++) {
        mk_test_pass(&w, 300);
        mk_test_send(c, MK_STR("\r\n"));
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), "new");
    }
    mk_test_pass(&w, 100);
    assert_true(c->closed);
}

/* A transport with an end message sends it; a plain socket is just closed. */
TEST(an_idle_end_is_notified, open_fixture, close_fixture)
{
    for (int handshake_steps = 0; handshake_steps < 2; handshake_steps++) {
        w.transport = handshake_steps ? &shaking : NULL;
        handshake_result = 0;
        struct mk_test_client *c = mk_test_connect(&w, REQUEST);
        mk_test_settle(&w);
        mk_test_pass(&w, 5000);
        assert_true(c->closed);
        assert_int_equal(c->notified, handshake_steps);
    }
}

/* The end message does not fit into the socket until the client reads: SendTimeout limits that. */
TEST(an_end_waits_for_room, open_fixture, close_fixture)
{
    static const char last[] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    for (int takes = 0; takes < 2; takes++) {
        handshake_result = 0;
        shaking.flush = flush;
        struct mk_test_client *c = arrive();
        mk_test_send(c, mk_str(last, sizeof(last) - 1));
        c->room = strlen("HTTP/1.1 200 OK\r\nServer: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                         "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
        mk_test_settle(&w);
        assert_int_equal(c->room, 0);
        assert_string_equal(mk_test_state(c), "write");
        mk_test_pass(&w, 19999);
        assert_false(c->closed);
        if (takes)
            mk_test_take(c, 1);
        mk_test_pass(&w, takes ? 0 : 1);
        assert_true(c->closed);
    }
}

TEST(a_client_that_leaves, open_fixture, close_fixture)
{
    struct mk_test_client *c = arrive();
    c->handshake_result = -ECONNRESET;
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_true(c->closed);
}
