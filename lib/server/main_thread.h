// SPDX-License-Identifier: Apache-2.0
/*
 * The process context while the server runs: a thread with a loop of its own, which clears away what ends later
 * (generations with their last exchange, workers that were sent away with their last connection) and, with the fair
 * scheduler, accepts (server/listen/balance.h). It exists from the start with that scheduler, else from the first
 * reload on.
 */
#ifndef MK_SERVER_MAIN_THREAD_H
#define MK_SERVER_MAIN_THREAD_H

#include "server/thread.h"

struct mk__main_thread {
    struct mk_loop loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list below */
    pthread_cond_t all_freed;
    struct mk__thread *retiring; /* draining */
    unsigned n_retiring;         /* workers that are not cleared away yet */
    struct mk_message stop_message;
};

/* Makes one, unless `*p` is one already. 0 or -errno. */
int mk__main_thread_open(struct mk__main_thread **p);
void mk__main_thread_free(struct mk__main_thread *p);

/* Frees the generation with its last exchange. */
void mk__main_thread_watch_generation(struct mk__main_thread *p, struct mk_generation *g);
/* Frees the worker when its thread ends; before it takes its last step. */
void mk__main_thread_watch_worker(struct mk__main_thread *p, struct mk__thread *t);
/* Sends such a worker away: it gets no more connections, and ends with its last one. */
void mk__main_thread_retire_worker(struct mk__main_thread *p, struct mk__thread *t);

/* Waits for the workers that were sent away (the jobs must still run). */
void mk__main_thread_wait_workers(struct mk__main_thread *p);
/* The whole server stops: those that leave drain as the others do. Once. */
void mk__main_thread_drain_workers_now(struct mk__main_thread *p);
/* Hastens the end of those workers. Any thread. */
void mk__main_thread_stop_workers(struct mk__main_thread *p);

/* Waits for the worker's thread, and frees it. */
void mk__main_thread_free_worker(struct mk__thread *t);

#endif
