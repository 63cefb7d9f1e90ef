// SPDX-License-Identifier: Apache-2.0
/* Requests that wait for a server: MaxConnections with its queue. Those of Hold are in hold_test.c. */
#include "counters_memory.h"

#include "plugins/upstream/waits_fixture.h"

TEST(requests_wait_in_their_order)
{
    open_queue(1, 3);
    assert_int_equal(ask(0), 0);
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal(ask(i), -EAGAIN);
    assert_int_equal(ask(4), -EBUSY);
    for (unsigned i = 0; i < 3; i++) {
        end_request(i);
        assert_int_equal(n_served, i + 1);
        assert_int_equal(order[i], i + 1);
        assert_int_equal(add_loads(), 1);
    }
    end_request(3);
    assert_int_equal(add_loads(), 0);
    assert_int_equal(ask(5), 0);
    end_request(5);
    close_group();
}

static int queue_once(void *ctx)
{
    (void)ctx;
    int r = ask(1);
    assert_true(r == -EAGAIN || r == -ENOMEM);
    return r == -EAGAIN ? 0 : r;
}

/* The queue is not full then. */
TEST(a_wait_without_memory)
{
    open_queue(1, 3);
    assert_int_equal(ask(0), 0);
    assert_int_equal(mk_test_failing_allocs(queue_once, NULL), 1);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    end_request(1);
    close_group();
}

TEST(the_loop_that_gets_the_place_of_a_request)
{
    open_queue(1, 3);
    struct server *server = group_members(group)->items[0].server;
    assert_int_equal(ask(0), 0);
    server->load--;
    assert_null(group_note_room(server->pool, server, false, now_ms));
    assert_int_equal(ask(1), 0);
    assert_int_equal(ask(2), -EAGAIN);
    assert_null(group_note_room(server->pool, server, false, now_ms)); /* it has no room */
    server->load--;
    assert_ptr_equal(group_note_room(server->pool, server, false, now_ms), &loop);
    settle();
    assert_int_equal(waiters[2].result, 0);
    end_request(2);
    close_group();
}

TEST(new_requests_wait_behind_others)
{
    open_queue(2, 8);
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), 1);
    waiters[2].tries = (struct mk_upstream_tries){.servers = {&group_members(group)->items[0].server->base}, .n = 1};
    assert_int_equal(ask(2), -EAGAIN); /* has had the first server */
    assert_int_equal(ask(3), -EAGAIN);
    end_request(0); /* room on the first one */
    assert_int_equal(waiters[2].result, -EAGAIN);
    assert_int_equal(waiters[3].result, 0);
    assert_int_equal(ask(4), -EAGAIN);
    end_request(1);
    assert_int_equal(waiters[2].result, 1);
    assert_int_equal(waiters[4].result, -EAGAIN);
    end_request(3);
    assert_int_equal(waiters[4].result, 0);
    end_request(4);
    end_request(2);
    assert_int_equal(add_loads(), 0);
    close_group();
}

TEST(queue_timeout)
{
    open_queue(1, 2);
    conf.queue_timeout_ms = 500;
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    pass(499);
    assert_int_equal(waiters[1].result, -EAGAIN);
    pass(1);
    assert_int_equal(waiters[1].result, -ETIMEDOUT);
    end_request(0);
    assert_int_equal(add_loads(), 0);
    close_group();
}

TEST(cancelled_waits)
{
    open_queue(1, 3);
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    assert_int_equal(ask(2), -EAGAIN);
    group_cancel(&waiters[1].wait);
    group_cancel(&waiters[1].wait);
    group_cancel(&waiters[3].wait); /* never waited */
    struct server *server = group_members(group)->items[0].server;
    server->load--;
    group_note_room(server->pool, server, true, now_ms); /* granted, and not known yet */
    assert_int_equal(add_loads(), 1);
    assert_int_equal(ask(4), -EAGAIN);
    group_cancel(&waiters[2].wait); /* the next one gets its place */
    settle();
    assert_int_equal(waiters[1].result, -EAGAIN);
    assert_int_equal(waiters[2].result, -EAGAIN);
    assert_int_equal(waiters[4].result, 0);
    assert_int_equal(add_loads(), 1);
    end_request(4);
    assert_int_equal(add_loads(), 0);
    close_group();
}

