// SPDX-License-Identifier: Apache-2.0
/*
 * Knows which workers of services have dthreads in a thread, and ends these with the thread.
 */
#include "common/current.h"
#include "common/heap.h"
#include "dthread/dthread.h"

#include <errno.h>

struct dthread_thread {
    struct mk_list workers;
};

static pthread_key_t key;
static bool has_key;

/* The loop does not turn any more, but is still in memory. */
static void end_worker(struct service_worker *w)
{
    pthread_mutex_lock(&w->service->lock);
    w->ended = true;
    pthread_mutex_unlock(&w->service->lock);
    w->calls++; /* what is called does not end the worker: worker_stop does */
    struct current outer = current_enter(w->service, w);
    dthread_stop(w);
    FEATURES_CALL(w->service->features, worker_wait, w);
    dthread_cancel_all(w);
    current_leave(outer);
    w->calls--;
    service_worker_end_pending(w);
}

static void on_thread_end(void *value)
{
    struct dthread_thread *t = value;
    assert(!mk_list_empty(&t->workers));
    for (bool is_last = false; !is_last;) {
        struct service_worker *w = MK_LIST_FIRST(&t->workers, struct dthreads, in_thread)->worker;
        is_last = t->workers.next == t->workers.prev;
        end_worker(w); /* the last one frees `t` */
    }
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, on_thread_end) == 0;
}

static struct dthread_thread *get_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    struct dthread_thread *t = has_key ? pthread_getspecific(key) : NULL;
    if (t || !has_key)
        return t;
    t = heap_zalloc(sizeof(*t));
    if (!t)
        return NULL;
    mk_list_init(&t->workers);
    if (pthread_setspecific(key, t) == 0)
        return t;
    heap_free(t, sizeof(*t));
    return NULL;
}

int dthread_threads_enter(struct service_worker *w)
{
    if (dthreads_of(w)->thread)
        return 0;
    dthreads_of(w)->thread = get_thread();
    if (!dthreads_of(w)->thread)
        return -ENOMEM;
    mk_list_add(&dthreads_of(w)->thread->workers, &dthreads_of(w)->in_thread);
    context_init_main(&dthreads_of(w)->main, context_choose());
    return 0;
}

void dthread_threads_leave(struct service_worker *w)
{
    struct dthread_thread *t = dthreads_of(w)->thread;
    if (!t)
        return;
    mk_list_del(&dthreads_of(w)->in_thread);
    dthreads_of(w)->thread = NULL;
    if (!mk_list_empty(&t->workers))
        return;
    pthread_setspecific(key, NULL);
    heap_free(t, sizeof(*t));
}
