// SPDX-License-Identifier: Apache-2.0
/* Requests that wait until a server responds (Hold), or is up again by its checks. */
#include "plugins/upstream/waits_fixture.h"

/* Each server refuses the request, in turn. */
static int refuse_all(unsigned i)
{
    struct waiter *w = &waiters[i];
    int r = ask(i);
    while (r >= 0) {
        group_members(group)->items[r].server->load--;
        w->tries.failure = MK_UPSTREAM_NOT_REACHED;
        r = ask(i);
    }
    return r;
}

static void open_hold(void)
{
    open_group(0);
    conf.hold_ms = 1000;
    memset(waiters, 0, sizeof(waiters));
    n_served = 0;
}

TEST(requests_are_held_until_a_server_responds)
{
    open_hold();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(refuse_all(i), -EAGAIN);
    group_note_response(group_members(group)->items[2].server, now_ms);
    settle();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(waiters[i].result, 2);
    group_members(group)->items[2].server->load = 0;
    close_group();
}

TEST(held_requests_try_servers_now_and_then)
{
    unsigned tries = 0;
    open_hold();
    for (unsigned i = 0; i < REQUESTS; i++)
        assert_int_equal(refuse_all(i), -EAGAIN);
    for (unsigned t = 0; t < 1000; t++) {
        pass(1);
        for (unsigned i = 0; i < REQUESTS; i++) {
            if (waiters[i].result < 0)
                continue;
            tries++;
            group_members(group)->items[waiters[i].result].server->load--;
            waiters[i].tries.failure = MK_UPSTREAM_NOT_REACHED;
            assert_true(refuse_all(i) < 0);
        }
    }
    for (unsigned i = 0; i < REQUESTS; i++)
        assert_int_equal(waiters[i].result, -ENXIO); /* Hold is over, from the first try on */
    assert_true(tries >= 4 && tries <= 10 * SERVERS);
    close_group();
}

/* So that the work of many that are held does not grow with the servers. */
TEST(only_the_first_held_request_tries_servers)
{
    open_hold();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(refuse_all(i), -EAGAIN);
    for (unsigned i = 0; i < SERVERS; i++)
        group_members(group)->items[i].server->probe_ms = now_ms + 150;
    pass(1);
    group_members(group)->items[1].server->probe_ms = 0;
    mk_timer_cancel(&waiters[0].wait.timer); /* as if its thread were busy */
    pass(200);
    assert_int_equal(n_served, 0);
    mk_timer_arm(&loop, &waiters[0].wait.timer, 1);
    pass(1);
    assert_int_equal(n_served, 1);
    assert_int_equal(order[0], 0);
    for (unsigned i = 1; i < 3; i++)
        group_cancel(&waiters[i].wait);
    group_members(group)->items[waiters[0].result].server->load = 0;
    close_group();
}

/* Also those whose cookies name a server that is still away. */
TEST(sticky_requests_are_held_for_any_server)
{
    open_hold();
    const struct preference preference = {.sticky = group_members(group)->items[0].server};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ask_for(i, &preference), 0);
        while (waiters[i].result >= 0) {
            group_members(group)->items[waiters[i].result].server->load--;
            waiters[i].tries.failure = MK_UPSTREAM_NOT_REACHED;
            ask_for(i, &preference);
        }
        assert_int_equal(waiters[i].result, -EAGAIN);
    }
    group_note_response(group_members(group)->items[2].server, now_ms);
    settle();
    assert_int_equal(waiters[0].result, 2);
    assert_int_equal(waiters[1].result, 2);
    group_members(group)->items[2].server->load = 0;
    close_group();
}

