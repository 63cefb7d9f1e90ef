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
#include "server/accept.h"
#include "server/pin.h"
#include "server/sockets.h"
#include "server/ticket.h"

/* Each is allocated by itself: the loop knows their addresses. */
struct mk__acceptors {
    struct mk__acceptor **items;
    unsigned n;
};

struct mk__worker {
    struct mk_worker *now;   /* under the generation that is in use */
    struct mk_worker *older; /* those that something is still under way of */
    unsigned index;
    bool running; /* has, or had, a thread */
    pthread_t thread;
    int start_err;
    sem_t started; /* posted once by the thread */
    struct mk_account account;
    struct mk__http http;
    struct mk__acceptors acceptors;
    uint64_t complained_ms; /* about memory */
    struct mk_timer drain_timer;
    struct mk_timer delay_timer; /* before the drain */
    struct mk_message drain_message, stop_message;
    _Atomic bool drain_sent, stop_sent;
    struct mk__tickets tickets;
    struct mk_message ended_message;     /* for whoever waits for the thread's end */
    void (*ended)(struct mk__worker *w); /* called last in the thread; may be NULL */
    void *owner;                         /* of the one who set `ended` */
    struct mk__worker *next;             /* likewise */
    struct mk_loop loop;
};

/*
 * Prepares everything that can fail, in the calling thread. It accepts at the sockets of `sockets` that are kept
 * and that worker `index` of `workers` watches.
 */
int mk__worker_open(struct mk__worker *w, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk__jobs *jobs, const struct mk__sockets *sockets);
void mk__worker_close(struct mk__worker *w);

/* Returns when the plugins have been started in the new thread, or with their -errno; it has ended then. */
int mk__worker_start(struct mk__worker *w);
/* Asks for a graceful end (after StopDelay), or for an immediate one. Any thread, while the worker is open. */
void mk__worker_drain(struct mk__worker *w);
void mk__worker_stop(struct mk__worker *w);
void mk__worker_join(struct mk__worker *w);

/* Acceptors for what the worker watches of the sockets that are kept, not open yet. 0 or -ENOMEM. */
int mk__acceptors_make(struct mk__acceptors *list, const struct mk__sockets *sockets, unsigned index, unsigned workers);
void mk__acceptors_free(struct mk__acceptors *list);
/* Begins to accept. In the worker's thread, or before it runs. 0 or -errno. */
int mk__worker_accept(struct mk__worker *w, struct mk__acceptor *a);

/* A step to another generation, prepared by the process context. */
struct mk__adoption {
    struct mk_message message;
    struct mk__worker *worker;
    struct mk_worker *next; /* NULL once it is in use */
    int err;                /* of the first part: the plugins' worker_start */
    struct mk__acceptors acceptors;
    struct mk__http_buffers buffers;
    sem_t *done;
};

/* `workers` of 0: this one accepts no more, and ends under the generation that it has. 0 or -ENOMEM; to be sent or
 * freed. */
int mk__adoption_prepare(struct mk__adoption *a, struct mk__worker *w, struct mk_generation *g, unsigned workers,
                         const struct mk__sockets *sockets);
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
