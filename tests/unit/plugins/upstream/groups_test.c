// SPDX-License-Identifier: Apache-2.0
/* Which server of a group a request gets: retries, backups, and servers that have failed. */
#include "counters_memory.h"

#include "plugins/upstream/group_fixture.h"

#include <monkey/base/epoch.h>

static void note_failures(unsigned i, unsigned times, uint64_t now)
{
    for (unsigned k = 0; k < times; k++)
        server_note_failure(group_members(group)->items[i].server, &conf, &refused, NULL, now);
}

TEST(each_try_gets_another_server)
{
    struct mk_upstream_tries tries = {0};
    open_group(0);
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(choose(&tries, NOW), i);
    assert_int_equal(choose(&tries, NOW), -ENXIO);
    assert_int_equal(tries.n, SERVERS);
    close_group();
}

TEST(retries)
{
    struct mk_upstream_tries tries = {0};
    open_group(0);
    conf.retry_most = 1;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), 1);
    assert_int_equal(choose(&tries, NOW), -ENXIO);
    tries.n = 0;
    tries.failure = MK_UPSTREAM_SENT;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), -ENXIO);
    conf.retry.kind = RETRY_IDEMPOTENT;
    tries.n_sent = 0;
    assert_int_equal(choose(&tries, NOW), 1);
    tries = (struct mk_upstream_tries){.failure = MK_UPSTREAM_KEPT_ENDED};
    conf.retry.kind = RETRY_CONNECT;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), 1);
    conf.balance = UPSTREAM_HASH;
    tries.n = 1;
    assert_int_equal(choose(&tries, NOW), -ENXIO);
    tries = (struct mk_upstream_tries){0};
    conf.balance = UPSTREAM_FIRST;
    conf.retry.kind = RETRY_OFF;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), -ENXIO);
    close_group();
}

TEST(retries_end_with_their_time_and_budget)
{
    struct mk_upstream_tries tries = {0};
    open_group(0);
    conf.retry_time_ms = 1000;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW + 999), 1);
    assert_int_equal(choose(&tries, NOW + 1000), -ENXIO);
    conf.retry_time_ms = UINT32_MAX;
    conf.retry_budget = 0;
    conf.retry.kind = RETRY_IDEMPOTENT;
    tries.failure = MK_UPSTREAM_SENT;
    for (int i = 0; i < 2; i++, tries.n = 2)
        assert_int_equal(choose(&tries, NOW + 1000), 2);
    tries.n = 3;
    assert_int_equal(choose(&tries, NOW + 1000), 3); /* the third retry of the group */
    tries.n = 1;
    assert_int_equal(choose(&tries, NOW + 1000), -ENXIO);
    tries.failure = MK_UPSTREAM_NOT_REACHED;
    assert_int_equal(choose(&tries, NOW + 1000), 1); /* is no work for a server */
    tries.n = 1;
    tries.failure = MK_UPSTREAM_SENT;
    conf.retry_budget = 100;
    for (int i = 0; i < 4; i++)
        assert_int_equal(choose_first(NOW + 1000), 0);
    assert_int_equal(choose(&tries, NOW + 1000), 1);
    close_group();
}

TEST(servers_that_are_left_out)
{
    open_group(0);
    lines[0].is_down = true;
    lines[1].weight = 0;
    assert_int_equal(choose_first(NOW), 2);
    lines[2].is_draining = true;
    assert_int_equal(choose_first(NOW), 3);
    lines[3].is_down = true;
    assert_int_equal(choose_first(NOW), -ENXIO);
    atomic_store(&group_members(group)->items[1].server->admin->weight_plus, 1 + 1); /* the shell comes first */
    assert_int_equal(choose_first(NOW), 1);
    atomic_store(&group_members(group)->items[1].server->admin->state, ADMIN_DRAIN);
    atomic_store(&group_members(group)->items[2].server->admin->state, ADMIN_UP);
    assert_int_equal(choose_first(NOW), 2);
    close_group();
}

