// SPDX-License-Identifier: Apache-2.0
/*
 * The groups of a generation, and which server of one a request gets.
 */
#ifndef UPSTREAM_GROUPS_H
#define UPSTREAM_GROUPS_H

#include "servers.h"

#include <pthread.h>

/* A server as the configuration of its group has it. */
struct member {
    struct server *server; /* held */
    const struct server_line *line;
    struct turn turn;
    uint64_t hash; /* of the server's name */
};

struct mk_upstream_group {
    struct mk_upstream_group *next;
    const struct upstream_conf *conf;
    pthread_mutex_t turns_lock; /* of RoundRobin */
    _Atomic uint64_t seed;
    unsigned n;
    struct member members[];
};

/* Makes the group of a section. Returns NULL without memory. */
struct mk_upstream_group *group_make(const struct upstream_conf *conf);
void group_free(struct mk_upstream_group *group);

/* As struct mk_upstreams has it. `key`: of the request, for Hash; NULL: it has none. */
struct mk_upstream_server *group_choose(const struct mk_upstream_group *group, uint64_t now_ms, const uint64_t *key,
                                        struct mk_upstream_tries *tries);

#endif
