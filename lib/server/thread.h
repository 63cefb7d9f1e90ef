// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's thread: one loop, its connections and all the memory that they take. Threads share nothing that is written
 * while they run, except counters.
 *
 * A thread goes from one generation to the next between two turns of its loop. An exchange that began under an older
 * generation ends under it (server/worker.h); its end releases the generation.
 */
#ifndef MK_SERVER_THREAD_H
#define MK_SERVER_THREAD_H

#include <pthread.h>
#include <semaphore.h>

#include "http/context.h"
#include "loop/loop.h"
#include "server/listen/acceptor.h"
#include "server/listen/limits.h"
#include "server/worker.h"
#include "server/request_ref.h"

struct mk__handoff_slots;

/*
 * What the main thread and a worker tell each other with the fair scheduler (server/listen/balance.h). Except for
 * `evict_pending` and `out_of_memory` each counter has one writer. The padding keeps the fields of the two writers in
 * different cache lines.
 */
struct mk__worker_load {
    _Atomic uint32_t assigned;  /* connections that were handed over; written by the main thread */
    _Atomic bool evict_pending; /* asked to make room, and has not answered yet; written by both */
    void *owner;                /* the struct mk__balancer that asked */
    unsigned evict_max;         /* connections that it is asked to close */
    struct mk_message evict_message;
    char padding[64];
    _Atomic uint32_t closed;           /* connections that were closed, less those that the worker accepted itself */
    _Atomic bool out_of_memory;        /* no memory for another connection; written by both */
    bool enabled;                      /* the main thread may hand over more */
    struct mk_message end_message;     /* to the worker: the main thread hands over no more */
    struct mk_message evicted_message; /* to the main thread: connections were closed */
};

/* Returns the number of connections that the worker has, or that were handed over and not taken yet. */
static inline uint32_t mk__thread_load(const struct mk__worker_load *l)
{
    return atomic_load_explicit(&l->assigned, memory_order_relaxed) -
           atomic_load_explicit(&l->closed, memory_order_relaxed);
}

struct mk__thread {
    struct mk_worker *worker;  /* under the generation in use */
    struct mk_worker *retired; /* under older generations, with exchanges or jobs that have not ended */
    unsigned index;
    bool running; /* the thread was created, and may have ended */
    pthread_t thread;
    int start_err;
    sem_t started;   /* posted once by the thread */
    sem_t may_serve; /* the thread waits for it between its start and its first turn */
    struct mk_account account;
    struct mk__worker_load load;
    struct mk__handoff handoff;
    bool closing; /* connections that are handed over now are closed */
    /* these live as long as the process, and are set before mk__thread_open() */
    const struct mk__handoff_slots *handoff_slots;
    struct mk__limits *limits;
    struct mk__context http;
    struct mk__acceptors acceptors;
    uint64_t warned_ms; /* of the last warning about MemoryLimit */
    struct mk_timer drain_timer;
    struct mk_timer delay_timer; /* ShutdownDelay */
    struct mk_message drain_message, drain_now_message, stop_message;
    _Atomic bool drain_sent, stop_sent;
    bool retiring; /* ends because of a reload or an upgrade; set before the drain message is sent */
    struct mk__request_refs request_refs;
    struct mk_message ended_message;      /* sent by on_end */
    void (*on_end)(struct mk__thread *t); /* called last in the thread; may be NULL */
    void *owner;                          /* of on_end */
    struct mk__thread *next;              /* likewise: a list of its owner */
    struct mk_loop loop;
};

/*
 * Prepares everything that can fail, in the calling thread. The worker accepts at the sockets of `listeners` that
 * worker `index` of `workers` watches. With `workers` 0 it accepts at none: the main thread hands connections over.
 * Returns 0 or -errno; nothing is held then.
 */
int mk__thread_open(struct mk__thread *t, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk__thread_pool *jobs, const struct mk__listeners *listeners);
/* Frees everything but `t`. The thread has ended; the caller becomes the loop's thread. */
void mk__thread_close(struct mk__thread *t);

/* Creates the thread, and waits for the plugins' worker_start in it. Returns 0 or -errno; the thread has ended then. */
int mk__thread_start(struct mk__thread *t);
/*
 * Has the thread run its loop. Until then it accepts nothing: connections would be lost if another worker could not
 * start.
 */
void mk__thread_start_serving(struct mk__thread *t);
/* Binds the thread, by its index, to one of the processors that the calling thread may use, or lets it use all. */
void mk__thread_set_affinity(struct mk__thread *t, bool bound);

/* These are for any thread, while `t` is open. Each sends a message and returns at once. */

/* Drains the thread after ShutdownDelay: it accepts no more, and ends with its last exchange or at ShutdownTimeout. */
void mk__thread_drain(struct mk__thread *t);
/* Retires the thread while others go on: its connections end as they become idle, or at ShutdownTimeout. */
void mk__thread_retire(struct mk__thread *t);
/* Drains a retiring thread without further delay, because the server stops. To be called once. */
void mk__thread_drain_now(struct mk__thread *t);
/* Closes all connections and ends the thread. */
void mk__thread_stop(struct mk__thread *t);

/* Waits for the thread's end, if it was created. */
void mk__thread_join(struct mk__thread *t);

/*
 * Serves an accepted connection; takes the descriptor in any case. Returns 0, or -ENOMEM where idle connections should
 * be evicted. In the worker's thread.
 */
int mk__thread_serve_fd(struct mk__thread *t, const struct mk__listener *listener, int fd);
/* Drains or retires now, as `retiring` says. In the worker's thread. */
void mk__thread_begin_drain(struct mk__thread *t);

/* Starts an acceptor, for mk__acceptors_open(). In the worker's thread, or before it runs. Returns 0 or -errno. */
int mk__thread_open_acceptor(void *thread, struct mk__acceptor *a);
/* Counts a closed connection, and ends a drain with the last one. In the worker's thread. */
void mk__thread_conn_freed(struct mk__thread *t);

/* A worker's step to another generation, prepared by the thread that reloads. */
struct mk__worker_reload {
    struct mk_message message;
    struct mk__thread *thread;
    struct mk_worker *next; /* NULL once it is in use */
    int err;                /* of the first phase: the plugins' worker_start */
    struct mk__acceptors acceptors;
    struct mk__context_buffers buffers;
    bool balanced;
    sem_t *done;
};

/*
 * Prepares the step. With `workers` 0 the worker will accept no more; unless it is `balanced` (the main thread hands
 * connections over) it keeps the generation that it has, until it is retired. Returns 0 or -ENOMEM. To be freed in any
 * case.
 */
int mk__worker_reload_prepare(struct mk__worker_reload *a, struct mk__thread *t, struct mk_generation *g,
                              unsigned workers, bool balanced, const struct mk__listeners *listeners);
/*
 * The two phases of the step: begin starts the plugins (see `err`), commit switches to the generation; abort instead of
 * commit stops the plugins again. Each sends a message and returns at once; the worker posts `done` after it.
 */
void mk__worker_reload_begin(struct mk__worker_reload *a, sem_t *done);
void mk__worker_reload_commit(struct mk__worker_reload *a, sem_t *done);
void mk__worker_reload_abort(struct mk__worker_reload *a, sem_t *done);
/* Frees what the worker did not take, and what it does not need any more. */
void mk__worker_reload_free(struct mk__worker_reload *a);

/* The callbacks of HTTP (request_hooks.c); their context is the struct mk__thread. */
extern const struct mk__http_app mk__request_hooks_app;

#endif