TEST(backups)
{
    struct mk_upstream_tries tries = {0};
    open_group(2);
    note_failures(0, 2, NOW);
    assert_int_equal(choose_first(NOW), 1);
    note_failures(1, 2, NOW);
    assert_int_equal(choose(&tries, NOW), 2);
    assert_int_equal(choose(&tries, NOW), 3);
    assert_int_equal(choose(&tries, NOW), 0); /* those that are ejected, in the end */
    close_group();
}

TEST(ejection_doubles_until_a_response)
{
    open_group(0);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 0);
    server_note_response(group_members(group)->items[0].server, NULL);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 0);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 1);
    assert_int_equal(choose_first(NOW + 9999), 1);
    assert_int_equal(choose_first(NOW + 10000), 0);
    note_failures(0, 1, NOW + 10000);
    assert_int_equal(choose_first(NOW + 29999), 1);
    assert_int_equal(choose_first(NOW + 30000), 0);
    server_note_response(group_members(group)->items[0].server, NULL);
    note_failures(0, 2, NOW + 40000);
    assert_int_equal(choose_first(NOW + 49999), 1);
    assert_int_equal(choose_first(NOW + 50000), 0);
    uint64_t now = NOW + 50000;
    for (int i = 0; i < 40; i++, now += EJECT_MS_MAX)
        note_failures(0, 1, now);
    assert_int_equal(choose_first(now - 1), 1); /* never for longer than this */
    assert_int_equal(choose_first(now), 0);
    close_group();
}

TEST(too_many_are_ejected)
{
    open_group(0);
    conf.eject_most = 50;
    note_failures(0, 2, NOW);
    note_failures(1, 2, NOW);
    assert_int_equal(choose_first(NOW), 2);
    note_failures(2, 2, NOW);
    assert_int_equal(choose_first(NOW), 0);
    close_group();
}

TEST(never_ejected)
{
    open_group(0);
    conf.eject_after = 0;
    note_failures(0, 100, NOW);
    assert_int_equal(choose_first(NOW), 0);
    close_group();
}

/* ── checks ── */

static const struct health_rules rules = {.down = 2, .up = 2, .interval_ms = 1000};

static void note_checks(unsigned i, unsigned times, const char *reason)
{
    for (unsigned k = 0; k < times; k++)
        server_note_check(group_members(group)->items[i].server, &rules, reason, NULL, NOW);
}

/* The first check decides at once; servers that are down are never tried. */
TEST(servers_that_are_down)
{
    open_group(1);
    conf.eject_most = 0;
    note_checks(0, 1, "refused");
    assert_int_equal(choose_first(NOW), 1);
    note_checks(0, 1, NULL);
    assert_int_equal(choose_first(NOW), 1);
    note_checks(0, 1, NULL);
    assert_int_equal(choose_first(NOW), 0);
    for (unsigned i = 0; i < SERVERS - 1; i++)
        note_checks(i, 2, "refused");
    assert_int_equal(choose_first(NOW), 3); /* the backup */
    note_checks(3, 2, "refused");
    assert_int_equal(choose_first(NOW), -ENXIO);
    server_end_checks(group_members(group)->items[2].server, NULL, NOW);
    assert_int_equal(choose_first(NOW), 2);
    close_group();
}

/* One that succeeds ends it; the next failure begins another one, unless there was a response. */
TEST(checks_end_ejections)
{
    open_group(0);
    struct server *server = group_members(group)->items[0].server;
    note_failures(0, 2, NOW);
    note_checks(0, 1, "refused");
    assert_int_equal(choose_first(NOW), 1);
    note_checks(0, 1, NULL); /* it is down until the second one */
    assert_int_equal(choose_first(NOW), 1);
    note_checks(0, 1, NULL);
    assert_false(server_is_ejected(server, NOW));
    assert_int_equal(choose_first(NOW), 0);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 1);
    note_checks(0, 1, NULL);
    assert_int_equal(choose_first(NOW), 0);
    server_note_response(server, NULL);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 0);
    close_group();
}

/* Its operator keeps requests from it, and those that it has say nothing of it. */
TEST(servers_that_drain_are_not_ejected)
{
    open_group(0);
    struct server *server = group_members(group)->items[0].server;
    for (enum admin_state by = ADMIN_DRAIN; by <= ADMIN_DOWN; by++) {
        admin_set_state(server->admin, by);
        note_failures(0, 5, NOW);
        assert_false(server_is_ejected(server, NOW));
    }
    admin_set_state(server->admin, ADMIN_UNSET);
    note_failures(0, 1, NOW);
    assert_true(server_is_ejected(server, NOW));
    close_group();
}

