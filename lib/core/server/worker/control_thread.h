// SPDX-License-Identifier: Apache-2.0
/*
 * The control thread has its own loop. It frees what ends later (a generation with its last exchange, a retired
 * worker with its last connection) and, with the fair scheduler, accepts (server/worker/balancer.h). It exists from the
 * start with that scheduler, else from the first reload on. The functions are called by the main thread (which starts,
 * reloads and stops the server), unless they say otherwise.
 *
 * It does not wait for a load, because it may have to accept: a generation that becomes unused during one is freed when
 * the hooks are free (mk__module_try_lock_hooks()).
 */
#ifndef MK_SERVER_CONTROL_THREAD_H
#define MK_SERVER_CONTROL_THREAD_H

#include "server/worker/thread.h"

struct mk__control_thread {
    struct mk_loop loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list below */
    pthread_cond_t all_freed;
    struct mk__thread *retiring; /* linked by `next` */
    unsigned n_retiring;         /* retired workers that are not freed yet */
    /* Generations that could not be freed yet, linked by `next_unused`. In the control thread. */
    struct mk_generation *unused;
    struct mk_timer retry_timer;
    struct mk_message stop_message;
};

/* Starts the control thread, unless `*p` is running. Returns 0 or -errno. */
MK_COLD int mk__control_thread_open(struct mk__control_thread **p);
/* Ends the thread, and frees the generations that were released last. */
MK_COLD void mk__control_thread_free(struct mk__control_thread *p);

/* Has the control thread free the generation when its last reference is released. */
MK_COLD void mk__control_thread_watch_generation(struct mk__control_thread *p, struct mk_generation *g);
/* Has the control thread free the worker when its thread ends. To be called before the worker's last reload step. */
MK_COLD void mk__control_thread_watch_worker(struct mk__control_thread *p, struct mk__thread *t);
/* Retires a watched worker: it gets no more connections, and ends with its last one. */
MK_COLD void mk__control_thread_retire_worker(struct mk__control_thread *p, struct mk__thread *t);

/* Waits until all retired workers are freed; the thread pool must still run. */
MK_COLD void mk__control_thread_wait_workers(struct mk__control_thread *p);
/* Drains the retired workers, because the server stops. To be called once. */
MK_COLD void mk__control_thread_drain_workers_now(struct mk__control_thread *p);
/* Stops the retired workers at once. Any thread. */
MK_COLD void mk__control_thread_stop_workers(struct mk__control_thread *p);

/* Waits for the worker's thread, and frees it. */
MK_COLD void mk__control_thread_free_worker(struct mk__thread *t);

#endif
