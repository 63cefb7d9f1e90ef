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
