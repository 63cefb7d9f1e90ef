// SPDX-License-Identifier: Apache-2.0
/*
 * A worker under one generation, as plugins see it: struct mk_worker. It holds the generation, and the states that
 * plugins have prepared for this worker. A thread goes from one to the next with each reload.
 *
 *     thread (mk__thread) ─► now ─► generation 7, states
 *                            (older ones are kept by what is under way: exchanges, jobs)
 */
#ifndef MK_SERVER_WORKER_H
#define MK_SERVER_WORKER_H

#include "server/generation.h"

struct mk__thread;

struct mk_worker {
    struct mk_worker *next, **link; /* among the older ones of its thread */
    struct mk__thread *thread;
    struct mk_generation *generation; /* held */
    unsigned refs;                    /* what is under way */
    unsigned started;                 /* so many plugins have been started here */
    void *states[];                   /* one for each plugin of the generation */
};

/* Holds the generation; NULL without memory. */
struct mk_worker *mk__worker_new(struct mk__thread *thread, struct mk_generation *g);
/* Stops what was started. */
void mk__worker_free(struct mk_worker *worker);

/* The plugins' worker_start, in the worker's thread. 0 or the -errno of the first that cannot. */
int mk__worker_start(struct mk_worker *worker);

/* Another one takes its place: it goes when nothing of it is under way any more. In the worker's thread. */
void mk__worker_retire(struct mk_worker *worker);

/* In the worker's thread. The last one frees it, unless it is the one in use. */
void mk__worker_get(struct mk_worker *worker);
void mk__worker_put(struct mk_worker *worker);

#endif
