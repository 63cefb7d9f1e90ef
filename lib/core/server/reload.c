// SPDX-License-Identifier: Apache-2.0
/*
 * Goes from one generation to the next while the server runs. Everything that can fail is done while the workers serve;
 * then each worker takes the step in its own thread.
 *
 *     load ─► sockets ─► new workers ─► plugins start ─► each worker switches ─► unused listeners are closed
 *       └────────┴────────────┴───────────────┴─ on failure all stays as it was
 *
 * The control thread frees what ends later (server/worker/control_thread.h).
 */
#include "server/worker/caller_thread.h"
#include "server/check.h"
#include "server/counts.h"
#include "server/generation/generation_load.h"
#include "server/server.h"

#include <assert.h>
#include <errno.h>

/* What is prepared, until it is committed or aborted. */
struct reload {
    struct mk_server *server;
    struct mk_generation *next;
    struct mk__thread **workers; /* those that stay, then the new ones */
    unsigned n, n_kept;
    struct mk__worker_reload *worker_reloads; /* one for each worker that runs now */
    unsigned n_worker_reloads;
    struct mk__balancer_update balancer_update;
    unsigned n_loops; /* loops that share the sockets; 0 with the fair scheduler */
};

static int prepare_workers(struct reload *c)
{
    struct mk_server *s = c->server;
    c->workers = mk_account_alloc(NULL, c->n * sizeof(struct mk__thread *));
    if (!c->workers)
        return -ENOMEM;
    unsigned wanted = c->n;
    assert(wanted > 0);
    c->n_kept = s->n_workers < wanted ? s->n_workers : wanted;
    memcpy(c->workers, s->workers, c->n_kept * sizeof(struct mk__thread *));
    int err = 0;
    for (c->n = c->n_kept; c->n < wanted && err == 0; c->n += err == 0)
        err = mk__server_open_worker(s, c->next, c->n, c->n_loops, &c->workers[c->n]);
    return err;
}

static int prepare_worker_reloads(struct reload *c)
{
    struct mk_server *s = c->server;
    c->worker_reloads = mk_account_alloc(NULL, s->n_workers * sizeof(*c->worker_reloads));
    if (!c->worker_reloads)
        return -ENOMEM;
    for (; c->n_worker_reloads < s->n_workers; c->n_worker_reloads++) {
        bool stays = c->n_worker_reloads < c->n_kept;
        struct mk__worker_reload *a = &c->worker_reloads[c->n_worker_reloads];
        int err = mk__worker_reload_prepare(a, s->workers[c->n_worker_reloads], c->next, stays ? c->n_loops : 0,
                                            stays && !c->n_loops, &s->listeners);
        if (err < 0) {
            mk__worker_reload_free(a);
            return err;
        }
    }
    return 0;
}

static int start_workers(struct reload *c)
{
    int err = 0;
    for (unsigned i = c->n_kept; i < c->n && err == 0; i++)
        err = mk__thread_start(c->workers[i]);
    return err;
}

static void free_worker_reloads(struct reload *c)
{
    for (unsigned i = 0; i < c->n_worker_reloads; i++)
        mk__worker_reload_free(&c->worker_reloads[i]);
    mk_account_free(NULL, c->worker_reloads, 0);
}

/* Gives the reload up. It had no effect on clients: new sockets do not listen, new workers do not serve yet. */
static void abort_reload(struct reload *c)
{
    assert(c->next != c->server->current);
    for (unsigned i = c->n_kept; c->workers && i < c->n; i++) {
        mk__thread_stop(c->workers[i]);
        mk__control_thread_free_worker(c->workers[i]);
    }
    mk_account_free(NULL, c->workers, 0);
    free_worker_reloads(c);
    mk__balancer_free_update(&c->balancer_update);
    mk__listeners_cancel(&c->server->listeners);
}

typedef void (*phase_fn)(struct mk__worker_reload *a, sem_t *done);

/* A worker in the thread of the caller runs turns of its loop meanwhile. */
static void wait_for_worker(struct reload *c, sem_t *done)
{
    while (mk__server_is_in_caller(c->server) && sem_trywait(done) < 0)
        mk__caller_thread_turn(c->server->workers[0], -1);
    while (!mk__server_is_in_caller(c->server) && sem_wait(done) < 0)
        ;
}

/* Has all workers run one phase of the step, and waits for them. */
static void run_phase(struct reload *c, phase_fn phase)
{
    sem_t done;
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < c->n_worker_reloads; i++)
        phase(&c->worker_reloads[i], &done);
    for (unsigned i = 0; i < c->n_worker_reloads; i++)
        wait_for_worker(c, &done);
    sem_destroy(&done);
}

/* Starts the plugins in all workers, or in none. */
static int begin_worker_reloads(struct reload *c)
{
    int err = 0;
    run_phase(c, mk__worker_reload_begin);
    for (unsigned i = 0; i < c->n_worker_reloads && err == 0; i++)
        err = c->worker_reloads[i].err;
    if (err == 0)
        err = mk__listeners_listen(&c->server->listeners, c->next->settings);
    if (err < 0)
        run_phase(c, mk__worker_reload_abort);
    return err;
}

static bool uses_balancer(const struct reload *c)
{
    return c->balancer_update.workers || c->server->balancer.n_workers;
}

/* Comes first, so that retiring workers get no more connections. */
static void update_balancer(struct reload *c)
{
    for (unsigned i = 0; c->balancer_update.workers && i < c->n; i++)
        c->balancer_update.workers[i] = &c->workers[i]->receiver;
    if (uses_balancer(c))
        mk__balancer_apply(&c->balancer_update, &c->server->control_thread->loop);
}

