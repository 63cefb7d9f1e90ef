// SPDX-License-Identifier: Apache-2.0
/*
 * Knows which workers of services have dthreads in a thread (dthread_threads.h).
 */
#include "dthread/dthread_threads.h"

#include "common/current.h"
#include "common/heap.h"
#include "service/service.h"
#include "task/task.h"

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
    tasks_wait(w);
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
        struct service_worker *w = MK_LIST_FIRST(&t->workers, struct service_worker, dthreads.in_thread);
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
    if (w->dthreads.thread)
        return 0;
    w->dthreads.thread = get_thread();
    if (!w->dthreads.thread)
        return -ENOMEM;
    mk_list_add(&w->dthreads.thread->workers, &w->dthreads.in_thread);
    context_init_main(&w->dthreads.main, context_choose());
    return 0;
}

void dthread_threads_leave(struct service_worker *w)
{
    struct dthread_thread *t = w->dthreads.thread;
    if (!t)
        return;
    mk_list_del(&w->dthreads.in_thread);
    w->dthreads.thread = NULL;
    if (!mk_list_empty(&t->workers))
        return;
    pthread_setspecific(key, NULL);
    heap_free(t, sizeof(*t));
}