/* SlowStart: a server that is up again begins with little. */
TEST(slow_start_behind_checks)
{
    unsigned found = 0;
    open_group(0);
    conf.balance = UPSTREAM_ROUND_ROBIN;
    conf.slow_start_ms = 10000;
    note_checks(0, 1, "refused");
    note_checks(0, 2, NULL);
    for (int i = 0; i < 310; i++)
        found += choose_first(NOW) == 0;
    assert_int_equal(found, 10);
    for (int i = 0; i < 400; i++)
        found += choose_first(NOW + 10000) == 0;
    assert_int_equal(found, 110);
    close_group();
}

/* As reloads call it: the same check continues in its time, another one begins at once. */
TEST(when_checks_are_due)
{
    open_group(0);
    struct server *server = group_members(group)->items[0].server;
    assert_int_equal(server_begin_checks(server, 1, NOW), 0);
    uint32_t wait = server_note_check(server, &rules, NULL, NULL, NOW);
    assert_in_range(wait, 750, 900);
    assert_int_equal(server_begin_checks(server, 1, NOW + 100), wait - 100);
    assert_int_equal(server_begin_checks(server, 1, NOW + 2000), 0);
    assert_int_equal(server_begin_checks(server, 2, NOW), 0);
    assert_false(server_is_down(server));
    server_note_check(server, &rules, "refused", NULL, NOW);
    assert_true(server_is_down(server)); /* the first one of this kind */
    close_group();
}

/* A group of the next generation has the same servers, and what is known of them. */
TEST(servers_outlive_groups)
{
    open_group(0);
    struct mk_upstream_group *before = group;
    note_failures(0, 2, NOW);
    group_members(group)->items[1].server->load = 1;
    group = group_make(&conf, &group_names);
    assert_ptr_equal(group_members(group)->items[0].server, group_members(before)->items[0].server);
    group_free(before);
    assert_int_equal(choose_first(NOW), 1);
    conf.balance = UPSTREAM_LEAST_LOADED;
    for (int i = 0; i < 1000; i++) {
        struct mk_upstream_tries tries = {.servers = {&group_members(group)->items[2].server->base,
                                                      &group_members(group)->items[3].server->base},
                                          .n = 2};
        memset(&group->pool->budget, 0, sizeof(group->pool->budget));
        note_failures(0, 2, NOW);
        assert_int_equal(choose(&tries, NOW), 1);
        tries.n = 2;
        assert_int_equal(choose(&tries, NOW + EJECT_MS_MAX), 0);
    }
    group_members(group)->items[1].server->load = 0;
    close_group();
    open_group(0);
    assert_int_equal(choose_first(NOW), 0); /* no group has held them */
    close_group();
}

/* A loop may still see them, but their counters, which are hidden then, do not change any more. */
TEST(removed_servers_are_not_counted, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *up[SERVERS], *down, *ejected;
    open_group(0);
    struct member *members = group_members(group)->items;
    for (unsigned i = 0; i < SERVERS; i++)
        up[i] = members[i].server->counters[SERVER_UP];
    ejected = members[0].server->counters[SERVER_EJECTED];
    down = members[1].server->counters[SERVER_DOWN];
    note_failures(0, 2, NOW);
    note_checks(1, 1, "refused");
    assert_int_equal(mk_counter_read(up[0]) + mk_counter_read(up[1]), 1);
    assert_int_equal(mk_counter_read(down) + mk_counter_read(ejected), 2);
    mk_epoch_join(&loop);
    group_free(group);
    assert_int_equal(mk_epoch_reclaim(servers_retired()), SERVERS);
    assert_int_equal(mk_counter_read(down) + mk_counter_read(ejected), 0);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_int_equal(mk_counter_read(up[i]), 0);
    mk_epoch_leave(&loop);
    assert_int_equal(mk_epoch_reclaim(servers_retired()), 0);
    assert_int_equal(mk_counter_read(down) + mk_counter_read(ejected), 0);
    close_fixture();
}
