// SPDX-License-Identifier: Apache-2.0
/*
 * A worker: one thread, one loop, its connections and all the memory they take. Workers share nothing
 * that is written while they run.
 *
 * A worker goes from one generation to the next between two turns of its loop. What has begun under an older one
 * ends under it (server/pin.h), and the generation is let go with the last of that.
 */
#ifndef MK_SERVER_WORKER_H
#define MK_SERVER_WORKER_H

#include <pthread.h>
#include <semaphore.h>

#include "http/http.h"
#include "loop/loop.h"
#include "server/acceptors.h"
#include "server/capacity.h"
#include "server/pin.h"
#include "server/ticket.h"

struct mk__arrivals;

#ifndef MK_LEAN
/*
 * What the process context and a worker tell each other when connections come from there (server/fair.h). Each word
 * has one writer, and those of the two are apart, so that they do not share a cache line.
 */
struct mk__feed {
    _Atomic uint32_t given; /* connections; the process context's */
    _Atomic bool asked;     /* to make room, and has not answered yet; both write it */
    void *owner;            /* of the one who asked */
    unsigned share;         /* so many connections it is asked to close */
    struct mk_message ask;
    char apart[64];
    _Atomic uint32_t gone;   /* connections that were closed, less those that the worker has accepted itself */
    _Atomic bool starved;    /* without memory for another one */
    bool on;                 /* more may come */
    struct mk_message part;  /* none will come any more */
    struct mk_message freed; /* the answer: there is room */
};

/* Connections that it has, or that are on their way to it. */
static inline uint32_t mk__feed_load(const struct mk__feed *f)
{
    return atomic_load_explicit(&f->given, memory_order_relaxed) - atomic_load_explicit(&f->gone, memory_order_relaxed);
}
#endif

struct mk__worker {
    struct mk_worker *now;   /* under the generation that is in use */
    struct mk_worker *older; /* those that something is still under way of */
    unsigned index;
    bool running; /* has, or had, a thread */
    pthread_t thread;
    int start_err;
    sem_t started; /* posted once by the thread */
#ifndef MK_LEAN
    sem_t go; /* waited for by the thread, once it has started */
#endif
    struct mk_account account;
#ifndef MK_LEAN
    struct mk__feed feed;
    struct mk__guests guests;
    const struct mk__arrivals
        *arrivals; /* this and the next one are set before it is opened; the clock of the process */
    bool ended;    /* whatever comes now is closed */
#endif
    struct mk__capacity *capacity;
    struct mk__http http;
    struct mk__acceptors acceptors;
    uint64_t complained_ms; /* about memory */
    struct mk_timer drain_timer;
    struct mk_timer delay_timer; /* before the drain */
    struct mk_message drain_message, hurry_message, stop_message;
    _Atomic bool drain_sent, stop_sent;
    bool leaves; /* with a reload or an upgrade; set before the drain is sent */
    struct mk__tickets tickets;
    struct mk_message ended_message;      /* for whoever waits for the thread's end */
    void (*on_end)(struct mk__worker *w); /* called last in the thread; may be NULL */
    void *owner;                          /* of the one who set `on_end` */
    struct mk__worker *next;              /* likewise */
    struct mk_loop loop;
};

/*
 * Prepares everything that can fail, in the calling thread. It accepts at the sockets of `sockets` that are kept
 * and that worker `index` of `workers` watches; `workers` of 0: at none, the process context feeds it.
 */
int mk__worker_open(struct mk__worker *w, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk__jobs *jobs, const struct mk__sockets *sockets);
void mk__worker_close(struct mk__worker *w);

/* Returns when the plugins have been started in the new thread, or with their -errno; it has ended then. */
int mk__worker_start(struct mk__worker *w);
#ifndef MK_LEAN
/* Until then it looks at nothing: what it accepted would be lost if the others could not start. */
void mk__worker_go(struct mk__worker *w);
/* Binds its thread to one of the processors that the calling thread may use, in turn, or lets it use all of them. */
void mk__worker_place(struct mk__worker *w, bool bound);
#endif
/* Asks for a graceful end (after StopDelay), or for an immediate one. Any thread, while the worker is open. */
void mk__worker_drain(struct mk__worker *w);
/* Sends it away while others serve on: nobody is cut off between two requests, but for DrainTimeout. */
void mk__worker_leave(struct mk__worker *w);
/* The others stop too: it drains from now on. Once. */
void mk__worker_hurry(struct mk__worker *w);
void mk__worker_stop(struct mk__worker *w);
void mk__worker_join(struct mk__worker *w);

/* Begins to accept. In the worker's thread, or before it runs. 0 or -errno. */
int mk__worker_accept(void *worker, struct mk__acceptor *a);
/* A connection is gone, its descriptor free; in the worker's thread. Draining ends with the last. */
void mk__worker_closed(struct mk__worker *w);

/* A step to another generation, prepared by the process context. */
struct mk__adoption {
    struct mk_message message;
    struct mk__worker *worker;
    struct mk_worker *next; /* NULL once it is in use */
    int err;                /* of the first part: the plugins' worker_start */
    struct mk__acceptors acceptors;
    struct mk__http_buffers buffers;
    bool fed;
    sem_t *done;
};

/*
 * `workers` of 0: this one accepts no more; unless it is `fed` from elsewhere it ends under the generation that it
 * has. 0 or -ENOMEM; to be sent or freed.
 */
int mk__adoption_prepare(struct mk__adoption *a, struct mk__worker *w, struct mk_generation *g, unsigned workers,
                         bool fed, const struct mk__sockets *sockets);
/*
 * The two parts of the step, and giving it up between them; the worker posts `done` after each. What it does not need
 * any more is left for mk__adoption_free().
 */
void mk__adoption_begin(struct mk__adoption *a, sem_t *done);
void mk__adoption_complete(struct mk__adoption *a, sem_t *done);
void mk__adoption_abandon(struct mk__adoption *a, sem_t *done);
void mk__adoption_free(struct mk__adoption *a);

/* What HTTP calls (hooks.c); its context is the worker. */
extern const struct mk__http_app mk__hooks_app;

#endif
