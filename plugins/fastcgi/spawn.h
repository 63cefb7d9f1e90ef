// SPDX-License-Identifier: Apache-2.0
/*
 * Processes of applications that the server starts itself (Spawn): they accept connections at one socket of the server,
 * which is their standard input, as FastCGI says. One that ends is started again, after a delay that grows.
 *
 *     worker_serve ─► spawns_hold ─► pool: socket, children ─► (ends) ─► timer ─► started again
 *     worker_stop  ─► spawns_put  ─► without a hold, in the next turn: SIGTERM, SIGKILL after a time
 *
 * Pools are of the process: a reload that leaves the line as it is leaves the children alone. All in the thread of the
 * first worker, of one server of the process.
 */
#ifndef FASTCGI_SPAWN_H
#define FASTCGI_SPAWN_H

#include <monkey/kit/child.h>
#include <monkey/kit/target.h>

enum { SPAWN_CHILDREN_MAX = 256 };

/* What a section says; constant. */
struct spawn_conf {
    struct mk_str text;      /* as it was written; empty: not set */
    struct mk_str args;      /* each ends with a NUL */
    const char *program;     /* absolute */
    const char *folder;      /* of the socket; it does not exist before a pool is made */
    struct mk_target target; /* the socket */
};

/* Parses a program and its arguments into a struct spawn_conf; mk_conf_parse_fn. */
int spawn_parse(const struct mk_conf_value *value, void *conf, struct mk_arena *arena, struct mk_buf *error);

struct spawns;

/* Makes the state of the process, and frees it when all workers have stopped. Returns NULL without memory. */
struct spawns *spawns_new(void);
void spawns_free(struct spawns *all);

/*
 * A worker serves that may hold pools, in its thread. Returns false if it cannot: its children are another server's, or
 * there is no memory, which is logged.
 */
bool spawns_begin(struct spawns *all, struct mk_worker *worker);
/* Tells whether it has begun. */
bool spawns_has(struct spawns *all, const struct mk_worker *worker);
/* Holds the pool of a section, with so many children; and ends that. Between begin and end. */
void spawns_hold(struct spawns *all, const struct spawn_conf *conf, unsigned n_children);
void spawns_put(struct spawns *all, const struct spawn_conf *conf);
/* The worker has put all of them, and stops. With the last one all children are ended. */
void spawns_end(struct spawns *all, const struct mk_worker *worker);

#endif
