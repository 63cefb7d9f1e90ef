// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses a server of a group (choice.h): of those that are in use the backups only if there is no other, and of those
 * that are ejected only if too many are, or all. None that is down by its checks.
 */
#include "choice.h"

#include <monkey/log.h>

enum { SLOW_PERCENT_LEAST = 10 };

/* The members that may get a request. */
struct choice {
    struct candidate candidates[GROUP_MEMBERS_MAX];
    struct turn *turns[GROUP_MEMBERS_MAX];
    struct member *members[GROUP_MEMBERS_MAX];
    unsigned n, n_usable; /* usable: those that are full, or not wanted, included */
    bool is_full;         /* another one would be there, if it had fewer requests */
};

/* A number of SplitMix64, whose state threads share. */
static uint64_t get_random(struct mk_upstream_group *group)
{
    uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = atomic_fetch_add_explicit(&group->seed, step, memory_order_relaxed) + step;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void log_ejected(const struct mk_upstream_group *group, unsigned ejected, unsigned n, bool too_many)
{
    struct mk_str name = group->conf->name;
    if (too_many)
        mk_log_limited(MK_LOG_WARN, group,
                       "upstream %.*s: %u of %u servers are ejected, more than EjectMost (%d %%): all are tried",
                       MK_STR_ARG(name), ejected, n, (int)group->conf->eject_most);
    else
        mk_log_limited(MK_LOG_INFO, group, "upstream %.*s: %u of %u servers are ejected: only the others get requests",
                       MK_STR_ARG(name), ejected, n);
}

/* Tells whether more are ejected than EjectMost allows. */
static bool are_too_many_ejected(struct mk_upstream_group *group, const struct members *members, uint64_t now_ms)
{
    unsigned ejected = 0;
    for (unsigned i = 0; i < members->n; i++)
        ejected += server_is_ejected(members->items[i].server, now_ms);
    bool too_many = ejected * 100 > (uint64_t)group->conf->eject_most * members->n;
    _Atomic bool *known = &group->tries_ejected;
    if (atomic_load_explicit(known, memory_order_relaxed) != too_many && atomic_exchange(known, too_many) != too_many)
        log_ejected(group, ejected, members->n, too_many);
    return too_many;
}

/*
 * Returns the weight of a server, in percent of 1 with SlowStart: one that is in use again begins with little. Hash has
 * no slow start, since a key would have two servers meanwhile.
 */
static uint32_t get_weight(const struct mk_upstream_group *group, const struct member *m, uint64_t now_ms)
{
    uint32_t slow_ms = group->conf->slow_start_ms;
    if (!slow_ms || group->conf->balance == UPSTREAM_HASH)
        return member_weight(m);
    uint64_t from = atomic_load_explicit(&m->server->slow_from_ms, memory_order_relaxed);
    uint64_t percent = !from ? 100 : now_ms < from ? 0 : (now_ms - from) * 100 / slow_ms;
    percent = percent < SLOW_PERCENT_LEAST ? SLOW_PERCENT_LEAST : percent > 100 ? 100 : percent;
    return member_weight(m) * (uint32_t)percent;
}

static void add_candidate(struct mk_upstream_group *group, struct member *m, uint64_t now_ms, struct choice *c)
{
    uint32_t load = atomic_load(&m->server->load);
    if (group->conf->max_connections && load >= group->conf->max_connections) {
        c->is_full = true;
        return;
    }
    c->candidates[c->n] = (struct candidate){.weight = get_weight(group, m, now_ms), .load = load, .hash = m->hash};
    c->turns[c->n] = &m->turn;
    c->members[c->n++] = m;
}

static bool is_usable(const struct member *m, const struct criteria *criteria, bool backups, bool with_ejected)
{
    return member_takes(m, false) && m->line->is_backup == backups &&
           !retry_has_tried(criteria->tries, &m->server->base) &&
           (with_ejected || !server_is_ejected(m->server, criteria->now_ms));
}

/* Of the members of a line, which are in the order of their priorities, only those with the smallest one are used. */
static void collect_members(struct mk_upstream_group *group, struct members *members, const struct criteria *criteria,
                            bool backups, bool with_ejected, struct choice *ret)
{
    const struct member *preferred = NULL; /* the first usable one of the line */
    for (unsigned i = 0; i < members->n; i++) {
        struct member *m = &members->items[i];
        if (!is_usable(m, criteria, backups, with_ejected))
            continue;
        preferred = preferred && preferred->line == m->line ? preferred : m;
        ret->n_usable += m->priority == preferred->priority;
        if (m->priority == preferred->priority && (!criteria->only || criteria->only == m->server))
            add_candidate(group, m, criteria->now_ms, ret);
    }
}

/* Servers of the group before backups; then both again with those that are ejected. */
static void find_members(struct mk_upstream_group *group, const struct criteria *criteria, struct choice *ret)
{
    struct members *members = group_members(group);
    bool with_ejected = criteria->is_probe || are_too_many_ejected(group, members, criteria->now_ms);
    ret->n = ret->n_usable = 0;
    ret->is_full = false;
    for (unsigned step = with_ejected ? 2 : 0; step < 4 && !ret->n_usable; step++)
        collect_members(group, members, criteria, step % 2, step >= 2, ret);
}

static int balance_members(struct mk_upstream_group *group, const uint64_t *key, const struct choice *c)
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

/*
 * The server that the request's cookie names, before any other one: it also takes requests while it drains, and they
 * wait for it while it is full.
 */
static struct member *find_sticky(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full)
{
    const struct server *sticky = criteria->preference->sticky;
    struct members *members = group_members(group);
    MK_UNINITIALIZED struct choice choice;
    choice.n = 0;
    choice.is_full = false;
    for (unsigned i = 0; i < members->n; i++) {
        struct member *m = &members->items[i];
        if (m->server == sticky && member_takes(m, true) && !retry_has_tried(criteria->tries, &sticky->base) &&
            !server_is_ejected(m->server, criteria->now_ms))
            add_candidate(group, m, criteria->now_ms, &choice);
    }
    bool is_other = choice.n && criteria->only && criteria->only != sticky;
    *ret_is_full = choice.is_full || (is_other && !criteria->is_probe); /* with Hold any that responds will do */
    return choice.n && !is_other ? choice.members[0] : NULL;
}

struct member *choice_make(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full)
{
    MK_UNINITIALIZED struct choice choice;
    struct member *sticky = criteria->preference->sticky ? find_sticky(group, criteria, ret_is_full) : NULL;
    if (sticky || (criteria->preference->sticky && *ret_is_full))
        return sticky;
    find_members(group, criteria, &choice);
    *ret_is_full = choice.is_full;
    int chosen = balance_members(group, criteria->preference->key, &choice);
    return chosen < 0 ? NULL : choice.members[chosen];
}
