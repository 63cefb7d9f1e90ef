// SPDX-License-Identifier: Apache-2.0
/*
 * The thread of server/process.h, and how it learns what has ended: by messages.
 */
#include "server/process.h"

#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024 };

/* ── the thread ── */

static void *run(void *ctx)
{
    struct mk__process *p = ctx;
    prctl(PR_SET_NAME, "monkey: process");
    mk__loop_run(&p->loop);
    return NULL;
}

static void on_stop(struct mk_message *message)
{
    struct mk__process *p = MK_OWNER(message, struct mk__process, stop_message);
    mk__loop_stop(&p->loop);
}

static int start_thread(struct mk__process *p)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&p->thread, &attr, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}

int mk__process_open(struct mk__process **ret_p)
{
    if (*ret_p)
        return 0;
    struct mk__process *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->leaving = NULL;
    p->busy = 0;
    p->stop_message.fn = on_stop;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->gone, NULL);
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

void mk__process_free(struct mk__process *p)
{
    mk_post(&p->loop, &p->stop_message);
    pthread_join(p->thread, NULL);
    mk__loop_close(&p->loop); /* generations that were let go last are freed here */
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
    mk_account_free(NULL, p, sizeof(*p));
}

/* ── what ends later ── */

static void free_generation(struct mk_message *message)
{
    struct mk_generation *g = MK_OWNER(message, struct mk_generation, message);
    mk_log_info("the configuration before the last reload is not in use any more");
    mk__server_forget(&g);
}

static void on_unheld(struct mk_generation *g)
{
    struct mk__process *p = g->owner;
    g->message.fn = free_generation;
    mk_post(&p->loop, &g->message);
}

void mk__process_expect_generation(struct mk__process *p, struct mk_generation *g)
{
    g->owner = p;
    g->unheld = on_unheld;
}

void mk__process_free_worker(struct mk__worker *w)
{
    mk__worker_join(w);
    while (w->loop.jobs_out && mk__loop_turn(&w->loop) == 0)
        ; /* disk threads still work for it */
    mk__worker_close(w);
    mk_account_free(NULL, w, sizeof(*w));
}

static void bury_worker(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, ended_message), **at;
    struct mk__process *p = w->owner;
    pthread_mutex_lock(&p->lock);
    for (at = &p->leaving; *at != w; at = &(*at)->next)
        ;
    *at = w->next;
    pthread_mutex_unlock(&p->lock);
    mk__process_free_worker(w);
    pthread_mutex_lock(&p->lock);
    p->busy--;
    pthread_cond_signal(&p->gone);
    pthread_mutex_unlock(&p->lock);
}

static void on_ended(struct mk__worker *w)
{
    struct mk__process *p = w->owner;
    w->ended_message.fn = bury_worker;
    mk_post(&p->loop, &w->ended_message);
}

void mk__process_expect_worker(struct mk__process *p, struct mk__worker *w)
{
    w->owner = p;
    w->on_end = on_ended;
}

void mk__process_dismiss(struct mk__process *p, struct mk__worker *w)
{
    pthread_mutex_lock(&p->lock);
    w->next = p->leaving;
    p->leaving = w;
    p->busy++;
    pthread_mutex_unlock(&p->lock);
    mk__worker_leave(w);
}

void mk__process_hurry_workers(struct mk__process *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__worker *w = p->leaving; w; w = w->next)
        mk__worker_hurry(w);
    pthread_mutex_unlock(&p->lock);
}

void mk__process_stop_workers(struct mk__process *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct mk__worker *w = p->leaving; w; w = w->next)
        mk__worker_stop(w);
    pthread_mutex_unlock(&p->lock);
}

void mk__process_wait(struct mk__process *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->busy)
        pthread_cond_wait(&p->gone, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
