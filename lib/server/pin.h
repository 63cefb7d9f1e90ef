// SPDX-License-Identifier: Apache-2.0
/*
 * A worker under one generation, as plugins see it: struct mk_worker. It holds the generation, and the states that
 * plugins have prepared for this worker. A thread goes from one to the next with each reload.
 *
 *     thread (mk__worker) ─► now ─► generation 7, states
 *                            (older ones are kept by what is under way: exchanges, jobs)
 */
#ifndef MK_SERVER_PIN_H
#define MK_SERVER_PIN_H

#include "server/generation.h"

struct mk__worker;

struct mk_worker {
    struct mk_worker *next, **at; /* among the older ones of its thread */
    struct mk__worker *thread;
    struct mk_generation *generation; /* held */
    unsigned count;                   /* what is under way */
    unsigned started;                 /* so many plugins have been started here */
    void *states[];                   /* one for each plugin of the generation */
};

/* Holds the generation; NULL without memory. */
struct mk_worker *mk__pin_new(struct mk__worker *thread, struct mk_generation *g);
/* Stops what was started. */
void mk__pin_free(struct mk_worker *pin);

/* The plugins' worker_start, in the worker's thread. 0 or the -errno of the first that cannot. */
int mk__pin_start(struct mk_worker *pin);

/* Another one takes its place: it goes when nothing of it is under way any more. In the worker's thread. */
void mk__pin_retire(struct mk_worker *pin);

/* In the worker's thread. The last one frees it, unless it is the one in use. */
void mk__pin_take(struct mk_worker *pin);
void mk__pin_drop(struct mk_worker *pin);

#endif
