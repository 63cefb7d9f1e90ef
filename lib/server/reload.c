// SPDX-License-Identifier: Apache-2.0
/*
 * From one generation to the next while the server runs. Everything that can fail is done beside the workers; then each
 * takes the step by itself.
 *
 *     load ─► sockets ─► new workers ─► each worker adopts ─► what nobody wants is closed
 *       └────────┴────────────┴─ fails: all stays as it is
 *
 * The keeper is a thread that clears away what ends later: generations with their last exchange, workers that were
 * sent away with their last connection.
 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024 };

struct mk__keeper {
    struct mk_loop loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list below */
    pthread_cond_t gone;
    struct mk__worker *leaving; /* draining */
    unsigned busy;              /* workers that are not cleared away yet */
    struct mk_message stop_message;
};

/* ── the keeper ── */

static void *keep(void *ctx)
{
    struct mk__keeper *k = ctx;
    prctl(PR_SET_NAME, "monkey: keeper");
    mk__loop_run(&k->loop);
    return NULL;
}

static void on_stop(struct mk_message *message)
{
    struct mk__keeper *k = MK_OWNER(message, struct mk__keeper, stop_message);
    mk__loop_stop(&k->loop);
}

static int start_thread(struct mk__keeper *k)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&k->thread, &attr, keep, k);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}

static int open_keeper(struct mk_server *s)
{
    if (s->keeper)
        return 0;
    struct mk__keeper *k = mk_account_alloc(NULL, sizeof(*k));
    if (!k)
        return -ENOMEM;
    k->leaving = NULL;
    k->busy = 0;
    k->stop_message.fn = on_stop;
    int err = mk__loop_open(&k->loop, &mk__poller_epoll, &mk__clock_system, NULL);
    if (err == 0) {
        err = start_thread(k);
        if (err < 0)
            mk__loop_close(&k->loop);
    }
    if (err < 0) {
        mk_account_free(NULL, k, sizeof(*k));
        return err;
    }
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->gone, NULL);
    s->keeper = k;
    return 0;
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
    struct mk__keeper *k = g->owner;
    g->message.fn = free_generation;
    mk_post(&k->loop, &g->message);
}

static void free_worker(struct mk__worker *w)
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
    struct mk__keeper *k = w->owner;
    pthread_mutex_lock(&k->lock);
    for (at = &k->leaving; *at != w; at = &(*at)->next)
        ;
    *at = w->next;
    pthread_mutex_unlock(&k->lock);
    free_worker(w);
    pthread_mutex_lock(&k->lock);
    k->busy--;
    pthread_cond_signal(&k->gone);
    pthread_mutex_unlock(&k->lock);
}

static void on_ended(struct mk__worker *w)
{
    struct mk__keeper *k = w->owner;
    w->ended_message.fn = bury_worker;
    mk_post(&k->loop, &w->ended_message);
}

/* Sends a worker away: it has stopped accepting, and ends with its last connection. */
static void dismiss(struct mk__keeper *k, struct mk__worker *w)
{
    pthread_mutex_lock(&k->lock);
    w->next = k->leaving;
    k->leaving = w;
    k->busy++;
    pthread_mutex_unlock(&k->lock);
    mk__worker_drain(w);
}

void mk__keeper_stop_workers(struct mk__keeper *k)
{
    pthread_mutex_lock(&k->lock);
    for (struct mk__worker *w = k->leaving; w; w = w->next)
        mk__worker_stop(w);
    pthread_mutex_unlock(&k->lock);
}