/* They came before those that queue for the server by the time it has responded. */
TEST(held_requests_before_those_that_queue)
{
    open_hold();
    conf.max_connections = 1;
    conf.queue = 4;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(refuse_all(i), -EAGAIN);
    for (unsigned i = 1; i < SERVERS; i++)
        lines[i].is_down = true;
    assert_int_equal(ask(2), 0);
    assert_int_equal(ask(3), -EAGAIN);
    end_request(2);
    assert_int_equal(waiters[0].result, 0);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    assert_int_equal(waiters[3].result, -EAGAIN);
    end_request(1);
    assert_int_equal(waiters[3].result, 0);
    end_request(3);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* A try that fails when Hold is over is no other failure than the wait, which would have ended. */
TEST(a_try_that_outlasts_hold)
{
    open_hold();
    assert_int_equal(refuse_all(0), -EAGAIN);
    pass(900);
    while (waiters[0].result < 0)
        pass(1);
    set_time(now_ms + 1000);
    group_members(group)->items[waiters[0].result].server->load--;
    waiters[0].tries.failure = MK_UPSTREAM_NOT_REACHED;
    assert_int_equal(refuse_all(0), -ENXIO);
    assert_int_equal(waiters[0].tries.n, 0);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* With MaxConnections each request that is served makes room for another one. */
TEST(held_requests_with_a_limit)
{
    open_hold();
    conf.max_connections = 1;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(refuse_all(i), -EAGAIN);
    group_note_response(group_members(group)->items[2].server, now_ms);
    settle();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(n_served, i + 1);
        assert_int_equal(waiters[i].result, 2);
        end_request(i);
    }
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* A request that servers may have got is sent RetryMost times more, however often it is held. */
TEST(held_requests_are_not_repeated_without_end)
{
    unsigned sent = 0;
    open_hold();
    conf.retry.kind = RETRY_IDEMPOTENT;
    conf.retry_most = 2;
    conf.hold_ms = 100000;
    int r = ask(0);
    for (; sent < 20 && r >= 0; sent++) {
        group_members(group)->items[r].server->load--;
        waiters[0].tries.failure = MK_UPSTREAM_SENT;
        r = ask(0);
        if (r == -EAGAIN)
            pass(1000);
        r = r == -EAGAIN ? waiters[0].result : r;
    }
    assert_int_equal(r, -ENXIO);
    assert_int_equal(sent, 3);
    close_group();
}

TEST(what_is_not_held)
{
    open_hold();
    conf.retry.kind = RETRY_OFF;
    assert_int_equal(refuse_all(0), -ENXIO); /* it had a server, and may have no other one */
    for (unsigned i = 0; i < SERVERS; i++)
        lines[i].is_down = true;
    assert_int_equal(ask(1), -EAGAIN);
    waiters[2].tries =
        (struct mk_upstream_tries){.n = 1, .failure = MK_UPSTREAM_STATUS, .status = 503, .first_ms = now_ms};
    assert_int_equal(ask(2), -ENXIO); /* there is a response */
    waiters[3].tries = (struct mk_upstream_tries){.n = 1, .failure = MK_UPSTREAM_SENT, .first_ms = now_ms};
    assert_int_equal(ask(3), -ENXIO);
    conf.retry.kind = RETRY_IDEMPOTENT;
    assert_int_equal(ask(3), -EAGAIN);
    group_cancel(&waiters[1].wait);
    group_cancel(&waiters[3].wait);
    close_group();
}

/* ── servers that are down by their checks ── */

static void set_health(unsigned i, bool is_up)
{
    static const struct health_rules rules = {.down = 1, .up = 1, .interval_ms = 1000};
    server_note_check(group_members(group)->items[i].server, &rules, is_up ? NULL : "refused", NULL, now_ms);
    if (is_up)
        group_note_up(group_members(group)->items[i].server, now_ms);
    settle();
}

TEST(a_server_that_is_up_again_serves_the_queue)
{
    open_queue(2, 2);
    set_health(1, false);
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    set_health(1, true);
    assert_int_equal(waiters[1].result, 1);
    group_members(group)->items[0].server->load = group_members(group)->items[1].server->load = 0;
    close_group();
}

TEST(a_server_that_is_up_again_serves_held_requests)
{
    open_hold();
    for (unsigned i = 0; i < SERVERS; i++)
        set_health(i, false);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(i), -EAGAIN);
    pass(900); /* none is tried meanwhile */
    set_health(2, true);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(waiters[i].result, 2);
    group_members(group)->items[2].server->load = 0;
    close_group();
}
