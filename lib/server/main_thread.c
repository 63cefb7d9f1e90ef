// SPDX-License-Identifier: Apache-2.0
/*
 * The main thread (server/main_thread.h). Messages tell it what has ended.
 */
#include "server/main_thread.h"

#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024 };

/* ── the thread ── */

static void *run_main_thread(void *ctx)
{
    struct mk__main_thread *p = ctx;
    prctl(PR_SET_NAME, "monkey: process");
    mk__loop_run(&p->loop);
    return NULL;
}

static void on_stop(struct mk_message *message)
{
    struct mk__main_thread *p = MK_CONTAINER_OF(message, struct mk__main_thread, stop_message);
    mk__loop_stop(&p->loop);
}

static int start_thread(struct mk__main_thread *p)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&p->thread, &attr, run_main_thread, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}

int mk__main_thread_open(struct mk__main_thread **ret_p)
{
    if (*ret_p)
        return 0;
    struct mk__main_thread *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->retiring = NULL;
    p->n_retiring = 0;
    p->stop_message.fn = on_stop;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->all_freed, NULL);
    int err = mk__loop_open(&p->loop, &mk__poller_epoll, &mk__clock_system, NULL);
    if (err == 0) {
        err = start_thread(p);
        if (err < 0)
            mk__loop_close(&p->loop);
    }
    if (err == 0)
        *ret_p = p;
    else
        mk_account_free(NULL, p, sizeof(*p));
    return err;
}

void mk__main_thread_free(struct mk__main_thread *p)
{
    mk_post(&p->loop, &p->stop_message);
    pthread_join(p->thread, NULL);
    mk__loop_close(&p->loop); /* runs the last messages: they free generations */
    pthread_cond_destroy(&p->all_freed);
    pthread_mutex_destroy(&p->lock);
    mk_account_free(NULL, p, sizeof(*p));
}

/* ── generations and workers that end later ── */

static void free_generation(struct mk_message *message)
{
    struct mk_generation *g = MK_CONTAINER_OF(message, struct mk_generation, message);
    mk_log_info("the configuration before the last reload is not in use any more");
    mk__server_free_generation(&g);
}

static void on_generation_unused(struct mk_generation *g)
{
    struct mk__main_thread *p = g->owner;
    g->message.fn = free_generation;
    mk_post(&p->loop, &g->message);
}

void mk__main_thread_watch_generation(struct mk__main_thread *p, struct mk_generation *g)
{
    g->owner = p;
    g->on_unused = on_generation_unused;
}

void mk__main_thread_free_worker(struct mk__thread *t)
{
    mk__thread_join(t);
    while (t->loop.jobs_pending && mk__loop_turn(&t->loop) == 0)
        ; /* jobs in the thread pool refer to the worker */
    mk__thread_close(t);
    mk_account_free(NULL, t, sizeof(*t));
}

static void reap_worker(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, ended_message), **at;
    struct mk__main_thread *p = t->owner;
    pthread_mutex_lock(&p->lock);
    for (at = &p->retiring; *at != t; at = &(*at)->next)
        ;
    *at = t->next;
    pthread_mutex_unlock(&p->lock);
    mk__main_thread_free_worker(t);
    pthread_mutex_lock(&p->lock);
    p->n_retiring--;
    pthread_cond_signal(&p->all_freed);
    pthread_mutex_unlock(&p->lock);
}

static void on_thread_end(struct mk__thread *t)
{
    struct mk__main_thread *p = t->owner;
    t->ended_message.fn = reap_worker;
    mk_post(&p->loop, &t->ended_message);
}

void mk__main_thread_watch_worker(struct mk__main_thread *p, struct mk__thread *t)
{
    t->owner = p;
    t->on_end = on_thread_end;
}

void mk__main_thread_retire_worker(struct mk__main_thread *p, struct mk__thread *t)
{
    pthread_mutex_lock(&p->lock);
    t->next = p->retiring;
    p->retiring = t;
    p->n_retiring++;
    pthread_mutex_unlock(&p->lock);
    mk__thread_retire(t);
}

void mk__main_thread_drain_workers_now(struct mk__main_thread *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__thread *t = p->retiring; t; t = t->next)
        mk__thread_drain_now(t);
    pthread_mutex_unlock(&p->lock);
}

void mk__main_thread_stop_workers(struct mk__main_thread *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__thread *t = p->retiring; t; t = t->next)
        mk__thread_stop(t);
    pthread_mutex_unlock(&p->lock);
}

void mk__main_thread_wait_workers(struct mk__main_thread *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->n_retiring)
        pthread_cond_wait(&p->all_freed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