TEST(a_sticky_request_waits_for_its_server)
{
    open_queue(2, 4);
    const struct preference preference = {.sticky = group_members(group)->items[0].server};
    assert_int_equal(ask_for(0, &preference), 0);
    assert_int_equal(ask_for(1, &preference), -EAGAIN); /* the other one has room */
    assert_int_equal(ask(2), 1);                        /* which that one does not want */
    assert_int_equal(ask(4), -EAGAIN);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    end_request(1);
    assert_int_equal(waiters[4].result, 0);
    end_request(4);
    end_request(2);
    lines[0].is_down = true;
    assert_int_equal(ask_for(3, &preference), 1);
    end_request(3);
    close_group();
}

/* Those that one server keeps waiting neither fill the queue of the others nor stand before them. */
TEST(sticky_requests_have_a_queue_of_their_own)
{
    open_queue(2, 2);
    const struct preference preference = {.sticky = group_members(group)->items[0].server};
    assert_int_equal(ask_for(0, &preference), 0);
    assert_int_equal(ask_for(1, &preference), -EAGAIN);
    assert_int_equal(ask_for(2, &preference), -EAGAIN);
    assert_int_equal(ask_for(3, &preference), -EBUSY);
    assert_int_equal(ask(3), 1);
    assert_int_equal(ask(4), -EAGAIN);
    assert_int_equal(ask(5), -EAGAIN);
    assert_int_equal(ask(6), -EBUSY);
    end_request(3);
    assert_int_equal(waiters[4].result, 1);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    end_request(1);
    end_request(2);
    end_request(4); /* 5 has the first server by now */
    end_request(5);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* A place goes to the first request that can use it, whatever those before it want. */
TEST(the_order_of_queues)
{
    open_queue(2, 8);
    const struct preference preference = {.sticky = group_members(group)->items[0].server};
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), 1);
    for (unsigned i = 2; i < 8; i++)
        assert_int_equal(i % 2 ? ask(i) : ask_for(i, &preference), -EAGAIN);
    group_cancel(&waiters[2].wait); /* the next one that wants the first server is behind 3 */
    end_request(0);
    assert_int_equal(waiters[3].result, 0);
    end_request(3);
    assert_int_equal(waiters[4].result, 0);
    end_request(1);
    assert_int_equal(waiters[5].result, 1);
    end_request(4);
    assert_int_equal(waiters[6].result, 0);
    assert_int_equal(waiters[7].result, -EAGAIN);
    end_request(5);
    assert_int_equal(waiters[7].result, 1);
    end_request(6);
    end_request(7);
    assert_int_equal(add_loads(), 0);
    assert_int_equal(group->pool->n_waiting, 0);
    close_group();
}

TEST(tries_in_any_order_have_one_queue)
{
    open_queue(3, 8);
    struct mk_upstream_server *servers[3];
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ask(i), (int)i);
        servers[i] = &group_members(group)->items[i].server->base;
    }
    waiters[3].tries = (struct mk_upstream_tries){.servers = {servers[0], servers[1]}, .n = 2};
    waiters[4].tries = (struct mk_upstream_tries){.servers = {servers[1], servers[0]}, .n = 2};
    waiters[5].tries = (struct mk_upstream_tries){.servers = {servers[1], servers[2]}, .n = 2};
    for (unsigned i = 3; i < 6; i++)
        assert_int_equal(ask(i), -EAGAIN);
    assert_ptr_equal(waiters[3].wait.queue, waiters[4].wait.queue);
    assert_ptr_not_equal(waiters[3].wait.queue, waiters[5].wait.queue);
    end_request(2);
    assert_int_equal(waiters[3].result, 2);
    end_request(3);
    assert_int_equal(waiters[4].result, 2);
    end_request(0);
    assert_int_equal(waiters[5].result, 0);
    for (unsigned i = 0; i < 3; i++)
        group_members(group)->items[i].server->load = 0;
    close_group();
}

