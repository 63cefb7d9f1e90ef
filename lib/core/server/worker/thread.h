// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's thread: one loop, its connections and all the memory that they take. Threads share nothing that is written
 * while they run, except counters.
 *
 * A thread goes from one generation to the next between two turns of its loop. An exchange that began under an older
 * generation ends under it (server/worker/worker.h); its end releases the generation.
 */
#ifndef MK_SERVER_THREAD_H
#define MK_SERVER_THREAD_H

#include <pthread.h>
#include <semaphore.h>

#include "http/context.h"
#include "loop/loop.h"
#include "server/worker/heap_trim.h"
#include "server/listen/acceptor.h"
#include "server/listen/limits.h"
#include "server/worker/receiver.h"
#include "server/worker/request_ref.h"
#include "server/worker/worker.h"

/* What the thread was asked to do; a mode replaces those before it only. */
enum mk__thread_mode {
    MK__THREAD_SERVE,
    MK__THREAD_RETIRE, /* to drain because of a reload or an upgrade */
    MK__THREAD_DRAIN,
    MK__THREAD_STOP, /* connections that are handed off now are closed */
};

struct mk__thread {
    struct mk_worker *worker;   /* under the generation in use */
    struct mk_worker *replaced; /* under older generations, with exchanges or jobs that have not ended */
    unsigned index;
    bool running; /* the thread was created, and may have ended */
    pthread_t thread;
    int start_err;
    sem_t started;   /* posted once by the thread */
    sem_t may_serve; /* the thread waits for it between its start and its first turn */
    struct mk_account account;
    struct mk__receiver receiver;
    struct mk__limits *limits; /* lives as long as the process, and is set before mk__thread_open() */
    struct mk__context http;
    struct mk__acceptors acceptors;
    uint32_t n_works;        /* of plugins, which a drain waits for */
    uint64_t warned_ms;      /* of the last warning about MemoryLimit */
    uint64_t fds_asked_turn; /* of the loop: when plugins were last asked for descriptors */
    struct mk__heap_trim heap_trim;
    struct mk_timer drain_timer;
    struct mk_timer delay_timer; /* ShutdownDelay */
    struct mk_message drain_message, drain_now_message, stop_message;
    _Atomic uint8_t mode; /* enum mk__thread_mode */
    struct mk__request_refs request_refs;
    struct mk_message ended_message;      /* sent by on_end */
    void (*on_end)(struct mk__thread *t); /* called last in the thread; may be NULL */
    void *owner;                          /* of on_end */
    struct mk__thread *next;              /* likewise: a list of its owner */
    struct mk_loop loop;
};

/*
 * Prepares everything that can fail, in the calling thread. The worker accepts at the sockets of `listeners` that
 * worker `index` of `workers` watches. With `workers` 0 it accepts at none: the control thread hands connections off.
 * Returns 0 or -errno; nothing is held then.
 */
int mk__thread_open(struct mk__thread *t, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk_thread_pool *jobs, const struct mk__listeners *listeners);
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
/* Retires the thread while others continue: its connections end as they become idle, or at ShutdownTimeout. */
void mk__thread_retire(struct mk__thread *t);
/* Drains a retiring thread without further delay, because the server stops. To be called once. */
void mk__thread_drain_now(struct mk__thread *t);
/* Closes all connections and ends the thread. */
void mk__thread_stop(struct mk__thread *t);

/* Closes what was kept open for the drain, and connections accepted during it: the last step of the thread. */
void mk__thread_end(struct mk__thread *t);
/* Waits for the thread's end, if it was created. */
void mk__thread_join(struct mk__thread *t);

/* Makes a worker of this thread. NULL: no memory. Any thread. */
struct mk_worker *mk__thread_new_worker(struct mk__thread *t, struct mk_generation *g);
/* Starts an acceptor, for mk__acceptors_open(). In the worker's thread, or before it runs. Returns 0 or -errno. */
int mk__thread_open_acceptor(void *thread, struct mk__acceptor *a);
/* Counts a closed connection, and ends a drain with the last one. In the worker's thread. */
void mk__thread_conn_freed(struct mk__thread *t);

/* Returns whether a generation that the thread uses has the plugin, apart from that of `ended`. In the thread. */
bool mk__worker_reload_has_plugin(const struct mk__thread *t, const struct mk_plugin *plugin,
                                  const struct mk_worker *ended);
/*
 * Releases what connections hold of the plugins that only `ended` has: it will be freed, and a reload has removed them.
 * Their functions are still there, and no exchange of the thread uses them any more.
 */
MK_COLD void mk__worker_reload_forget(struct mk_worker *ended);

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
 * Prepares the step. With `workers` 0 the worker will accept no more; unless it is `balanced` (the control thread hands
 * connections off) it keeps the generation that it has, until it is retired. Returns 0 or -ENOMEM. To be freed in any
 * case.
 */
MK_COLD int mk__worker_reload_prepare(struct mk__worker_reload *a, struct mk__thread *t, struct mk_generation *g,
                                      unsigned workers, bool balanced, const struct mk__listeners *listeners);
/*
 * The two phases of the step: begin starts the plugins (see `err`), commit switches to the generation; abort instead of
 * commit stops the plugins again. Each sends a message and returns at once; the worker posts `done` after it.
 */
MK_COLD void mk__worker_reload_begin(struct mk__worker_reload *a, sem_t *done);
MK_COLD void mk__worker_reload_commit(struct mk__worker_reload *a, sem_t *done);
MK_COLD void mk__worker_reload_abort(struct mk__worker_reload *a, sem_t *done);
/* Frees what the worker did not take, and what it does not need any more. */
MK_COLD void mk__worker_reload_free(struct mk__worker_reload *a);

/* The callbacks of HTTP (request_hooks.c); their context is the struct mk__thread. */
extern const struct mk__http_app mk__request_hooks_app;
/*
 * Asks on_head and on_request of the plugins that decide about access again, for another path, and then on_content of
 * all. In on_content, or later.
 */
void mk__request_hooks_restart(struct mk_request *req);
/* As mk_request_decide_access(), once the request has the other path. */
int mk__request_hooks_decide(struct mk_request *req);

#endif
