// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses a server of a group (groups.h): of those that are in use the backups only if there is no other, and of those
 * that are ejected only if too many are, or all.
 */
#include "groups.h"

#include <monkey/random.h>
#include <monkey/siphash.h>

/* The members that may get a request. */
struct choice {
    struct candidate candidates[UPSTREAM_SERVERS_MAX];
    struct turn *turns[UPSTREAM_SERVERS_MAX];
    struct member *members[UPSTREAM_SERVERS_MAX];
    unsigned n;
};

static const uint64_t no_key[2]; /* servers have the same hash on each machine */

struct mk_upstream_group *group_make(const struct upstream_conf *conf)
{
    size_t bytes = sizeof(struct mk_upstream_group) + conf->servers.n * sizeof(struct member);
    struct mk_upstream_group *group = mk_account_alloc(NULL, bytes);
    if (!group)
        return NULL;
    *group = (struct mk_upstream_group){.conf = conf};
    pthread_mutex_init(&group->turns_lock, NULL);
    mk_random(&group->seed, sizeof(group->seed)); /* any will do */
    for (; group->n < conf->servers.n; group->n++) {
        struct member *m = &group->members[group->n];
        *m = (struct member){.line = &conf->servers.items[group->n]};
        m->hash = mk_siphash(no_key, m->line->name.p, m->line->name.len);
        m->server = servers_hold(conf->name, m->line->name);
        if (!m->server) {
            group_free(group);
            return NULL;
        }
    }
    return group;
}

void group_free(struct mk_upstream_group *group)
{
    for (unsigned i = 0; i < group->n; i++)
        server_release(group->members[i].server);
    pthread_mutex_destroy(&group->turns_lock);
    mk_account_free(NULL, group, sizeof(*group) + group->conf->servers.n * sizeof(*group->members));
}

/* A number of SplitMix64, whose state threads share. */
static uint64_t get_random(struct mk_upstream_group *group)
{
    uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = atomic_fetch_add_explicit(&group->seed, step, memory_order_relaxed) + step;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool was_tried(const struct mk_upstream_tries *tries, const struct server *server)
{
    for (unsigned i = 0; i < tries->n; i++)
        if (tries->servers[i] == &server->base)
            return true;
    return false;
}

/* Tells whether more are ejected than EjectMost allows. */
static bool are_too_many_ejected(struct mk_upstream_group *group, uint64_t now_ms)
{
    unsigned ejected = 0;
    for (unsigned i = 0; i < group->n; i++)
        ejected += server_is_ejected(group->members[i].server, now_ms);
    return ejected * 100 > (uint64_t)group->conf->eject_most * group->n;
}

static void collect(struct mk_upstream_group *group, const struct mk_upstream_tries *tries, bool backups,
                    bool with_ejected, uint64_t now_ms, struct choice *ret)
{
    ret->n = 0;
    for (unsigned i = 0; i < group->n; i++) {
        struct member *m = &group->members[i];
        if (m->line->is_down || !m->line->weight || m->line->is_backup != backups || was_tried(tries, m->server) ||
            (!with_ejected && server_is_ejected(m->server, now_ms)))
            continue;
        ret->candidates[ret->n].weight = m->line->weight;
        ret->candidates[ret->n].load = atomic_load_explicit(&m->server->load, memory_order_relaxed);
        ret->candidates[ret->n].hash = m->hash;
        ret->turns[ret->n] = &m->turn;
        ret->members[ret->n++] = m;
    }
}

/* Servers of the group before backups; then both again with those that are ejected. */
static void find_members(struct mk_upstream_group *group, const struct mk_upstream_tries *tries, uint64_t now_ms,
                         struct choice *ret)
{
    bool with_ejected = are_too_many_ejected(group, now_ms);
    for (unsigned step = with_ejected ? 2 : 0; step < 4; step++) {
        collect(group, tries, step % 2, step >= 2, now_ms, ret);
        if (ret->n)
            return;
    }
}

static int balance(struct mk_upstream_group *group, const uint64_t *key, const struct choice *c)
{
    int chosen;
    if (group->conf->balance == UPSTREAM_HASH && key)
        return balance_hash(c->candidates, c->n, *key);
    switch (group->conf->balance) {
    case UPSTREAM_FIRST:
        return balance_first(c->candidates, c->n);
    case UPSTREAM_ROUND_ROBIN:
        pthread_mutex_lock(&group->turns_lock);
        chosen = balance_round_robin(c->candidates, c->turns, c->n);
        pthread_mutex_unlock(&group->turns_lock);
        return chosen;
    default:
        return balance_least_loaded(c->candidates, c->n, get_random(group));
    }
}

/* A kept connection that has ended is no reason to give a key to another server. */
static bool allows_retry(const struct upstream_conf *conf, const struct mk_upstream_tries *tries)
{
    if (conf->retry == UPSTREAM_RETRY_OFF || tries->n > conf->retry_most)
        return false;
    return tries->loss == MK_UPSTREAM_SENT         ? conf->retry == UPSTREAM_RETRY_IDEMPOTENT
           : tries->loss == MK_UPSTREAM_KEPT_ENDED ? conf->balance != UPSTREAM_HASH
                                                   : true;
}

struct mk_upstream_server *group_choose(const struct mk_upstream_group *group, uint64_t now_ms, const uint64_t *key,
                                        struct mk_upstream_tries *tries)
{
    struct mk_upstream_group *own = (struct mk_upstream_group *)(uintptr_t)group; /* turns and seed have no owner */
    struct choice choice;
    if (tries->n && !allows_retry(own->conf, tries))
        return NULL;
    find_members(own, tries, now_ms, &choice);
    int chosen = balance(own, key, &choice);
    if (chosen < 0)
        return NULL;
    struct mk_upstream_server *server = &choice.members[chosen]->server->base;
    tries->servers[tries->n++] = server;
    return server;
}
