// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include <monkey/base/random.h>
#include <monkey/base/siphash.h>
#include <monkey/base/time.h>

#include <errno.h>

enum { ADDRESS_TEXT_BYTES = 64 };

static const uint64_t no_key[2]; /* servers have the same hash on each machine */

/* The addresses of a line; none: the line itself is a server. */
struct line_addresses {
    const struct lookup_address *items;
    unsigned n;
};

static struct line_addresses get_addresses(const struct name_watch *watch)
{
    struct line_addresses found = {0};
    if (watch->name)
        found.items = names_get(watch, &found.n);
    return found;
}

/* A service whose records are not known has no server. */
static unsigned count_servers(const struct server_line *line, unsigned addresses)
{
    return addresses ? addresses : !line->is_srv;
}

static unsigned count_members(const struct upstream_conf *conf, const struct name_watch *watches)
{
    unsigned n = 0;
    for (unsigned i = 0; i < conf->servers.n; i++)
        n += count_servers(&conf->servers.items[i], get_addresses(&watches[i]).n);
    return n < GROUP_MEMBERS_MAX ? n : GROUP_MEMBERS_MAX;
}

/* ── weights ── */

/*
 * Returns the weight of an SRV record (RFC 2782) among those of its priority: as it is, if all are within the range of
 * lines. Otherwise, or if one is 0, which means a small share, by the largest one.
 */
static uint32_t scale_weight(const struct line_addresses *addresses, const struct lookup_address *one)
{
    uint32_t most = 0;
    bool has_zero = false;
    for (unsigned i = 0; i < addresses->n; i++) {
        const struct lookup_address *other = &addresses->items[i];
        if (other->priority != one->priority)
            continue;
        most = other->weight > most ? other->weight : most;
        has_zero |= !other->weight;
    }
    if (!most)
        return 1;
    uint32_t weight =
        most <= UPSTREAM_WEIGHT_MAX && !has_zero ? one->weight : (uint32_t)one->weight * UPSTREAM_WEIGHT_MAX / most;
    return weight ? weight : 1;
}

/* ── lists ── */

/* Returns 0 or -ENOMEM. */
static int add_member(struct members *members, struct pool *pool, const struct server_line *line, struct mk_str address)
{
    struct member *m = &members->items[members->n];
    struct mk_str hashed = address.len ? address : line->name;
    *m = (struct member){.line = line};
    m->hash = mk_siphash(no_key, hashed.p, hashed.len);
    m->server = servers_hold(pool, line->name, address);
    if (!m->server)
        return -ENOMEM;
    members->n++;
    return 0;
}

static int add_addresses(struct members *members, struct pool *pool, const struct server_line *line,
                         const struct line_addresses *addresses)
{
    for (unsigned i = 0; i < addresses->n && members->n < GROUP_MEMBERS_MAX; i++) {
        const struct lookup_address *one = &addresses->items[i];
        MK_BUF_ON_STACK(text, ADDRESS_TEXT_BYTES);
        lookup_print(&one->address, &text);
        if (add_member(members, pool, line, mk_buf_str(&text)) < 0)
            return -ENOMEM;
        members->items[members->n - 1].priority = one->priority;
        if (line->is_srv)
            members->items[members->n - 1].weight = scale_weight(addresses, one);
    }
    return 0;
}

static int add_line(struct members *members, struct pool *pool, const struct server_line *line,
                    const struct line_addresses *addresses)
{
    if (addresses->n)
        return add_addresses(members, pool, line, addresses);
    bool has_room = members->n < GROUP_MEMBERS_MAX;
    return count_servers(line, 0) && has_room ? add_member(members, pool, line, MK_STR("")) : 0;
}

static void free_members(struct members *members)
{
    for (unsigned i = 0; i < members->n; i++)
        server_release(members->items[i].server);
    mk_account_free(NULL, members, 0);
}

/*
 * Makes the list of a group. `watches`: of the lines; those without a name are zeroed. Under the lock of names. Returns
 * NULL without memory.
 */
static struct members *make_members(const struct upstream_conf *conf, struct pool *pool,
                                    const struct name_watch *watches)
{
    unsigned n = count_members(conf, watches);
    struct members *members = mk_account_alloc(NULL, sizeof(*members) + n * sizeof(*members->items));
    if (!members)
        return NULL;
    members->n = 0;
    for (unsigned i = 0; i < conf->servers.n; i++) {
        struct line_addresses addresses = get_addresses(&watches[i]);
        if (add_line(members, pool, &conf->servers.items[i], &addresses) == 0)
            continue;
        free_members(members);
        return NULL;
    }
    return members;
}

static void free_retired(struct mk_retired *retired)
{
    free_members(MK_CONTAINER_OF(retired, struct members, retired));
}

/* Finds a server; NULL: the list has it not. `from`: where it is likely. */
static const struct member *find_member(const struct members *members, const struct mk_upstream_server *server,
                                        unsigned from)
{
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *m = &members->items[(from + i) % members->n];
        if (&m->server->base == server)
            return m;
    }
    return NULL;
}

/* A server that stays is mostly after the one that was found last. */
static void take_turns(struct members *members, const struct members *former)
{
    unsigned next = 0;
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *same = find_member(former, &members->items[i].server->base, next);
        if (!same)
            continue;
        members->items[i].turn = same->turn;
        next = (unsigned)(same - former->items) + 1;
    }
}

/* Makes the values of the cookies. */
static void make_tokens(struct members *members, const uint64_t key[2])
{
    for (unsigned i = 0; i < members->n; i++) {
        const struct mk_upstream_server *server = &members->items[i].server->base;
        sticky_make_token(key, server->group, server->key, members->items[i].token);
    }
}

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
    struct members *former = group->members, *members = make_members(group->conf, group->pool, group->watches);
    if (!members)
        return -ENOMEM;
    if (group->has_tokens)
        make_tokens(members, group->sticky_key);
    lock_take(&group->pool->lock);
    lock_take(&group->turns_lock);
    if (former)
        take_turns(members, former);
    lock_release(&group->turns_lock);
    atomic_store_explicit(&group->members, members, memory_order_release);
    atomic_fetch_add(&group->version, 1);
    lock_release(&group->pool->lock);
    if (!former)
        return 0;
    /* no new request finds the former list: it is freed as soon as no loop can see it */
    mk_epoch_retire(servers_retired(), &former->retired, free_retired);
    mk_epoch_reclaim(servers_retired());
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
    lock_init(&group->turns_lock, LOCK_TURNS);
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
    lock_take(&pool->lock);
    if (pool->current == group)
        pool->current = NULL;
    lock_release(&pool->lock);
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
        free_members(group->members);
    if (group->pool)
        pool_release(group->pool);
    lock_destroy(&group->turns_lock);
    mk_account_free(NULL, group, get_bytes(group->conf));
}

void group_make_current(struct mk_upstream_group *group)
{
    uint64_t now = mk_time_monotonic_ms();
    struct pool *pool = group->pool;
    lock_take(&pool->lock);
    pool->current = group;
    lock_release(&pool->lock);
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
    make_tokens(group->members, key);
    names_unlock();
}

const struct member *group_find_member(const struct mk_upstream_group *group, const struct mk_upstream_server *server)
{
    return find_member(group_members(group), server, 0);
}

struct server *group_find_sticky(const struct mk_upstream_group *group, struct mk_str value)
{
    const struct members *members = group_members(group);
    for (unsigned i = 0; i < members->n; i++)
        if (sticky_is_token(members->items[i].token, value))
            return members->items[i].server;
    return NULL;
}