void mk__keeper_wait(struct mk__keeper *k)
{
    pthread_mutex_lock(&k->lock);
    while (k->busy)
        pthread_cond_wait(&k->gone, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

void mk__keeper_free(struct mk__keeper *k)
{
    mk_post(&k->loop, &k->stop_message);
    pthread_join(k->thread, NULL);
    mk__loop_close(&k->loop); /* generations that were let go last are freed here */
    pthread_cond_destroy(&k->gone);
    pthread_mutex_destroy(&k->lock);
    mk_account_free(NULL, k, sizeof(*k));
}

/* ── a reload ── */

/* What is prepared, until it is used or given up. */
struct change {
    struct mk_server *server;
    struct mk_generation *next;
    struct mk__worker **workers; /* those that stay, then new ones */
    unsigned n, stay;
    struct mk__adoption *adoptions; /* one for each worker that there is now */
    unsigned n_adoptions;
};

static int prepare_workers(struct change *c)
{
    struct mk_server *s = c->server;
    c->workers = mk_account_alloc(NULL, c->n * sizeof(struct mk__worker *));
    if (!c->workers)
        return -ENOMEM;
    unsigned wanted = c->n;
    c->stay = s->n_workers < wanted ? s->n_workers : wanted;
    memcpy(c->workers, s->workers, c->stay * sizeof(struct mk__worker *));
    for (c->n = c->stay; c->n < wanted; c->n++) {
        struct mk__worker *w = mk__server_open_worker(s, c->next, c->n, wanted);
        if (!w)
            return -ENOMEM;
        c->workers[c->n] = w;
    }
    return 0;
}

static int prepare_adoptions(struct change *c)
{
    struct mk_server *s = c->server;
    c->adoptions = mk_account_alloc(NULL, s->n_workers * sizeof(*c->adoptions));
    if (!c->adoptions)
        return -ENOMEM;
    for (; c->n_adoptions < s->n_workers; c->n_adoptions++) {
        unsigned workers = c->n_adoptions < c->stay ? c->n : 0;
        struct mk__adoption *a = &c->adoptions[c->n_adoptions];
        int err = mk__adoption_prepare(a, s->workers[c->n_adoptions], c->next, workers, &s->sockets);
        if (err < 0) {
            mk__adoption_free(a);
            return err;
        }
    }
    return 0;
}

static int start_workers(struct change *c)
{
    int err = 0;
    for (unsigned i = c->stay; i < c->n && err == 0; i++)
        err = mk__worker_start(c->workers[i]);
    return err;
}

static void free_adoptions(struct change *c)
{
    for (unsigned i = 0; i < c->n_adoptions; i++)
        mk__adoption_free(&c->adoptions[i]);
    mk_account_free(NULL, c->adoptions, 0);
}

/* Nothing of it has been seen by anybody, but for connections that new workers may have accepted already. */
static void give_up(struct change *c)
{
    for (unsigned i = c->stay; c->workers && i < c->n; i++) {
        mk__worker_stop(c->workers[i]);
        free_worker(c->workers[i]);
    }
    mk_account_free(NULL, c->workers, 0);
    free_adoptions(c);
    mk__sockets_cancel(&c->server->sockets);
}

typedef void (*part_fn)(struct mk__adoption *a, sem_t *done);

/* Has all workers do one part of the step, and waits for them. */
static void send_part(struct change *c, part_fn part)
{
    sem_t done;
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < c->n_adoptions; i++)
        part(&c->adoptions[i], &done);
    for (unsigned i = 0; i < c->n_adoptions; i++)
        while (sem_wait(&done) < 0)
            ;
    sem_destroy(&done);
}

/* The plugins start in all workers, or in none. */
static int begin_adoptions(struct change *c)
{
    int err = 0;
    send_part(c, mk__adoption_begin);
    for (unsigned i = 0; i < c->n_adoptions && err == 0; i++)
        err = c->adoptions[i].err;
    if (err < 0)
        send_part(c, mk__adoption_abandon);
    return err;
}

/* No way back from here. */
static void carry_out(struct change *c)
{
    struct mk_server *s = c->server;
    struct mk_generation *before = s->now;
    before->owner = s->keeper;
    before->unheld = on_unheld;
    for (unsigned i = c->stay; i < s->n_workers; i++) {
        s->workers[i]->owner = s->keeper;
        s->workers[i]->ended = on_ended;
    }
    send_part(c, mk__adoption_complete);
    free_adoptions(c);
    for (unsigned i = c->stay; i < s->n_workers; i++)
        dismiss(s->keeper, s->workers[i]);
    pthread_mutex_lock(&s->lock);
    mk_account_free(NULL, s->workers, 0);
    s->workers = c->workers;
    s->n_workers = c->n;
    pthread_mutex_unlock(&s->lock);
    mk__sockets_commit(&s->sockets);
    s->now = c->next;
    mk__generation_put(before);
}

static int prepare(struct change *c)
{
    struct mk_server *s = c->server;
    unsigned nth;
    int err = mk__sockets_prepare(&s->sockets, c->next->settings, c->n, &nth);
    if (err < 0 && err != -ENOMEM)
        mk__server_report_listener(c->next, nth, err);
    if (err == 0)
        err = prepare_workers(c);
    if (err == 0)
        err = prepare_adoptions(c);
    if (err == 0)
        err = start_workers(c);
    return err == 0 ? begin_adoptions(c) : err;
}

int mk_server_reload(struct mk_server *s)
{
    struct change c = {.server = s};
    if (!s->running)
        return -EINVAL;
    mk__server_forget(&s->failed);
    int err = open_keeper(s);
    if (err < 0)
        return err;
    err = mk__server_load(s, &c.next);
    if (err == 0) {
        c.n = mk__generation_workers(c.next);
        err = prepare(&c);
        if (err < 0)
            give_up(&c);
    }
    if (err < 0) {
        s->failed = c.next;
        return err;
    }
    mk__conf_settle(c.next->conf);
    carry_out(&c);
    mk__server_say_where(s);
    return 0;
}