/* Comes last, so that no worker gets a connection of a listener that its generation does not have. */
static void finish_balancer(struct reload *c)
{
    if (uses_balancer(c))
        mk__balancer_open_pending(&c->balancer_update);
    mk__balancer_free_update(&c->balancer_update);
}

/* Cannot fail, and cannot be undone. */
static void commit_reload(struct reload *c)
{
    struct mk_server *s = c->server;
    struct mk_generation *before = s->current;
    assert(c->next && c->n_worker_reloads == s->n_workers);
    s->generations = c->next->number;
    mk__control_thread_watch_generation(s->control_thread, before);
    for (unsigned i = c->n_kept; i < s->n_workers; i++)
        mk__control_thread_watch_worker(s->control_thread, s->workers[i]);
    mk__limits_set(&s->limits, c->next->settings);
    mk__listeners_retire(&s->listeners);
    update_balancer(c);
    for (unsigned i = c->n_kept; i < c->n; i++)
        mk__thread_start_serving(c->workers[i]);
    run_phase(c, mk__worker_reload_commit);
    finish_balancer(c);
    free_worker_reloads(c);
    for (unsigned i = c->n_kept; i < s->n_workers; i++)
        mk__control_thread_retire_worker(s->control_thread, s->workers[i]);
    pthread_mutex_lock(&s->lock);
    mk_account_free(NULL, s->workers, 0);
    s->workers = c->workers;
    s->n_workers = c->n;
    pthread_mutex_unlock(&s->lock);
    mk__listeners_commit(&s->listeners, c->next->settings);
    for (unsigned i = 0; i < c->n && !mk__server_is_in_caller(c->server); i++)
        mk__thread_set_affinity(c->workers[i], c->next->settings->affinity);
    s->current = c->next;
    mk__generation_put(before);
}

/* Checks a new ErrorLog. The one in use continues in any case, even if it was renamed and could not be opened again. */
static int check_log(const struct reload *c)
{
    struct mk_str next = c->next->settings->error_log;
    return mk_str_eq(next, c->server->current->settings->error_log) ? 0 : mk__check_log(c->next);
}

static int prepare_reload(struct reload *c)
{
    struct mk_server *s = c->server;
    unsigned nth;
    bool fair = c->next->settings->scheduler == MK__SCHEDULER_FAIR && !mk__server_is_in_caller(s);
    c->n_loops = fair ? 0 : c->n;
    int err = mk__listeners_prepare(&s->listeners, c->next->settings, fair ? 1 : c->n, &nth);
    if (err < 0 && err != -ENOMEM)
        mk__check_report_listener(c->next, nth, err);
    if (err == 0)
        err = check_log(c);
    if (err == 0)
        err = mk__balancer_prepare(&c->balancer_update, &s->balancer, &s->listeners, fair ? c->n : 0);
    if (err == 0)
        err = prepare_workers(c);
    if (err == 0)
        err = prepare_worker_reloads(c);
    if (err == 0)
        err = start_workers(c);
    return err == 0 ? begin_worker_reloads(c) : err;
}

static bool is_stop_requested(struct mk_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool stops = s->stop_requested;
    pthread_mutex_unlock(&s->lock);
    return stops;
}

static int refuse_to_reload(struct mk_server *s)
{
    s->refusal = "the server was told to stop at once: call mk_server_stop()";
    return -ECANCELED;
}

static int reload_server(struct mk_server *s)
{
    struct reload c = {.server = s};
    if (!mk__server_is_running(s))
        return -EINVAL;
    mk__generation_free(&s->failed);
    int err = mk__control_thread_open(&s->control_thread);
    if (err < 0)
        return err;
    err = mk__server_load(s, &c.next);
    if (err == 0 && is_stop_requested(s))
        err = refuse_to_reload(s);
    if (err == 0) {
        c.n = c.next->workers;
        err = prepare_reload(&c);
        if (err < 0)
            abort_reload(&c);
    }
    mk__counts_add(err == 0 ? MK__COUNT_RELOADS : MK__COUNT_FAILED_RELOADS, 1);
    if (err < 0) {
        if (c.next)
            mk__generation_stop(c.next);
        s->failed = c.next;
        return err;
    }
    mk__conf_free_texts(c.next->conf);
    mk__counts_open_hosts(c.next);
    commit_reload(&c);
    mk__server_log_listeners(s);
    return 0;
}

/*
 * Until end_reload() the workers continue, because a reload waits for their answers: mk_server_stop_now() is carried
 * out then. Returns whether it was called already.
 */
static bool begin_reload(struct mk_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool stops = s->stop_requested;
    s->reloading = !stops;
    pthread_mutex_unlock(&s->lock);
    return stops;
}

static void end_reload(struct mk_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->reloading = false;
    if (s->stop_requested)
        mk__server_stop_workers(s);
    pthread_mutex_unlock(&s->lock);
}

static int reload_and_report(struct mk_server *s)
{
    mk__server_begin_asked(s);
    int err = reload_server(s);
    end_reload(s);
    s->error = err;
    mk__server_end_asked(s, err);
    return err;
}

int mk_server_reload(struct mk_server *s)
{
    int err = mk__server_enter(s);
    if (err < 0)
        return err;
    if (begin_reload(s))
        err = refuse_to_reload(s);
    else
        err = reload_and_report(s);
    mk__server_leave(s);
    return err;
}
