// SPDX-License-Identifier: Apache-2.0
/*
 * From one generation to the next while the server runs. Everything that can fail is done beside the workers; then each
 * takes the step by itself.
 *
 *     load ─► sockets ─► new workers ─► each worker adopts ─► what nobody wants is closed
 *       └────────┴────────────┴─ fails: all stays as it is
 *
 * What ends later is left to the process context (server/process.h).
 */
#include "server/server.h"

#include <errno.h>

/* What is prepared, until it is used or given up. */
struct change {
    struct mk_server *server;
    struct mk_generation *next;
    struct mk__worker **workers; /* those that stay, then new ones */
    unsigned n, stay;
    struct mk__adoption *adoptions; /* one for each worker that there is now */
    unsigned n_adoptions;
    struct mk__fair_step step;
    unsigned loops; /* among which sockets are shared out: 0 when the process context accepts */
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
        struct mk__worker *w = mk__server_open_worker(s, c->next, c->n, c->loops);
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
        bool stays = c->n_adoptions < c->stay;
        struct mk__adoption *a = &c->adoptions[c->n_adoptions];
        int err = mk__adoption_prepare(a, s->workers[c->n_adoptions], c->next, stays ? c->loops : 0, stays && !c->loops,
                                       &s->sockets);
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

/* Nothing of it has been seen by anybody: new sockets do not listen, new workers have not begun to look. */
static void give_up(struct change *c)
{
    for (unsigned i = c->stay; c->workers && i < c->n; i++) {
        mk__worker_stop(c->workers[i]);
        mk__process_free_worker(c->workers[i]);
    }
    mk_account_free(NULL, c->workers, 0);
    free_adoptions(c);
    mk__fair_free(&c->step);
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
    if (err == 0)
        err = mk__sockets_listen(&c->server->sockets, c->next->settings);
    if (err < 0)
        send_part(c, mk__adoption_abandon);
    return err;
}

static bool is_fed(const struct change *c)
{
    return c->step.workers || c->server->fair.n_workers;
}

/* First, so that workers that leave get no connections any more. */
static void take_step(struct change *c)
{
    if (c->step.workers)
        memcpy(c->step.workers, c->workers, c->n * sizeof(struct mk__worker *));
    if (is_fed(c))
        mk__fair_take(&c->step, &c->server->process->loop);
}

/* Last, so that no worker gets a connection by a listener that its generation does not have. */
static void finish_step(struct change *c)
{
    if (is_fed(c))
        mk__fair_open_fresh(&c->step);
    mk__fair_free(&c->step);
}

static void place_workers(const struct change *c)
{
    for (unsigned i = 0; i < c->n; i++)
        mk__worker_place(c->workers[i], c->next->settings->affinity);
}

/* No way back from here. */
static void carry_out(struct change *c)
{
    struct mk_server *s = c->server;
    struct mk_generation *before = s->now;
    mk__process_expect_generation(s->process, before);
    for (unsigned i = c->stay; i < s->n_workers; i++)
        mk__process_expect_worker(s->process, s->workers[i]);
    mk__server_limit_descriptors(s, c->next->settings);
    mk__capacity_set(&s->capacity, c->next->settings);
    take_step(c);
    for (unsigned i = c->stay; i < c->n; i++)
        mk__worker_go(c->workers[i]);
    send_part(c, mk__adoption_complete);
    finish_step(c);
    free_adoptions(c);
    for (unsigned i = c->stay; i < s->n_workers; i++)
        mk__process_dismiss(s->process, s->workers[i]);
    pthread_mutex_lock(&s->lock);
    mk_account_free(NULL, s->workers, 0);
    s->workers = c->workers;
    s->n_workers = c->n;
    pthread_mutex_unlock(&s->lock);
    mk__sockets_commit(&s->sockets, c->next->settings);
    place_workers(c);
    s->now = c->next;
    mk__generation_put(before);
}

/* Another one. That of now goes on in any case, even if it was renamed and cannot be made anew. */
static int check_log(const struct change *c)
{
    struct mk_str next = c->next->settings->error_log;
    return mk_str_eq(next, c->server->now->settings->error_log) ? 0 : mk__server_check_log(c->next);
}

static int prepare(struct change *c)
{
    struct mk_server *s = c->server;
    unsigned nth;
    bool fair = c->next->settings->scheduler == MK__FAIR;
    c->loops = fair ? 0 : c->n;
    int err = mk__sockets_prepare(&s->sockets, c->next->settings, fair ? 1 : c->n, &nth);
    if (err < 0 && err != -ENOMEM)
        mk__server_report_listener(c->next, nth, err);
    if (err == 0)
        err = check_log(c);
    if (err == 0)
        err = mk__fair_prepare(&c->step, &s->fair, &s->sockets, fair ? c->n : 0);
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
    int err = mk__process_open(&s->process);
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
        if (c.next)
            mk__generation_stop(c.next);
        s->failed = c.next;
        return err;
    }
    mk__conf_settle(c.next->conf);
    carry_out(&c);
    mk__server_say_where(s);
    return 0;
}
