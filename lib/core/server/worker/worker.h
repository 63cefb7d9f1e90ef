// SPDX-License-Identifier: Apache-2.0
/*
 * struct mk_worker: a thread under one generation, as plugins see it. It holds the generation, and the plugins' states
 * for this thread. With each reload a thread gets a new worker. All functions run in the worker's thread, unless they
 * say otherwise.
 *
 *     thread (mk__thread) ─► worker  ─► generation 8, states
 *                         └► replaced ─► generation 7, states (freed with the last exchange or job that holds it)
 */
#ifndef MK_SERVER_WORKER_H
#define MK_SERVER_WORKER_H

#include "base/counters.h"
#include "server/generation/generation.h"

struct mk__request_refs;

struct mk_worker {
    struct mk_worker *next, **link; /* in the list of replaced workers; link is NULL while the worker is in use */
    struct mk_list node;            /* in the list of all that have started, for mk_plugin_each_worker() */
    unsigned index;                 /* these six are the thread's */
    struct mk_loop *loop;
    struct mk_account *account;
    struct mk__request_refs *request_refs;
    mk__cell *const *cells;                      /* of the thread, for counters */
    const uint32_t *connections;                 /* open in the thread */
    void (*on_unused)(struct mk_worker *worker); /* called before a replaced one is freed, in its thread; may be NULL */
    struct mk_generation *generation;            /* holds a reference */
    unsigned refs;                               /* exchanges, jobs and others that hold it */
    unsigned started;                            /* so many plugins have had their worker_start */
    bool retired;                                /* worker_retire was called */
    bool stopping;                               /* worker_stop is called */
    void *states[];                              /* one for each plugin of the generation */
};

/* Makes a worker that holds the generation; the caller sets what is the thread's. NULL: no memory. Any thread. */
MK_COLD struct mk_worker *mk__worker_new(struct mk_generation *g);
/* Calls the plugins' worker_stop where they were started, and releases the generation. */
MK_COLD void mk__worker_free(struct mk_worker *worker);

/* Calls the plugins' worker_start. Returns 0, or the -errno of the first that fails, which is logged. */
MK_COLD int mk__worker_start(struct mk_worker *worker);

/* Calls the plugins' worker_serve: the generation is in use now. In the worker's thread. */
MK_COLD void mk__worker_serve(struct mk_worker *worker);
/* Calls the plugins' worker_retire, once. The worker is held meanwhile by the caller, if another one is in use. */
MK_COLD void mk__worker_retire(struct mk_worker *worker);
/*
 * Retires the worker and frees it with its last reference: another one has taken its place. Until then it is in the
 * list.
 */
MK_COLD void mk__worker_replace(struct mk_worker *worker, struct mk_worker **list);

/* Frees a replaced worker, to which no reference is left. */
MK_COLD void mk__worker_free_replaced(struct mk_worker *worker);

/* Take and release a reference. The last release frees the worker, unless it is the one in use. */
static inline void mk__worker_get(struct mk_worker *worker)
{
    assert(!worker->stopping);
    worker->refs++;
}
static inline void mk__worker_put(struct mk_worker *worker)
{
    assert(worker->refs > 0);
    if (--worker->refs == 0 && worker->link)
        mk__worker_free_replaced(worker);
}

#endif
