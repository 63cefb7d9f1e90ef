// SPDX-License-Identifier: Apache-2.0
/*
 * The main thread: a thread with a loop of its own, which frees what ends later (a generation with its last exchange, a
 * retired worker with its last connection) and, with the fair scheduler, accepts (server/listen/balance.h). It exists
 * from the start with that scheduler, else from the first reload on. The functions are called by the thread that
 * starts, reloads and stops the server, unless they say otherwise.
 */
#ifndef MK_SERVER_MAIN_THREAD_H
#define MK_SERVER_MAIN_THREAD_H

#include "server/thread.h"

struct mk__main_thread {
    struct mk_loop loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list below */
    pthread_cond_t all_freed;
    struct mk__thread *retiring; /* linked by `next` */
    unsigned n_retiring;         /* retired workers that are not freed yet */
    struct mk_message stop_message;
};

/* Starts the main thread, unless `*p` is running. Returns 0 or -errno. */
int mk__main_thread_open(struct mk__main_thread **p);
/* Ends the thread, and frees the generations that were released last. */
void mk__main_thread_free(struct mk__main_thread *p);

/* Has the main thread free the generation when its last reference is released. */
void mk__main_thread_watch_generation(struct mk__main_thread *p, struct mk_generation *g);
/* Has the main thread free the worker when its thread ends. To be called before the worker's last reload step. */
void mk__main_thread_watch_worker(struct mk__main_thread *p, struct mk__thread *t);
/* Retires a watched worker: it gets no more connections, and ends with its last one. */
void mk__main_thread_retire_worker(struct mk__main_thread *p, struct mk__thread *t);

/* Waits until all retired workers are freed; the thread pool must still run. */
void mk__main_thread_wait_workers(struct mk__main_thread *p);
/* Drains the retired workers, because the server stops. To be called once. */
void mk__main_thread_drain_workers_now(struct mk__main_thread *p);
/* Stops the retired workers at once. Any thread. */
void mk__main_thread_stop_workers(struct mk__main_thread *p);

/* Waits for the worker's thread, and frees it. */
void mk__main_thread_free_worker(struct mk__thread *t);

#endif
