// SPDX-License-Identifier: Apache-2.0
/*
 * A worker: one thread, one loop, its connections and all the memory they take. Workers share nothing
 * that is written while they run.
 */
#ifndef MK_SERVER_WORKER_H
#define MK_SERVER_WORKER_H

#include <pthread.h>

#include "http/http.h"
#include "loop/loop.h"
#include "server/accept.h"
#include "server/generation.h"

struct mk__worker {
    const struct mk__generation *generation;
    unsigned index;
    bool running; /* has, or had, a thread */
    pthread_t thread;
    struct mk_account account;
    struct mk__http http;
    struct mk__acceptor *acceptors; /* one for each listener */
    unsigned n_acceptors;
    uint64_t complained_ms; /* about memory */
    struct mk_timer drain_timer;
#ifndef MK_LEAN
    struct mk_timer delay_timer; /* before the drain */
#endif
    struct mk_message drain_message, stop_message;
    _Atomic bool drain_sent, stop_sent;
    struct mk_loop loop;
};

/* Prepares everything that can fail, in the calling thread. `fds` (one a listener) stay the caller's. */
int mk__worker_open(struct mk__worker *w, const struct mk__generation *g, unsigned index, struct mk__jobs *jobs,
                    const int *fds, const bool *shared, unsigned n);
void mk__worker_close(struct mk__worker *w);

int mk__worker_start(struct mk__worker *w);
/* Asks for a graceful end (after StopDelay), or for an immediate one. Any thread, while the worker is open. */
void mk__worker_drain(struct mk__worker *w);
void mk__worker_stop(struct mk__worker *w);
void mk__worker_join(struct mk__worker *w);

/* What HTTP calls (hooks.c); its context is the worker. */
extern const struct mk__http_app mk__hooks_app;

#endif
