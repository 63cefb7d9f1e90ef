// SPDX-License-Identifier: Apache-2.0
/*
 * The control thread (server/worker/control_thread.h). Messages tell it what has ended.
 */
#include "server/worker/control_thread.h"

#include "server/generation/generation_load.h"

#include <monkey/base/thread_start.h>

#include <assert.h>
#include <errno.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024, RETRY_MS = 10 };

/* ── generations that end later ── */

/* Frees the generations that are not used any more, unless a load is under way: then `*list` keeps them. */
static void free_generations(struct mk_generation **list)
{
    while (*list && mk__generation_try_stop(*list)) {
        struct mk_generation *g = *list;
        *list = g->next_unused;
        mk__generation_free(&g);
        mk_log_info("the configuration before the last reload is not in use any more");
    }
}

static void on_retry_timer(struct mk_timer *timer)
{
    struct mk__control_thread *p = MK_CONTAINER_OF(timer, struct mk__control_thread, retry_timer);
    free_generations(&p->unused);
    if (p->unused)
        mk_timer_arm(&p->loop, &p->retry_timer, RETRY_MS);
}

static void add_unused(struct mk_message *message)
{
    struct mk_generation *g = MK_CONTAINER_OF(message, struct mk_generation, message);
    struct mk__control_thread *p = g->owner;
    assert(g->refs == 0 && !g->next_unused);
    g->next_unused = p->unused;
    p->unused = g;
    on_retry_timer(&p->retry_timer);
}

static void on_generation_unused(struct mk_generation *g)
{
    struct mk__control_thread *p = g->owner;
    g->message.fn = add_unused;
    mk_post(&p->loop, &g->message);
}

void mk__control_thread_watch_generation(struct mk__control_thread *p, struct mk_generation *g)
{
    assert(!g->on_unused);
    g->owner = p;
    g->on_unused = on_generation_unused;
}

/* ── the thread ── */

static void *run_control_thread(void *ctx)
{
    struct mk__control_thread *p = ctx;
    prctl(PR_SET_NAME, "monkey: control");
    mk__loop_run(&p->loop);
    return NULL;
}

static void on_stop(struct mk_message *message)
{
    struct mk__control_thread *p = MK_CONTAINER_OF(message, struct mk__control_thread, stop_message);
    mk__loop_stop(&p->loop);
}

int mk__control_thread_open(struct mk__control_thread **ret_p)
{
    if (*ret_p)
        return 0;
    struct mk__control_thread *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->retiring = NULL;
    p->n_retiring = 0;
    p->unused = NULL;
    mk_timer_init(&p->retry_timer, on_retry_timer);
    p->stop_message.fn = on_stop;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->all_freed, NULL);
    int err = mk__loop_open(&p->loop, &mk__poller_epoll, &mk__clock_system, NULL);
    if (err == 0) {
        err = mk_thread_start(&p->thread, STACK_BYTES, run_control_thread, p);
        if (err < 0)
            mk__loop_close(&p->loop);
    }
    if (err == 0)
        *ret_p = p;
    else
        mk_account_free(NULL, p, sizeof(*p));
    return err;
}

void mk__control_thread_free(struct mk__control_thread *p)
{
    assert(p->n_retiring == 0);
    mk_post(&p->loop, &p->stop_message);
    pthread_join(p->thread, NULL);
    mk__loop_close(&p->loop); /* runs the last messages: they free generations, or keep them in the list */
    while (p->unused) {
        mk__generation_stop(p->unused);
        free_generations(&p->unused);
    }
    pthread_cond_destroy(&p->all_freed);
    pthread_mutex_destroy(&p->lock);
    mk_account_free(NULL, p, sizeof(*p));
}

/* ── workers that end later ── */

void mk__control_thread_free_worker(struct mk__thread *t)
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
    struct mk__control_thread *p = t->owner;
    pthread_mutex_lock(&p->lock);
    for (at = &p->retiring; *at != t; at = &(*at)->next)
        assert(*at);
    *at = t->next;
    pthread_mutex_unlock(&p->lock);
    mk__control_thread_free_worker(t);
    pthread_mutex_lock(&p->lock);
    assert(p->n_retiring > 0);
    p->n_retiring--;
    pthread_cond_signal(&p->all_freed);
    pthread_mutex_unlock(&p->lock);
}

static void on_thread_end(struct mk__thread *t)
{
    struct mk__control_thread *p = t->owner;
    t->ended_message.fn = reap_worker;
    mk_post(&p->loop, &t->ended_message);
}

void mk__control_thread_watch_worker(struct mk__control_thread *p, struct mk__thread *t)
{
    assert(!t->on_end);
    t->owner = p;
    t->on_end = on_thread_end;
}

void mk__control_thread_retire_worker(struct mk__control_thread *p, struct mk__thread *t)
{
    assert(t->owner == p);
    pthread_mutex_lock(&p->lock);
    t->next = p->retiring;
    p->retiring = t;
    p->n_retiring++;
    pthread_mutex_unlock(&p->lock);
    mk__thread_retire(t);
}

void mk__control_thread_drain_workers_now(struct mk__control_thread *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__thread *t = p->retiring; t; t = t->next)
        mk__thread_drain_now(t);
    pthread_mutex_unlock(&p->lock);
}

void mk__control_thread_stop_workers(struct mk__control_thread *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__thread *t = p->retiring; t; t = t->next)
        mk__thread_stop(t);
    pthread_mutex_unlock(&p->lock);
}

void mk__control_thread_wait_workers(struct mk__control_thread *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->n_retiring)
        pthread_cond_wait(&p->all_freed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
