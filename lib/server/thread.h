// SPDX-License-Identifier: Apache-2.0
/*
 * A worker: one thread, one loop, its connections and all the memory they take. Workers share nothing
 * that is written while they run.
 *
 * A worker goes from one generation to the next between two turns of its loop. What has begun under an older one
 * ends under it (server/worker.h), and the generation is let go with the last of that.
 */
#ifndef MK_SERVER_THREAD_H
#define MK_SERVER_THREAD_H

#include <pthread.h>
#include <semaphore.h>

#include "http/context.h"
#include "loop/loop.h"
#include "server/listen/acceptors.h"
#include "server/listen/limits.h"
#include "server/worker.h"
#include "server/request_ref.h"

struct mk__handoff_slots;

/*
 * What the process context and a worker tell each other when connections come from there (server/listen/balance.h).
 * Each word has one writer, and those of the two are apart, so that they do not share a cache line.
 */
struct mk__worker_load {
    _Atomic uint32_t assigned;  /* connections; the process context's */
    _Atomic bool evict_pending; /* to make room, and has not answered yet; both write it */
    void *owner;                /* of the one who asked */
    unsigned evict_max;         /* so many connections it is asked to close */
    struct mk_message evict_message;
    char padding[64];
    _Atomic uint32_t closed;       /* connections that were closed, less those that the worker has accepted itself */
    _Atomic bool out_of_memory;    /* without memory for another one */
    bool enabled;                  /* more may come */
    struct mk_message end_message; /* none will come any more */
    struct mk_message evicted_message; /* the answer: there is room */
};

/* Connections that it has, or that are on their way to it. */
static inline uint32_t mk__thread_load(const struct mk__worker_load *l)
{
    return atomic_load_explicit(&l->assigned, memory_order_relaxed) -
           atomic_load_explicit(&l->closed, memory_order_relaxed);
}

struct mk__thread {
    struct mk_worker *worker;  /* under the generation that is in use */
    struct mk_worker *retired; /* those that something is still under way of */
    unsigned index;
    bool running; /* has, or had, a thread */
    pthread_t thread;
    int start_err;
    sem_t started;   /* posted once by the thread */
    sem_t may_serve; /* waited for by the thread, once it has started */
    struct mk_account account;
    struct mk__worker_load load;
    struct mk__handoff handoff;
    const struct mk__handoff_slots
        *handoff_slots; /* this and the next one are set before it is opened; the clock of the process */
    bool closing;       /* whatever comes now is closed */
    struct mk__limits *limits;
    struct mk__context http;
    struct mk__acceptors acceptors;
    uint64_t warned_ms; /* about memory */
    struct mk_timer drain_timer;
    struct mk_timer delay_timer; /* before the drain */
    struct mk_message drain_message, drain_now_message, stop_message;
    _Atomic bool drain_sent, stop_sent;
    bool retiring; /* with a reload or an upgrade; set before the drain is sent */
    struct mk__request_refs request_refs;
    struct mk_message ended_message;      /* for whoever waits for the thread's end */
    void (*on_end)(struct mk__thread *t); /* called last in the thread; may be NULL */
    void *owner;                          /* of the one who set `on_end` */
    struct mk__thread *next;              /* likewise */
    struct mk_loop loop;
};

/*
 * Prepares everything that can fail, in the calling thread. It accepts at the sockets of `sockets` that are kept
 * and that worker `index` of `workers` watches; `workers` of 0: at none, the process context feeds it.
 */
int mk__thread_open(struct mk__thread *t, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk__thread_pool *jobs, const struct mk__listeners *listeners);
void mk__thread_close(struct mk__thread *t);

/* Returns when the plugins have been started in the new thread, or with their -errno; it has ended then. */
int mk__thread_start(struct mk__thread *t);
/* Until then it looks at nothing: what it accepted would be lost if the others could not start. */
void mk__thread_start_serving(struct mk__thread *t);
/* Binds its thread to one of the processors that the calling thread may use, in turn, or lets it use all of them. */
void mk__thread_set_affinity(struct mk__thread *t, bool bound);
/* Asks for a graceful end (after ShutdownDelay), or for an immediate one. Any thread, while the worker is open. */
void mk__thread_drain(struct mk__thread *t);
/* Sends it away while others serve on: nobody is cut off between two requests, but for ShutdownTimeout. */
void mk__thread_retire(struct mk__thread *t);
/* The others stop too: it drains from now on. Once. */
void mk__thread_drain_now(struct mk__thread *t);
void mk__thread_stop(struct mk__thread *t);
void mk__thread_join(struct mk__thread *t);

/* Serves a connection that was accepted. 0 or -ENOMEM; the descriptor is taken in any case. In the worker's thread. */
int mk__thread_serve_fd(struct mk__thread *t, const struct mk__listener *listener, int fd);
/* Stops accepting and ends connections as they become idle: those of a worker that retires, or of the whole server. */
void mk__thread_begin_drain(struct mk__thread *t);

/* Begins to accept. In the worker's thread, or before it runs. 0 or -errno. */
int mk__thread_open_acceptor(void *thread, struct mk__acceptor *a);
/* A connection is gone, its descriptor free; in the worker's thread. Draining ends with the last. */
void mk__thread_conn_freed(struct mk__thread *t);

/* A step to another generation, prepared by the process context. */
struct mk__worker_reload {
    struct mk_message message;
    struct mk__thread *thread;
    struct mk_worker *next; /* NULL once it is in use */
    int err;                /* of the first part: the plugins' worker_start */
    struct mk__acceptors acceptors;
    struct mk__context_buffers buffers;
    bool balanced;
    sem_t *done;
};

/*
 * `workers` of 0: this one accepts no more; unless it is `fed` from elsewhere it ends under the generation that it
 * has. 0 or -ENOMEM; to be sent or freed.
 */
int mk__worker_reload_prepare(struct mk__worker_reload *a, struct mk__thread *t, struct mk_generation *g,
                              unsigned workers, bool balanced, const struct mk__listeners *listeners);
/*
 * The two parts of the step, and giving it up between them; the worker posts `done` after each. What it does not need
 * any more is left for mk__worker_reload_free().
 */
void mk__worker_reload_begin(struct mk__worker_reload *a, sem_t *done);
void mk__worker_reload_commit(struct mk__worker_reload *a, sem_t *done);
void mk__worker_reload_abort(struct mk__worker_reload *a, sem_t *done);
void mk__worker_reload_free(struct mk__worker_reload *a);

/* What HTTP calls (request_hooks.c); its context is the worker. */
extern const struct mk__http_app mk__request_hooks_app;

#endif
