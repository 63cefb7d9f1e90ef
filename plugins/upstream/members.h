// SPDX-License-Identifier: Apache-2.0
/*
 * A group of a generation, with its servers.
 */
#ifndef UPSTREAM_MEMBERS_H
#define UPSTREAM_MEMBERS_H

#include "member_list.h"

static inline enum admin_state server_line_state(const struct server_line *line)
{
    return line->is_down ? ADMIN_DOWN : line->is_draining ? ADMIN_DRAIN : ADMIN_UP;
}

/* Return what the line says, and what is in force, since the shell may have set something else. Any thread. */
static inline enum admin_state member_line_state(const struct member *m)
{
    return server_line_state(m->line);
}
static inline enum admin_state member_state(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin->state, memory_order_relaxed);
    return set != ADMIN_UNSET ? (enum admin_state)set : member_line_state(m);
}
static inline uint32_t member_weight(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin->weight_plus, memory_order_relaxed);
    return set ? set - 1 : m->weight ? m->weight : m->line->weight;
}

/* Returns whether the member may get a request; `is_sticky`: the request names it by its cookie. */
static inline bool member_takes(const struct member *m, bool is_sticky)
{
    enum admin_state state = member_state(m);
    if (server_is_down(m->server))
        return false;
    return is_sticky ? state != ADMIN_DOWN : state == ADMIN_UP && member_weight(m);
}

struct mk_upstream_group {
    struct mk_upstream_group *next;
    const struct upstream_conf *conf;
    struct pool *pool;          /* held */
    pthread_mutex_t turns_lock; /* of RoundRobin */
    _Atomic uint64_t seed;
    _Atomic bool tries_ejected; /* more servers are ejected than EjectMost allows */
    /* replaced under the locks of names and of the pool */
    _Atomic(struct members *) members;
    _Atomic uint32_t version; /* of `members` */
    uint64_t sticky_key[2];
    bool has_tokens;             /* made of that key; under the lock of names */
    struct admin **admins;       /* of the lines, held; after `watches` */
    struct name_watch watches[]; /* of the lines; those without a name are zeroed */
};

/*
 * Returns the servers of a group, valid until the turn of a loop ends that has joined the epochs, or as long as the
 * lock of the pool is held.
 */
static inline struct members *group_members(const struct mk_upstream_group *group)
{
    return atomic_load_explicit(&group->members, memory_order_acquire);
}

/* What a request wants, except a server that it has not had. */
struct preference {
    const uint64_t *key;         /* for Hash; NULL: it has none */
    const struct server *sticky; /* which its cookie names; NULL: none */
    const struct server *login;  /* which knows its login: before that one, if it has room; NULL: none */
};

#endif
