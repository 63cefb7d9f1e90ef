// SPDX-License-Identifier: Apache-2.0
/*
 * The fair scheduler (`Scheduler fair`): the control thread accepts, and hands each connection to the worker that has
 * the fewest, in a message (server/worker/receiver.h).
 */
#ifndef MK_SERVER_BALANCER_H
#define MK_SERVER_BALANCER_H

#include <monkey/loop.h>

#include <semaphore.h>

#include "server/listen/acceptor.h"

struct mk__limits;
struct mk__listeners;
struct mk__receiver;

/* Returns the index of the least of `n` loads; among equals the first after `last`, so that workers take turns. */
unsigned mk__balancer_pick(const uint32_t *loads, unsigned n, unsigned last);

enum { MK__BALANCER_WORKERS_MAX = 1024 };

struct mk__balancer {
    struct mk_loop *loop; /* of the control thread; NULL until the first update */
    struct mk__limits *limits;
    struct mk__acceptors acceptors;
    struct mk__receiver **workers; /* NULL: the balancer is off */
    unsigned n_workers, last;
    unsigned rejected; /* connections that could not be handed to a worker */
    uint64_t warned_ms;
    uint32_t delay_ms;
    struct mk_timer delay_timer;
    struct mk_message drain_message;
};

/* The next workers and acceptors: prepared by the thread that starts or reloads, taken by the control thread. */
struct mk__balancer_update {
    struct mk_message message;
    struct mk__balancer *balancer;
    struct mk__acceptors acceptors;
    struct mk__receiver **workers;
    unsigned n_workers;
    sem_t done;
};

/*
 * Prepares an update to `n` workers, whose pointers the caller fills in before mk__balancer_apply(); 0 turns the
 * balancer off. Returns 0 or -ENOMEM.
 */
int mk__balancer_prepare(struct mk__balancer_update *update, struct mk__balancer *b,
                         const struct mk__listeners *listeners, unsigned n);
/*
 * Has the control thread take the update, and waits for that. `update` receives what is not needed any more, for
 * mk__balancer_free_update(). New listeners wait for mk__balancer_open_pending(), which is to be called when all
 * workers have the new generation.
 */
void mk__balancer_apply(struct mk__balancer_update *update, struct mk_loop *loop);
void mk__balancer_open_pending(struct mk__balancer_update *update);
void mk__balancer_free_update(struct mk__balancer_update *update);

/*
 * After the delay: hands the connections that wait in the listeners' queues to the workers, stops accepting, and has
 * the workers drain. Returns at once.
 */
void mk__balancer_drain(struct mk__balancer *b, uint32_t delay_ms);

#endif
