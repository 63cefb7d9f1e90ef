// SPDX-License-Identifier: Apache-2.0
/*
 * A group of four servers on a loop whose clock the test sets.
 */
#ifndef MK_UNIT_UPSTREAM_GROUP_FIXTURE_H
#define MK_UNIT_UPSTREAM_GROUP_FIXTURE_H

#include "plugins/upstream/groups.h"

#include "core/net/dial_fixture.h" /* its clock would hide names of parameters before */

enum { NOW = 1000000, SERVERS = 4 };

static struct server_line lines[SERVERS];
static struct upstream_conf conf;
static struct mk_upstream_group *group;
static struct names group_names;
static const struct preference no_preference;
static const struct mk_upstream_outcome refused = {.err = -ECONNREFUSED};

/* A group of the servers 0 to 3, of which the last `n_backups` are backups. */
static inline void open_group(unsigned n_backups)
{
    static const char *const names[SERVERS] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"};
    for (unsigned i = 0; i < SERVERS; i++)
        lines[i] = (struct server_line){.name = mk_str_c(names[i]), .weight = 1, .is_backup = i >= SERVERS - n_backups};
    conf = (struct upstream_conf){.name = MK_STR("g"),
                                  .servers = {lines, SERVERS},
                                  .balance = UPSTREAM_FIRST,
                                  .retry_most = 7,
                                  .retry_time_ms = UINT32_MAX,
                                  .retry_budget = 10000,
                                  .queue_timeout_ms = 5000,
                                  .eject_after = 2,
                                  .eject_most = 100,
                                  .eject_time_ms = 10000};
    open_fixture(NULL);
    names_init(&group_names);
    group = group_make(&conf, &group_names);
    assert_non_null(group);
}

static inline void close_group(void)
{
    group_free(group);
    close_fixture();
}

static inline int index_of(const struct mk_upstream_server *server)
{
    for (unsigned i = 0; i < group_members(group)->n; i++)
        if (&group_members(group)->items[i].server->base == server)
            return (int)i;
    return -1;
}

static inline void set_time(uint64_t now)
{
    now_ms = now;
    settle();
}

/* Returns the index of the server that the next try gets, or a negative error; its load is what it was. */
static inline int choose(struct mk_upstream_tries *tries, uint64_t now)
{
    struct mk_upstream_wait wait = {.fn = NULL};
    struct mk_upstream_server *server;
    set_time(now);
    int r = group_choose(group, &loop, &no_preference, tries, &wait, &server);
    if (r != 0)
        return r > 0 ? -EAGAIN : r;
    server_of(server)->load--;
    return index_of(server);
}

static inline int choose_first(uint64_t now)
{
    struct mk_upstream_tries tries = {0};
    return choose(&tries, now);
}

#endif
