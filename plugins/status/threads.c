// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the list of threads and delivers their mail (threads.h).
 */
#include "threads.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void threads_init(struct threads *all)
{
    pthread_mutex_init(&all->lock, NULL);
    mk_list_init(&all->list);
}

void threads_release(struct threads *all)
{
    assert(mk_list_empty(&all->list));
    pthread_mutex_destroy(&all->lock);
}

/* ── mail ── */

static struct mail *take_mail(struct thread *t)
{
    pthread_mutex_lock(&t->all->lock);
    struct mail *first = t->first;
    t->first = NULL;
    t->end = &t->first;
    pthread_mutex_unlock(&t->all->lock);
    return first;
}

static void deliver(struct mail *first, struct thread *t)
{
    while (first) {
        struct mail *mail = first;
        first = mail->next;
        mail->fn(mail, t);
    }
}

static void put_thread(struct thread *t)
{
    struct threads *all = t->all;
    assert(t->refs);
    if (--t->refs)
        return;
    pthread_mutex_lock(&all->lock);
    mk_list_del(&t->node);
    pthread_mutex_unlock(&all->lock);
    if (t->id == gettid())
        mk_event_del(t->loop, &t->event); /* otherwise the thread has ended, and its loop with it */
    close(t->event.fd);
    deliver(t->first, NULL);
    mk_account_free(NULL, t->sketch, sizeof(*t->sketch));
    mk_account_free(NULL, t, sizeof(*t));
}

static void on_mail(struct mk_event *event, uint32_t events)
{
    struct thread *t = MK_CONTAINER_OF(event, struct thread, event);
    eventfd_t count;
    (void)events;
    eventfd_read(event->fd, &count);
    t->refs++; /* an answer may end the last look of a generation, and with it the last worker that has the plugin */
    deliver(take_mail(t), t);
    put_thread(t);
}

void threads_post(struct thread *thread, struct mail *mail)
{
    mail->next = NULL;
    bool was_empty = !thread->first;
    *thread->end = mail;
    thread->end = &mail->next;
    if (was_empty)
        eventfd_write(thread->event.fd, 1);
}

static bool is_listed(const struct threads *all, const struct thread *thread)
{
    for (const struct mk_list *n = all->list.next; n != &all->list; n = n->next)
        if (n == &thread->node)
            return true;
    return false;
}

void threads_reply(struct threads *all, struct thread *thread, struct mail *mail)
{
    pthread_mutex_lock(&all->lock);
    bool listed = is_listed(all, thread);
    if (listed)
        threads_post(thread, mail);
    pthread_mutex_unlock(&all->lock);
    if (!listed)
        mail->fn(mail, NULL);
}

/* ── the list ── */

/* Returns the thread whose loop it is; NULL: it is not in the list. Threads change their entries only. */
static struct thread *find_thread(struct threads *all, const struct mk_loop *loop)
{
    struct thread *found = NULL;
    struct mk_list *n, *save;
    pthread_mutex_lock(&all->lock);
    MK_LIST_EACH(&all->list, n, save) {
        struct thread *t = MK_CONTAINER_OF(n, struct thread, node);
        if (t->loop == loop)
            found = t;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

static struct thread *open_thread(struct threads *all, struct mk_worker *worker)
{
    struct thread *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct thread){.all = all,
                         .loop = mk_worker_loop(worker),
                         .account = mk_worker_account(worker),
                         .id = gettid(),
                         .event = {.ready = on_mail, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)},
                         .index = mk_worker_index(worker)};
    t->end = &t->first;
    mk_list_init(&t->workers);
    if (t->event.fd < 0 || mk_event_add(t->loop, &t->event, EPOLLIN) < 0) {
        if (t->event.fd >= 0)
            close(t->event.fd);
        mk_account_free(NULL, t, sizeof(*t));
        return NULL;
    }
    pthread_mutex_lock(&all->lock);
    mk_list_add(&all->list, &t->node);
    pthread_mutex_unlock(&all->lock);
    return t;
}

/* Returns NULL: out of memory or descriptors. */
static struct thread *get_thread(struct threads *all, struct mk_worker *worker)
{
    struct thread *t = find_thread(all, mk_worker_loop(worker));
    if (!t)
        t = open_thread(all, worker);
    if (t)
        t->refs++;
    return t;
}

int threads_add_worker(struct threads *all, struct thread_worker *w, bool with_paths)
{
    struct thread *t = get_thread(all, w->worker);
    if (!t)
        return -ENOMEM;
    if (with_paths && !t->sketch && (t->sketch = mk_account_alloc(NULL, sizeof(*t->sketch))))
        memset(t->sketch, 0, sizeof(*t->sketch));
    if (with_paths && !t->sketch) {
        put_thread(t);
        return -ENOMEM;
    }
    w->thread = t;
    mk_list_init(&w->node);
    mk_list_add(&t->workers, &w->node);
    return 0;
}

void threads_remove_worker(struct thread_worker *w)
{
    mk_list_del(&w->node);
    put_thread(w->thread);
}

uint32_t threads_count_connections(const struct thread *thread)
{
    if (mk_list_empty(&thread->workers))
        return 0; /* the last one has just stopped */
    return mk_worker_connections(MK_CONTAINER_OF(thread->workers.prev, struct thread_worker, node)->worker);
}
