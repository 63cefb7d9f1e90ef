// SPDX-License-Identifier: Apache-2.0
/*
 * A group of a generation, with its servers.
 */
#ifndef UPSTREAM_MEMBERS_H
#define UPSTREAM_MEMBERS_H

#include "servers.h"

/* A server as the configuration of its group has it. */
struct member {
    struct server *server; /* held */
    const struct server_line *line;
    struct turn turn;
    uint64_t hash;                  /* of the server's name */
    char token[STICKY_TOKEN_BYTES]; /* with Balance Sticky */
};

/* Return what the line says, and what is in force, since the shell may have set something else. Any thread. */
static inline enum admin_state member_line_state(const struct member *m)
{
    return m->line->is_down ? ADMIN_DOWN : m->line->is_draining ? ADMIN_DRAIN : ADMIN_UP;
}
static inline enum admin_state member_state(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin.state, memory_order_relaxed);
    return set != ADMIN_UNSET ? (enum admin_state)set : member_line_state(m);
}
static inline uint32_t member_weight(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin.weight_plus, memory_order_relaxed);
    return set ? set - 1 : m->line->weight;
}

/* Returns whether the member may get a request; `is_sticky`: the request names it by its cookie. */
static inline bool member_takes(const struct member *m, bool is_sticky)
{
    enum admin_state state = member_state(m);
    return is_sticky ? state != ADMIN_DOWN : state == ADMIN_UP && member_weight(m);
}

struct mk_upstream_group {
    struct mk_upstream_group *next;
    const struct upstream_conf *conf;
    struct pool *pool;          /* held */
    pthread_mutex_t turns_lock; /* of RoundRobin */
    _Atomic uint64_t seed;
    unsigned n;
    struct member members[];
};

/* What a request wants, besides a server that it has not had. */
struct wish {
    const uint64_t *key;         /* for Hash; NULL: it has none */
    const struct server *sticky; /* which its cookie names; NULL: none */
};

#endif
