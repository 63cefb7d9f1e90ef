// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the list of threads, and carries calls to them (<monkey/kit/threads.h>).
 */
#include <monkey/kit/threads.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

void mk_threads_init(struct mk_threads *all, const struct mk_thread_type *type)
{
    assert(type->bytes >= sizeof(struct mk_thread));
    all->type = type;
    pthread_mutex_init(&all->lock, NULL);
    mk_list_init(&all->list);
}

void mk_threads_release(struct mk_threads *all)
{
    assert(mk_list_empty(&all->list));
    pthread_mutex_destroy(&all->lock);
}

/* ── calls ── */

/* A call may remove the last worker: those after it run with NULL then. */
static void run_calls(struct mk_thread *t, struct mk_inbox_item *first)
{
    for (struct mk_inbox_item *item = first, *next; item; item = next) {
        next = item->next;
        struct mk_thread_call *call = MK_CONTAINER_OF(item, struct mk_thread_call, item);
        call->fn(call, t->ended ? NULL : t);
    }
}

static void on_calls(struct mk_inbox *inbox, struct mk_inbox_item *first)
{
    struct mk_thread *t = mk_thread_get(MK_CONTAINER_OF(inbox, struct mk_thread, inbox));
    run_calls(t, first);
    mk_thread_put(t);
}

int mk_thread_call(struct mk_thread *t, struct mk_thread_call *call)
{
    assert(call->fn);
    return mk_inbox_add(&t->inbox, &call->item);
}

/* ── records ── */

struct mk_thread *mk_thread_get(struct mk_thread *t)
{
    pthread_mutex_lock(&t->threads->lock);
    t->refs++;
    pthread_mutex_unlock(&t->threads->lock);
    return t;
}

void mk_thread_put(struct mk_thread *t)
{
    struct mk_threads *all = t->threads;
    pthread_mutex_lock(&all->lock);
    assert(t->refs);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&all->lock);
    if (!last)
        return;
    assert(t->ended);
    if (all->type->release)
        all->type->release(t);
    mk_inbox_release(&t->inbox);
    mk_account_free(NULL, t, all->type->bytes);
}

static struct mk_thread *find_thread(struct mk_threads *all, const struct mk_loop *loop)
{
    struct mk_thread *found = NULL;
    pthread_mutex_lock(&all->lock);
    MK_LIST_EACH_ITEM(&all->list, struct mk_thread, node, t) {
        if (t->loop == loop)
            found = t;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* Adds the record after those with lower indexes. */
static void insert_thread(struct mk_threads *all, struct mk_thread *t)
{
    pthread_mutex_lock(&all->lock);
    struct mk_list *before = all->list.next;
    while (before != &all->list && MK_CONTAINER_OF(before, struct mk_thread, node)->index <= t->index)
        before = before->next;
    mk_list_add(before, &t->node); /* in front of `before` */
    pthread_mutex_unlock(&all->lock);
}

static struct mk_thread *open_thread(struct mk_threads *all, struct mk_worker *worker)
{
    struct mk_thread *t = mk_account_zalloc(NULL, all->type->bytes);
    if (!t)
        return NULL;
    t->threads = all;
    t->loop = mk_worker_loop(worker);
    t->index = mk_worker_index(worker);
    t->refs = 1;
    mk_list_init(&t->node);
    mk_list_init(&t->workers);
    mk_inbox_open(&t->inbox, t->loop, on_calls);
    if (all->type->open)
        all->type->open(t, worker);
    insert_thread(all, t);
    return t;
}

static void end_thread(struct mk_thread *t)
{
    if (t->threads->type->end)
        t->threads->type->end(t);
    pthread_mutex_lock(&t->threads->lock);
    mk_list_del(&t->node);
    pthread_mutex_unlock(&t->threads->lock);
    t->ended = true;
    run_calls(t, mk_inbox_close(&t->inbox));
    mk_thread_put(t);
}

int mk_threads_add_worker(struct mk_threads *all, struct mk_thread_worker *w, struct mk_worker *worker)
{
    struct mk_thread *t = find_thread(all, mk_worker_loop(worker));
    if (!t)
        t = open_thread(all, worker);
    if (!t)
        return -ENOMEM;
    w->worker = worker;
    w->thread = t;
    mk_list_init(&w->node);
    mk_list_add(&t->workers, &w->node);
    return 0;
}

void mk_threads_remove_worker(struct mk_thread_worker *w)
{
    mk_list_del(&w->node);
    if (mk_list_empty(&w->thread->workers))
        end_thread(w->thread);
}

unsigned mk_threads_list(struct mk_threads *all, struct mk_thread **ret, unsigned max, mk_thread_filter_fn filter,
                         const void *ctx)
{
    unsigned count = 0;
    pthread_mutex_lock(&all->lock);
    MK_LIST_EACH_ITEM(&all->list, struct mk_thread, node, t) {
        if (filter && !filter(t, ctx))
            continue;
        if (count < max) {
            t->refs++;
            ret[count] = t;
        }
        count++;
    }
    pthread_mutex_unlock(&all->lock);
    return count;
}
