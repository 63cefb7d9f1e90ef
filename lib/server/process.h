// SPDX-License-Identifier: Apache-2.0
/*
 * The process context while the server runs: a thread with a loop of its own, which clears away what ends later
 * (generations with their last exchange, workers that were sent away with their last connection) and, with the fair
 * scheduler, accepts (server/fair.h). It exists from the start with that scheduler, else from the first reload on.
 */
#ifndef MK_SERVER_PROCESS_H
#define MK_SERVER_PROCESS_H

#include "server/worker.h"

struct mk__process {
    struct mk_loop loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list below */
    pthread_cond_t gone;
    struct mk__worker *leaving; /* draining */
    unsigned busy;              /* workers that are not cleared away yet */
    struct mk_message stop_message;
};

/* Makes one, unless `*p` is one already. 0 or -errno. */
int mk__process_open(struct mk__process **p);
void mk__process_free(struct mk__process *p);

/* Frees the generation with its last exchange. */
void mk__process_expect_generation(struct mk__process *p, struct mk_generation *g);
/* Frees the worker when its thread ends; before it takes its last step. */
void mk__process_expect_worker(struct mk__process *p, struct mk__worker *w);
/* Sends such a worker away: it gets no more connections, and ends with its last one. */
void mk__process_dismiss(struct mk__process *p, struct mk__worker *w);

/* Waits for the workers that were sent away (the jobs must still run). */
void mk__process_wait(struct mk__process *p);
/* The whole server stops: those that leave drain as the others do. Once. */
void mk__process_hurry_workers(struct mk__process *p);
/* Hastens the end of those workers. Any thread. */
void mk__process_stop_workers(struct mk__process *p);

/* Waits for the worker's thread, and frees it. */
void mk__process_free_worker(struct mk__worker *w);

#endif
