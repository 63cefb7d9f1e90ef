// SPDX-License-Identifier: Apache-2.0
/* Which server of a group a request gets: retries, backups, and servers that have failed. */
#include "testing.h"

#include "plugins/upstream/groups.h"

enum { NOW = 1000000, SERVERS = 4 };

static struct server_line lines[SERVERS];
static struct upstream_conf conf;
static struct mk_upstream_group *group;

/* A group of the servers a to d, of which the last `n_backups` are backups. */
static void open_group(unsigned n_backups)
{
    static const char *const names[SERVERS] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"};
    for (unsigned i = 0; i < SERVERS; i++)
        lines[i] = (struct server_line){.name = mk_str_c(names[i]), .weight = 1, .is_backup = i >= SERVERS - n_backups};
    conf = (struct upstream_conf){.name = MK_STR("g"),
                                  .servers = {lines, SERVERS},
                                  .balance = UPSTREAM_FIRST,
                                  .retry_most = 7,
                                  .eject_after = 2,
                                  .eject_most = 100,
                                  .eject_time_ms = 10000};
    group = group_make(&conf);
    assert_non_null(group);
}

static int index_of(const struct mk_upstream_server *server)
{
    for (unsigned i = 0; i < group->n; i++)
        if (&group->members[i].server->base == server)
            return (int)i;
    return -1;
}

/* Returns the index of the server that the next try gets. */
static int choose(struct mk_upstream_tries *tries, uint64_t now)
{
    return index_of(group_choose(group, now, NULL, tries));
}

static int choose_first(uint64_t now)
{
    struct mk_upstream_tries tries = {0};
    return choose(&tries, now);
}

static void note_failures(unsigned i, unsigned times, uint64_t now)
{
    for (unsigned k = 0; k < times; k++)
        server_note_failure(group->members[i].server, &conf, NULL, now);
}

TEST(each_try_gets_another_server)
{
    struct mk_upstream_tries tries = {0};
    open_group(0);
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(choose(&tries, NOW), i);
    assert_int_equal(choose(&tries, NOW), -1);
    assert_int_equal(tries.n, SERVERS);
    group_free(group);
}

TEST(retries)
{
    struct mk_upstream_tries tries = {0};
    open_group(0);
    conf.retry_most = 1;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), 1);
    assert_int_equal(choose(&tries, NOW), -1);
    tries.n = 0;
    tries.loss = MK_UPSTREAM_SENT;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), -1);
    conf.retry = UPSTREAM_RETRY_IDEMPOTENT;
    assert_int_equal(choose(&tries, NOW), 1);
    tries = (struct mk_upstream_tries){.loss = MK_UPSTREAM_KEPT_ENDED};
    conf.retry = UPSTREAM_RETRY_CONNECT;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), 1);
    conf.balance = UPSTREAM_HASH;
    tries.n = 1;
    assert_int_equal(choose(&tries, NOW), -1);
    tries = (struct mk_upstream_tries){0};
    conf.balance = UPSTREAM_FIRST;
    conf.retry = UPSTREAM_RETRY_OFF;
    assert_int_equal(choose(&tries, NOW), 0);
    assert_int_equal(choose(&tries, NOW), -1);
    group_free(group);
}

TEST(servers_that_are_left_out)
{
    open_group(0);
    lines[0].is_down = true;
    lines[1].weight = 0;
    assert_int_equal(choose_first(NOW), 2);
    lines[2].is_down = lines[3].is_down = true;
    assert_int_equal(choose_first(NOW), -1);
    group_free(group);
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
    group_free(group);
}

TEST(ejection_doubles_until_a_response)
{
    open_group(0);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 0);
    server_note_response(group->members[0].server);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 0);
    note_failures(0, 1, NOW);
    assert_int_equal(choose_first(NOW), 1);
    assert_int_equal(choose_first(NOW + 9999), 1);
    assert_int_equal(choose_first(NOW + 10000), 0);
    note_failures(0, 1, NOW + 10000);
    assert_int_equal(choose_first(NOW + 29999), 1);
    assert_int_equal(choose_first(NOW + 30000), 0);
    server_note_response(group->members[0].server);
    note_failures(0, 2, NOW + 40000);
    assert_int_equal(choose_first(NOW + 49999), 1);
    assert_int_equal(choose_first(NOW + 50000), 0);
    uint64_t now = NOW + 50000;
    for (int i = 0; i < 40; i++, now += EJECT_MS_MAX)
        note_failures(0, 1, now);
    assert_int_equal(choose_first(now - 1), 1); /* never for longer than this */
    assert_int_equal(choose_first(now), 0);
    group_free(group);
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
    group_free(group);
}

TEST(never_ejected)
{
    open_group(0);
    conf.eject_after = 0;
    note_failures(0, 100, NOW);
    assert_int_equal(choose_first(NOW), 0);
    group_free(group);
}

/* A group of the next generation has the same servers, and what is known of them. */
TEST(servers_outlive_groups)
{
    open_group(0);
    struct mk_upstream_group *before = group;
    note_failures(0, 2, NOW);
    server_begin(group->members[1].server, NULL);
    group = group_make(&conf);
    assert_ptr_equal(group->members[0].server, before->members[0].server);
    group_free(before);
    assert_int_equal(choose_first(NOW), 1);
    conf.balance = UPSTREAM_LEAST_LOADED;
    for (int i = 0; i < 1000; i++) {
        struct mk_upstream_tries tries = {.servers = {&group->members[2].server->base, &group->members[3].server->base},
                                          .n = 2};
        note_failures(0, 2, NOW);
        assert_int_equal(choose(&tries, NOW), 1);
        tries.n = 2;
        assert_int_equal(choose(&tries, NOW + EJECT_MS_MAX), 0);
    }
    server_end(group->members[1].server, NULL);
    group_free(group);
    open_group(0);
    assert_int_equal(choose_first(NOW), 0); /* no group has held them */
    group_free(group);
}
