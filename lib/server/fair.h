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
#ifndef MK_SERVER_FAIR_H
#define MK_SERVER_FAIR_H

#include "server/worker.h"

/* ── arrivals ── */

struct mk__arrival {
    _Atomic uint32_t sequence;
    const struct mk__listening *_Atomic listening;
};

/* The clock of the process. The kernel gives memory to the pages that are used. */
struct mk__arrivals {
    struct mk__arrival *places;
    uint32_t n;
};

/* A place for each descriptor that the process may ever have. 0 or -ENOMEM; once is enough. */
int mk__arrivals_open(struct mk__arrivals *a);
void mk__arrivals_close(struct mk__arrivals *a);

/* By which listener did this connection come? NULL: it is not the one that has the descriptor now. */
static inline const struct mk__listening *mk__arrivals_find(const struct mk__arrivals *a, int fd, uint32_t sequence)
{
    const struct mk__arrival *one = &a->places[fd];
    return atomic_load_explicit(&one->sequence, memory_order_relaxed) == sequence
               ? atomic_load_explicit(&one->listening, memory_order_relaxed)
               : NULL;
}

/* ── the scheduler ── */

/* The least of `n` loads; among equals the first behind `last`, so that they take turns. */
unsigned mk__fair_pick(const uint32_t *loads, unsigned n, unsigned last);

enum { MK__FAIR_WORKERS_MAX = 1024 };

struct mk__fair {
    struct mk_loop *loop; /* of the process context; NULL until the first step */
    struct mk__arrivals *arrivals;
    struct mk__capacity *capacity;
    struct mk__acceptors acceptors;
    struct mk__worker **workers; /* NULL: none is fed */
    unsigned n_workers, last;
    uint32_t sequence;
    unsigned lost; /* connections that no queue would take */
    uint64_t complained_ms;
    uint32_t delay_ms;
    struct mk_timer delay_timer;
    struct mk_message drain_message;
};

/* What it goes on with: prepared by whoever starts or reloads, taken by the process context's thread. */
struct mk__fair_step {
    struct mk_message message;
    struct mk__fair *fair;
    struct mk__acceptors acceptors;
    struct mk__worker **workers;
    unsigned n_workers;
    sem_t taken;
};

/* For so many workers, whose pointers are filled in later; 0: it has nothing to do from now on. 0 or -ENOMEM. */
int mk__fair_prepare(struct mk__fair_step *step, struct mk__fair *f, const struct mk__sockets *sockets, unsigned n);
/*
 * Takes the step; returns when it is taken. What is not needed any more is left for mk__fair_free(). Listeners that are
 * new wait for mk__fair_open_fresh(), to be called when all workers have adopted the settings.
 */
void mk__fair_take(struct mk__fair_step *step, struct mk_loop *loop);
void mk__fair_open_fresh(struct mk__fair_step *step);
void mk__fair_free(struct mk__fair_step *step);

/*
 * After the delay: no more connections; those that wait are given to the workers, which then drain. Returns at once.
 */
void mk__fair_drain(struct mk__fair *f, uint32_t delay_ms);

#endif
