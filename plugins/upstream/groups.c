// SPDX-License-Identifier: Apache-2.0
/*
 * Makes groups, and keeps their lists of servers (groups.h).
 */
#include "groups.h"

#include <monkey/random.h>
#include <monkey/time.h>

#include <errno.h>

/* ── servers ── */

/* Requests that wait for room may have it on servers that are new. */
static void fill_new_servers(struct mk_upstream_group *group, const struct members *members)
{
    uint64_t now = mk_time_monotonic_ms();
    for (unsigned i = 0; i < members->n && group->conf->max_connections; i++)
        group_note_room(group->pool, members->items[i].server, false, now);
}

/* Makes the list of servers anew. Under the lock of names. Returns 0, or -ENOMEM: it stays as it was. */
static int update_members(struct mk_upstream_group *group)
{
    struct members *former = group->members, *members = members_make(group->conf, group->pool, group->watches);
    if (!members)
        return -ENOMEM;
    if (group->has_tokens)
        members_make_tokens(members, group->sticky_key);
    pthread_mutex_lock(&group->pool->lock);
    pthread_mutex_lock(&group->turns_lock);
    if (former)
        members_take_turns(members, former);
    pthread_mutex_unlock(&group->turns_lock);
    atomic_store_explicit(&group->members, members, memory_order_release);
    atomic_fetch_add(&group->version, 1);
    pthread_mutex_unlock(&group->pool->lock);
    if (!former)
        return 0;
    members_retire(former);
    fill_new_servers(group, members);
    return 0;
}

static int on_changed(struct name_watch *watch)
{
    return update_members(watch->ctx);
}

static int watch_line(struct mk_upstream_group *group, struct names *names, unsigned i)
{
    const struct upstream_conf *conf = group->conf;
    const struct server_line *line = &conf->servers.items[i];
    const struct name_conf name = {
        .group = conf->name,
        .line = line->name,
        .host = line->target->host,
        .is_srv = line->is_srv,
        .port = line->target->port,
        .family = conf->family,
        .servers = conf->name_servers,
        .ttl_ms_max = conf->resolve_ms,
    };
    group->watches[i] = (struct name_watch){.changed = on_changed, .ctx = group};
    return names_watch(names, &group->watches[i], &name);
}

/* What the shell has set for a line stays, also while the line has no server. */
static int open_line(struct mk_upstream_group *group, struct names *names, unsigned i)
{
    const struct server_line *line = &group->conf->servers.items[i];
    group->admins[i] = admin_hold(group->conf->name, line->name);
    if (!group->admins[i])
        return -ENOMEM;
    return server_line_is_name(group->conf, line) ? watch_line(group, names, i) : 0;
}

/* Under the lock of names, so that no list is made before all lines are there. */
static int open_members(struct mk_upstream_group *group, struct names *names)
{
    int err = 0;
    for (unsigned i = 0; i < group->conf->servers.n && err == 0; i++)
        err = open_line(group, names, i);
    return err < 0 ? err : update_members(group);
}

/* ── life ── */

static size_t get_bytes(const struct upstream_conf *conf)
{
    return sizeof(struct mk_upstream_group) + conf->servers.n * (sizeof(struct name_watch) + sizeof(struct admin *));
}

struct mk_upstream_group *group_make(const struct upstream_conf *conf, struct names *names)
{
    struct mk_upstream_group *group = mk_account_zalloc(NULL, get_bytes(conf));
    if (!group)
        return NULL;
    group->conf = conf;
    group->admins = (struct admin **)&group->watches[conf->servers.n];
    group->pool = pool_hold(conf->name);
    pthread_mutex_init(&group->turns_lock, NULL);
    mk_random(&group->seed, sizeof(group->seed)); /* any will do */
    names_lock();
    int err = group->pool ? open_members(group, names) : -ENOMEM;
    names_unlock();
    if (err == 0)
        return group;
    group_free(group);
    return NULL;
}

static void end_current(const struct mk_upstream_group *group)
{
    struct pool *pool = group->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->current == group)
        pool->current = NULL;
    pthread_mutex_unlock(&pool->lock);
}

void group_free(struct mk_upstream_group *group)
{
    names_lock();
    for (unsigned i = 0; i < group->conf->servers.n; i++)
        names_unwatch(&group->watches[i]);
    names_unlock();
    for (unsigned i = 0; i < group->conf->servers.n; i++)
        admin_release(group->admins[i]);
    if (group->pool)
        end_current(group);
    if (group->members)
        members_free(group->members);
    if (group->pool)
        pool_release(group->pool);
    pthread_mutex_destroy(&group->turns_lock);
    mk_account_free(NULL, group, get_bytes(group->conf));
}

void group_make_current(struct mk_upstream_group *group)
{
    uint64_t now = mk_time_monotonic_ms();
    struct pool *pool = group->pool;
    pthread_mutex_lock(&pool->lock);
    pool->current = group;
    pthread_mutex_unlock(&pool->lock);
    const struct members *members = group_members(group);
    for (unsigned i = 0; i < members->n; i++)
        group_note_room(pool, members->items[i].server, false, now);
}

/* Nothing reads the list of a group that is not in use, but other addresses may replace it. */
void group_make_tokens(struct mk_upstream_group *group, const uint64_t key[2])
{
    names_lock();
    memcpy(group->sticky_key, key, sizeof(group->sticky_key));
    group->has_tokens = true;
    members_make_tokens(group->members, key);
    names_unlock();
}

const struct member *group_find_member(const struct mk_upstream_group *group, const struct mk_upstream_server *server)
{
    return members_find(group_members(group), server, 0);
}

struct server *group_find_sticky(const struct mk_upstream_group *group, struct mk_str value)
{
    const struct members *members = group_members(group);
    for (unsigned i = 0; i < members->n; i++)
        if (sticky_is_token(members->items[i].token, value))
            return members->items[i].server;
    return NULL;
}
