// SPDX-License-Identifier: Apache-2.0
/*
 * The fair scheduler (`Scheduler fair`): the main thread accepts, and hands each connection to the worker that has the
 * fewest, by adding its descriptor to that worker's epoll queue. There are no locks; the kernel is the queue.
 *
 *     main:    accept4 ─► pick ─► slots[fd] = {sequence, listener} ─► EPOLL_CTL_ADD (IN|OUT|RDHUP|ET) ─┐
 *     worker:  handoff table[fd] ◄─ mk__conn_open ◄─ slots[fd] ◄──────── epoll_wait: one event at once ◄──┘
 *
 * The handoff slots, one table of the process indexed by descriptor, tell by which listener a connection came. A slot
 * is written before EPOLL_CTL_ADD, which orders it before the worker's epoll_wait. It is not written again before the
 * worker has closed the descriptor and another accept returned it. A queue of our own would need a size and a plan for
 * overflow; the table needs neither.
 *
 * load = assigned (written by the main thread) - closed (written by the worker).
 */
#ifndef MK_SERVER_LISTEN_BALANCE_H
#define MK_SERVER_LISTEN_BALANCE_H

#include "server/thread.h"

/* ── handoff slots ── */

struct mk__handoff_slot {
    _Atomic uint32_t sequence;
    const struct mk__listener *_Atomic listener;
};

/* Lives as long as the process. The table is reserved address space: only pages that are used take memory. */
struct mk__handoff_slots {
    struct mk__handoff_slot *slots;
    uint32_t n;
};

/* Reserves a slot for each descriptor that the process may ever have, unless that is done. Returns 0 or -ENOMEM. */
int mk__balance_open_slots(struct mk__handoff_slots *a);
void mk__balance_close_slots(struct mk__handoff_slots *a);

/* Returns the connection's listener. NULL: the descriptor belongs to a later connection now. */
static inline const struct mk__listener *mk__balance_find_listener(const struct mk__handoff_slots *a, int fd,
                                                                   uint32_t sequence)
{
    const struct mk__handoff_slot *one = &a->slots[fd];
    return atomic_load_explicit(&one->sequence, memory_order_relaxed) == sequence
               ? atomic_load_explicit(&one->listener, memory_order_relaxed)
               : NULL;
}

/* ── the scheduler ── */

/* Returns the index of the least of `n` loads; among equals the first behind `last`, so that workers take turns. */
unsigned mk__balance_pick(const uint32_t *loads, unsigned n, unsigned last);

enum { MK__BALANCE_WORKERS_MAX = 1024 };

struct mk__balancer {
    struct mk_loop *loop; /* of the main thread; NULL until the first update */
    struct mk__handoff_slots *handoff_slots;
    struct mk__limits *limits;
    struct mk__acceptors acceptors;
    struct mk__thread **workers; /* NULL: the balancer is off */
    unsigned n_workers, last;
    uint32_t sequence;
    unsigned rejected; /* connections that could not be added to a worker's epoll queue */
    uint64_t warned_ms;
    uint32_t delay_ms;
    struct mk_timer delay_timer;
    struct mk_message drain_message;
};

/* The next workers and acceptors: prepared by the thread that starts or reloads, taken by the main thread. */
struct mk__balancer_update {
    struct mk_message message;
    struct mk__balancer *balancer;
    struct mk__acceptors acceptors;
    struct mk__thread **workers;
    unsigned n_workers;
    sem_t done;
};

/*
 * Prepares an update to `n` workers, whose pointers the caller fills in before mk__balance_apply(); 0 turns the
 * balancer off. Returns 0 or -ENOMEM.
 */
int mk__balance_prepare(struct mk__balancer_update *update, struct mk__balancer *b,
                        const struct mk__listeners *listeners, unsigned n);
/*
 * Has the main thread take the update, and waits for that. `update` receives what is not needed any more, for
 * mk__balance_free_update(). New listeners wait for mk__balance_open_pending(), which is to be called when all workers
 * have the new generation.
 */
void mk__balance_apply(struct mk__balancer_update *update, struct mk_loop *loop);
void mk__balance_open_pending(struct mk__balancer_update *update);
void mk__balance_free_update(struct mk__balancer_update *update);

/*
 * After the delay: hands the connections that wait in the listeners' queues to the workers, stops accepting, and has
 * the workers drain. Returns at once.
 */
void mk__balance_drain(struct mk__balancer *b, uint32_t delay_ms);

#endif
