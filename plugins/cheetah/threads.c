// SPDX-License-Identifier: Apache-2.0
/*
 * Threads and calls to them (threads.h).
 */
#include "threads.h"

#include <monkey/inspect.h>

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void threads_init(struct threads *all)
{
    pthread_mutex_init(&all->lock, NULL);
    mk_list_init(&all->all);
}

void threads_release(struct threads *all)
{
    assert(mk_list_empty(&all->all));
    pthread_mutex_destroy(&all->lock);
}

struct mk_worker *threads_worker(const struct thread *t)
{
    struct mk_list *n, *save;
    struct mk_worker *worker = NULL;
    MK_LIST_EACH(&t->workers, n, save) {
        worker = MK_CONTAINER_OF(n, struct thread_worker, node)->worker;
        if (worker == mk_inspect_current(worker))
            break; /* the one behind it is of a generation that is not accepted yet */
    }
    return worker;
}

/* ── calls ── */

static struct thread_call *take_calls(struct thread *t)
{
    pthread_mutex_lock(&t->threads->lock);
    struct thread_call *first = t->first;
    t->first = NULL;
    t->last = &t->first;
    pthread_mutex_unlock(&t->threads->lock);
    return first;
}

static void run_calls(struct thread *t, struct mk_worker *worker)
{
    for (struct thread_call *call = take_calls(t), *next; call; call = next) {
        next = call->next;
        call->fn(call, worker);
    }
}

static void on_calls(struct mk_event *event, uint32_t events)
{
    struct thread *t = MK_CONTAINER_OF(event, struct thread, event);
    eventfd_t count;
    (void)events;
    eventfd_read(event->fd, &count);
    run_calls(t, threads_worker(t));
}

bool threads_call(struct thread *t, struct thread_call *call)
{
    pthread_mutex_lock(&t->threads->lock);
    bool ended = t->ended, wakes = !t->first;
    if (!ended) {
        call->next = NULL;
        *t->last = call;
        t->last = &call->next;
        if (wakes)
            eventfd_write(t->event.fd, 1);
    }
    pthread_mutex_unlock(&t->threads->lock);
    return !ended;
}

/* ── records ── */

void threads_get(struct thread *t)
{
    pthread_mutex_lock(&t->threads->lock);
    t->refs++;
    pthread_mutex_unlock(&t->threads->lock);
}

void threads_put(struct thread *t)
{
    struct threads *all = t->threads;
    pthread_mutex_lock(&all->lock);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&all->lock);
    if (!last)
        return;
    close(t->event.fd);
    mk_account_free(NULL, t, sizeof(*t));
}

static struct thread *find_thread(struct threads *all, const struct mk_loop *loop)
{
    struct mk_list *n, *save;
    struct thread *found = NULL;
    pthread_mutex_lock(&all->lock);
    MK_LIST_EACH(&all->all, n, save) {
        struct thread *t = MK_CONTAINER_OF(n, struct thread, node);
        if (t->loop == loop)
            found = t;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* Adds the record behind those with lower indexes. */
static void insert_thread(struct threads *all, struct thread *t)
{
    struct mk_list *before = all->all.next;
    pthread_mutex_lock(&all->lock);
    while (before != &all->all && MK_CONTAINER_OF(before, struct thread, node)->index <= t->index)
        before = before->next;
    mk_list_add(before, &t->node); /* in front of `before` */
    pthread_mutex_unlock(&all->lock);
}

static struct thread *open_thread(struct threads *all, const struct mk_worker *worker)
{
    struct thread *t = mk_account_alloc(NULL, sizeof(*t));
    int fd = t ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
    if (fd < 0) {
        mk_account_free(NULL, t, sizeof(*t));
        return NULL;
    }
    *t = (struct thread){.threads = all,
                         .server = mk_inspect_server(mk_worker_generation(worker)),
                         .index = mk_worker_index(worker),
                         .loop = mk_worker_loop(worker),
                         .self = pthread_self(),
                         .refs = 1,
                         .last = &t->first,
                         .event = {on_calls, fd}};
    mk_list_init(&t->node);
    mk_list_init(&t->workers);
    mk_list_init(&t->at_end);
    mk_list_init(&t->clients);
    if (mk_event_add(t->loop, &t->event, EPOLLIN | EPOLLET) < 0) {
        threads_put(t);
        return NULL;
    }
    insert_thread(all, t);
    return t;
}

/* The last worker of the thread stops, perhaps after its end, in another thread. */
static void close_thread(struct thread *t)
{
    while (!mk_list_empty(&t->at_end)) {
        struct thread_at_end *one = MK_LIST_FIRST(&t->at_end, struct thread_at_end, node);
        mk_list_del(&one->node);
        one->fn(one);
    }
    if (pthread_equal(t->self, pthread_self()))
        mk_event_del(t->loop, &t->event);
    pthread_mutex_lock(&t->threads->lock);
    t->ended = true;
    mk_list_del(&t->node);
    pthread_mutex_unlock(&t->threads->lock);
    run_calls(t, NULL);
    threads_put(t);
}

struct thread_worker *threads_add_worker(struct threads *all, struct mk_worker *worker)
{
    struct thread_worker *w = mk_account_alloc(NULL, sizeof(*w));
    struct thread *t = w ? find_thread(all, mk_worker_loop(worker)) : NULL;
    if (w && !t)
        t = open_thread(all, worker);
    if (!t) {
        mk_account_free(NULL, w, sizeof(*w));
        return NULL;
    }
    *w = (struct thread_worker){.worker = worker, .thread = t};
    mk_list_init(&w->node);
    mk_list_add(&t->workers, &w->node);
    return w;
}

void threads_remove_worker(struct thread_worker *w)
{
    struct thread *t = w->thread;
    mk_list_del(&w->node);
    mk_account_free(NULL, w, sizeof(*w));
    if (mk_list_empty(&t->workers))
        close_thread(t);
}

unsigned threads_list(struct thread *t, struct thread **ret, unsigned max)
{
    struct mk_list *n, *save;
    unsigned count = 0;
    pthread_mutex_lock(&t->threads->lock);
    MK_LIST_EACH(&t->threads->all, n, save) {
        struct thread *one = MK_CONTAINER_OF(n, struct thread, node);
        if (one->server != t->server || count == max)
            continue;
        one->refs++;
        ret[count++] = one;
    }
    pthread_mutex_unlock(&t->threads->lock);
    return count;
}
