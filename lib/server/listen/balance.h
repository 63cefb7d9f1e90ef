// SPDX-License-Identifier: Apache-2.0
/*
 * The fair scheduler: the process context accepts, and gives each connection to the worker that has the fewest, by
 * putting its descriptor into that worker's epoll queue. No locks; the kernel is the queue.
 *
 *     process:  accept4 ─► pick ─► arrivals[fd] = {sequence, listening} ─► EPOLL_CTL_ADD (IN|OUT|RDHUP|ET) ─┐
 *     worker:   guests[fd] ◄─ mk__conn_open ◄─ arrivals[fd] ◄──────────────── epoll_wait: one event at once ◄──┘
 *
 * By which listener a connection came is told by a table of the process, indexed by descriptor: its place is written
 * before EPOLL_CTL_ADD, which orders it before the worker's epoll_wait, and is not written again before the descriptor
 * was closed by the worker, given out again and accepted. A queue beside the kernel's would need a size and a plan for
 * when it is full; the table needs neither.
 *
 * load = given (written by the process context) - gone (written by the worker).
 */
#ifndef MK_SERVER_LISTEN_BALANCE_H
#define MK_SERVER_LISTEN_BALANCE_H

#include "server/thread.h"

/* ── arrivals ── */

struct mk__handoff_slot {
    _Atomic uint32_t sequence;
    const struct mk__listener *_Atomic listener;
};

/* The clock of the process. The kernel gives memory to the pages that are used. */
struct mk__handoff_slots {
    struct mk__handoff_slot *slots;
    uint32_t n;
};

/* A place for each descriptor that the process may ever have. 0 or -ENOMEM; once is enough. */
int mk__balance_open_slots(struct mk__handoff_slots *a);
void mk__balance_close_slots(struct mk__handoff_slots *a);

/* By which listener did this connection come? NULL: it is not the one that has the descriptor now. */
static inline const struct mk__listener *mk__balance_find_listener(const struct mk__handoff_slots *a, int fd,
                                                                   uint32_t sequence)
{
    const struct mk__handoff_slot *one = &a->slots[fd];
    return atomic_load_explicit(&one->sequence, memory_order_relaxed) == sequence
               ? atomic_load_explicit(&one->listener, memory_order_relaxed)
               : NULL;
}

/* ── the scheduler ── */

/* The least of `n` loads; among equals the first behind `last`, so that they take turns. */
unsigned mk__balance_pick(const uint32_t *loads, unsigned n, unsigned last);

enum { MK__BALANCE_WORKERS_MAX = 1024 };

struct mk__balancer {
    struct mk_loop *loop; /* of the process context; NULL until the first step */
    struct mk__handoff_slots *handoff_slots;
    struct mk__limits *limits;
    struct mk__acceptors acceptors;
    struct mk__thread **workers; /* NULL: none is fed */
    unsigned n_workers, last;
    uint32_t sequence;
    unsigned rejected; /* connections that no queue would take */
    uint64_t warned_ms;
    uint32_t delay_ms;
    struct mk_timer delay_timer;
    struct mk_message drain_message;
};

/* What it goes on with: prepared by whoever starts or reloads, taken by the process context's thread. */
struct mk__balancer_update {
    struct mk_message message;
    struct mk__balancer *balancer;
    struct mk__acceptors acceptors;
    struct mk__thread **workers;
    unsigned n_workers;
    sem_t done;
};

/* For so many workers, whose pointers are filled in later; 0: it has nothing to do from now on. 0 or -ENOMEM. */
int mk__balance_prepare(struct mk__balancer_update *update, struct mk__balancer *b,
                        const struct mk__listeners *listeners, unsigned n);
/*
 * Takes the step; returns when it is taken. What is not needed any more is left for mk__balance_free_update().
 * Listeners that are new wait for mk__balance_open_pending(), to be called when all workers have adopted the settings.
 */
void mk__balance_apply(struct mk__balancer_update *update, struct mk_loop *loop);
void mk__balance_open_pending(struct mk__balancer_update *update);
void mk__balance_free_update(struct mk__balancer_update *update);

/*
 * After the delay: no more connections; those that wait are given to the workers, which then drain. Returns at once.
 */
void mk__balance_drain(struct mk__balancer *b, uint32_t delay_ms);

#endif