/* The server that knows the login, unless it and its queue are full. */
TEST(a_login_gives_way, mk_test_counters_open, mk_test_counters_close)
{
    open_queue(2, 1);
    const struct preference preference = {.login = group_members(group)->items[0].server};
    const struct mk_counter *refused_requests = group->pool->counters[POOL_REFUSED];
    int64_t n_refused = mk_counter_read(refused_requests);
    assert_int_equal(ask_for(0, &preference), 0);
    assert_int_equal(ask_for(1, &preference), -EAGAIN);
    assert_int_equal(ask_for(2, &preference), 1);
    assert_int_equal(mk_counter_read(refused_requests), n_refused);
    assert_int_equal(ask_for(3, &preference), -EAGAIN); /* with those that want any */
    assert_int_equal(ask_for(4, &preference), -EBUSY);
    assert_int_equal(mk_counter_read(refused_requests), n_refused + 1);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    end_request(2);
    assert_int_equal(waiters[3].result, 1);
    end_request(1);
    end_request(3);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* A retry that servers may have got is one, also if its login gives way. */
TEST(a_retry_whose_login_gives_way)
{
    open_queue(3, 0);
    const struct preference preference = {.login = group_members(group)->items[1].server};
    conf.retry.kind = RETRY_IDEMPOTENT;
    conf.retry_most = 1;
    waiters[1].tries = (struct mk_upstream_tries){.servers = {&group_members(group)->items[0].server->base},
                                                  .n = 1,
                                                  .failure = MK_UPSTREAM_SENT,
                                                  .first_ms = now_ms};
    assert_int_equal(ask_for(0, &preference), 1);
    assert_int_equal(ask_for(1, &preference), 2);
    assert_int_equal(waiters[1].tries.n_sent, 1);
    end_request(0);
    end_request(1);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* Those that wait for a full server are passed over, and another one's are not. */
TEST(sticky_requests_of_two_servers)
{
    open_queue(2, 4);
    const struct preference preferences[] = {{.sticky = group_members(group)->items[0].server},
                                             {.sticky = group_members(group)->items[1].server}};
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(ask_for(i, &preferences[i % 2]), i < 2 ? (int)i : -EAGAIN);
    end_request(1);
    assert_int_equal(waiters[3].result, 1);
    assert_int_equal(waiters[2].result, -EAGAIN);
    pass(250);
    assert_int_equal(waiters[2].result, -EAGAIN);
    end_request(0);
    assert_int_equal(waiters[2].result, 0);
    end_request(3);
    end_request(2);
    end_request(4);
    end_request(5);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* Without a server that could be used later there is nothing to wait for. */
TEST(the_queue_ends_when_all_servers_are_down)
{
    open_queue(1, 4);
    conf.queue_timeout_ms = 60000;
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    lines[0].is_down = true;
    assert_int_equal(ask(2), -ENXIO);
    pass(250);
    assert_int_equal(waiters[1].result, -ENXIO);
    end_request(0);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* With Hold they wait on, for a server that responds. */
TEST(the_queue_is_held_when_all_servers_are_down)
{
    open_queue(1, 4);
    conf.queue_timeout_ms = 60000;
    conf.hold_ms = 1000;
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    assert_int_equal(ask(2), -EAGAIN);
    lines[0].is_down = true;
    end_request(0);
    pass(250);
    assert_int_equal(group->pool->n_queued, 0);
    lines[0].is_down = false;
    pass(100);
    assert_int_equal(waiters[1].result, 0);
    lines[0].is_down = true;
    end_request(1);
    pass(1000);
    assert_int_equal(waiters[2].result, -ENXIO);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* ── reloads ── */

/* Another configuration of the group, in use from now on; the caller frees it. */
static struct mk_upstream_group *reload(const struct upstream_conf *changed)
{
    struct mk_upstream_group *next = group_make(changed, &group_names);
    assert_non_null(next);
    group_make_current(next);
    settle();
    return next;
}

TEST(a_reload_raises_the_limit_for_those_that_wait)
{
    open_queue(1, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(ask(i), i ? -EAGAIN : 0);
    struct upstream_conf raised = conf;
    raised.max_connections = 3;
    struct mk_upstream_group *former = group, *next = reload(&raised);
    assert_int_equal(waiters[1].result, 0);
    assert_int_equal(waiters[2].result, 0);
    assert_int_equal(waiters[3].result, -EAGAIN);
    group = next;
    assert_int_equal(ask(4), -EAGAIN); /* behind the one that came before */
    end_request(0);
    assert_int_equal(waiters[3].result, 0);
    for (unsigned i = 1; i < 5; i++)
        end_request(i);
    assert_int_equal(add_loads(), 0);
    group_free(former);
    close_group();
}

/* The limit is gone: all that wait are served, and new ones do not see the queue. */
TEST(a_reload_ends_the_limit)
{
    open_queue(1, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(ask(i), i ? -EAGAIN : 0);
    struct upstream_conf unlimited = conf;
    unlimited.max_connections = unlimited.queue = 0;
    struct mk_upstream_group *next = reload(&unlimited);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(waiters[i].result, 0);
    for (unsigned i = 0; i < 4; i++)
        end_request(i);
    assert_int_equal(add_loads(), 0);
    group_free(next);
    close_group();
}

/* The next configuration has a server that this one does not have: held requests get it. */
TEST(a_reload_brings_a_server_for_held_requests)
{
    struct server_line added = {.name = MK_STR("127.0.0.1:9"), .weight = 1};
    open_queue(0, 0);
    conf.max_connections = 0;
    conf.hold_ms = 5000;
    assert_int_equal(ask(0), -EAGAIN);
    struct upstream_conf repaired = conf;
    repaired.servers = (struct server_lines){&added, 1};
    struct mk_upstream_group *next = reload(&repaired);
    pass(100);
    assert_int_equal(waiters[0].result, -1); /* none of the former ones */
    struct server *server = group_members(next)->items[0].server;
    assert_ptr_equal(server_of(waiters[0].tries.servers[0]), server);
    end_request(0);
    assert_int_equal(server->load, 0);
    group_free(next);
    assert_null(group->pool->current);
    close_group();
}

/* ── servers that come back ── */

/* No request gives these servers back: their time has come, or a reload has changed them. */
TEST(the_queue_gets_servers_that_are_in_use_again)
{
    open_queue(2, 4);
    server_note_failure(group_members(group)->items[1].server, &conf, &refused, NULL, now_ms);
    server_note_failure(group_members(group)->items[1].server, &conf, &refused, NULL, now_ms);
    conf.queue_timeout_ms = 60000;
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    assert_int_equal(ask(2), -EAGAIN);
    pass(9000);
    assert_int_equal(waiters[1].result, -EAGAIN);
    pass(2000); /* EjectTime is over */
    assert_int_equal(waiters[1].result, 1);
    lines[2].is_down = false;
    pass(500);
    assert_int_equal(waiters[2].result, 2);
    for (unsigned i = 0; i < 3; i++)
        end_request(i);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* Of those that look for a server now and then the first one gets it, not the one that looks first. */
TEST(a_server_that_is_in_use_again_is_for_the_first_request)
{
    open_queue(2, 4);
    conf.eject_time_ms = 10150;
    for (unsigned i = 0; i < 2; i++)
        server_note_failure(group_members(group)->items[1].server, &conf, &refused, NULL, now_ms);
    conf.queue_timeout_ms = 60000;
    assert_int_equal(ask(0), 0);
    pass(100);
    assert_int_equal(ask(1), -EAGAIN);
    pass(100);
    assert_int_equal(ask(2), -EAGAIN);
    pass(9900); /* the first one looks at 100 + 250 n, the second one at 200 + 250 n */
    assert_int_equal(n_served, 0);
    pass(250);
    assert_int_equal(waiters[1].result, 1);
    assert_int_equal(waiters[2].result, -EAGAIN);
    end_request(0);
    assert_int_equal(waiters[2].result, 0);
    end_request(1);
    end_request(2);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* Full servers are no reason to use those that are ejected, or backups. */
TEST(the_queue_is_not_for_dead_servers_and_backups)
{
    open_queue(3, 4);
    lines[2].is_backup = true;
    for (unsigned i = 0; i < 2; i++)
        server_note_failure(group_members(group)->items[1].server, &conf, &refused, NULL, now_ms);
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    for (unsigned i = 1; i < 3; i++)
        group_note_room(group->pool, group_members(group)->items[i].server, true, now_ms);
    settle();
    assert_int_equal(waiters[1].result, -EAGAIN);
    end_request(0);
    assert_int_equal(waiters[1].result, 0);
    end_request(1);
    close_group();
}

/* Another thread, whose clock is ahead, has given the first server. */
TEST(the_time_of_retries_has_not_begun)
{
    open_queue(2, 4);
    lines[1].is_down = true;
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), -EAGAIN);
    struct server *server = group_members(group)->items[0].server;
    server->load--;
    group_note_room(server->pool, server, true, now_ms + 3);
    settle();
    assert_int_equal(waiters[1].result, 0);
    lines[1].is_down = false;
    server->load--;
    waiters[1].tries.failure = MK_UPSTREAM_NOT_REACHED;
    assert_int_equal(ask(1), 1);
    end_request(1);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* A retry that has waited for its server counts for the budget like others. */
TEST(retries_that_wait_have_a_budget)
{
    open_queue(2, 1);
    conf.retry.kind = RETRY_IDEMPOTENT;
    conf.retry_budget = 0; /* RETRIES_LEAST are allowed */
    struct mk_upstream_tries sent = {.servers = {&group_members(group)->items[0].server->base},
                                     .n = 1,
                                     .failure = MK_UPSTREAM_SENT,
                                     .first_ms = now_ms};
    assert_int_equal(ask(0), 0);
    assert_int_equal(ask(1), 1);
    for (unsigned i = 2; i < 2 + RETRIES_LEAST; i++) {
        waiters[i].tries = sent;
        assert_int_equal(ask(i), -EAGAIN);
        end_request(i - 1);
        assert_int_equal(waiters[i].result, 1);
    }
    waiters[2 + RETRIES_LEAST].tries = sent;
    assert_int_equal(ask(2 + RETRIES_LEAST), -ENXIO);
    end_request(0);
    end_request(1 + RETRIES_LEAST);
    assert_int_equal(add_loads(), 0);
    close_group();
}

/* ── SlowStart ── */

TEST(slow_start)
{
    open_group(0);
    conf.balance = UPSTREAM_ROUND_ROBIN;
    conf.slow_start_ms = 10000;
    for (unsigned i = 2; i < SERVERS; i++)
        lines[i].is_down = true;
    set_time(NOW);
    for (unsigned step = 0; step <= 4; step++) {
        unsigned got = 0;
        atomic_store(&group_members(group)->items[0].server->slow_from_ms, NOW - step * 2500);
        group_members(group)->items[0].turn = group_members(group)->items[1].turn = (struct turn){0};
        for (unsigned i = 0; i < 1000; i++)
            got += choose_first(NOW) == 0;
        unsigned percent = step ? step * 25 : 10;
        assert_in_range(got, 1000 * percent / (100 + percent) - 1, 1000 * percent / (100 + percent) + 1);
    }
    close_group();
}
