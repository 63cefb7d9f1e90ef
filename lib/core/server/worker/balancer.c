// SPDX-License-Identifier: Apache-2.0
/*
 * Hands connections to workers (server/worker/balancer.h). All of it runs in the control thread, except what prepares
 * an update.
 */
#include "server/worker/balancer.h"

#include "base/log.h"
#include "server/listen/limits.h"
#include "server/listen/listeners.h"
#include "server/worker/receiver.h"

#include <monkey/base/arena.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <unistd.h>

enum { EVICT_BATCH = 16 };

/* ── one connection ── */

unsigned mk__balancer_pick(const uint32_t *loads, unsigned n, unsigned last)
{
    assert(n > 0);
    unsigned best = (last + 1) % n;
    for (unsigned i = 2; i <= n; i++) {
        unsigned k = (last + i) % n;
        if (loads[k] < loads[best])
            best = k;
    }
    return best;
}

/* Workers without memory come last. Returns false if all are out of memory. */
static bool pick_worker(struct mk__balancer *b, struct mk__receiver **ret_worker)
{
    MK_UNINITIALIZED uint32_t loads[MK__BALANCER_WORKERS_MAX];
    assert(b->n_workers > 0 && b->n_workers <= MK__BALANCER_WORKERS_MAX);
    for (unsigned i = 0; i < b->n_workers; i++) {
        const struct mk__receiver *r = b->workers[i];
        loads[i] = mk__receiver_load(r) | (r->out_of_memory ? 1u << 31 : 0);
    }
    b->last = mk__balancer_pick(loads, b->n_workers, b->last);
    *ret_worker = b->workers[b->last];
    return !(loads[b->last] >> 31);
}

/* There is no memory for the message. */
static int reject_unassigned(struct mk__balancer *b, const struct mk__listener *listener, int fd, int err)
{
    b->rejected++;
    if (mk__log_is_due(&b->warned_ms, mk_loop_now_ms(b->loop)))
        mk_log_warn("cannot give a connection to a worker: %s; %u were closed so far", strerror(-err), b->rejected);
    mk__limits_remove_conn(b->limits);
    if (!mk__limits_evicts(b->limits)) {
        mk__limits_reject(b->limits, listener, fd);
        return 0;
    }
    close(fd);
    return -ENOMEM;
}

static int assign_accepted(struct mk__acceptor *a, const struct mk__accepted *accepted)
{
    struct mk__balancer *b = a->ctx;
    struct mk__receiver *r;
    bool has_memory = pick_worker(b, &r);
    int err = mk__receiver_send(r, a->listener, accepted);
    if (err < 0)
        return reject_unassigned(b, a->listener, accepted->fd, err);
    if (has_memory)
        return 0;
    for (unsigned i = 0; i < b->n_workers; i++)
        b->workers[i]->out_of_memory = false; /* they are tried again when the acceptor's pause ends */
    return -ENOMEM;
}

/* ── eviction ── */

static void on_evicted(struct mk_message *message)
{
    struct mk__receiver *r = MK_CONTAINER_OF(message, struct mk__receiver, evicted_message);
    struct mk__balancer *b = r->owner;
    assert(r->evict_pending);
    r->evict_pending = false;
    for (unsigned i = 0; i < b->acceptors.n; i++)
        mk__acceptor_retry(b->acceptors.items[i]);
}

/* In the worker's thread. */
static void on_evict_request(struct mk_message *message)
{
    struct mk__receiver *r = MK_CONTAINER_OF(message, struct mk__receiver, evict_message);
    struct mk__balancer *b = r->owner;
    assert(r->evict_pending);
    if (r->callbacks->evict(r->ctx, r->evict_max) > 0)
        mk_post(b->loop, &r->evicted_message);
    else
        r->evict_pending = false; /* nothing was idle: it is asked again next time */
}

/* Asks the workers to close idle connections; on_evicted() resumes accepting. Returns false: none is closed yet. */
static bool request_eviction(struct mk__acceptor *a)
{
    struct mk__balancer *b = a->ctx;
    for (unsigned i = 0; i < b->n_workers; i++) {
        struct mk__receiver *r = b->workers[i];
        if (mk__receiver_load(r) == 0 || atomic_exchange(&r->evict_pending, true))
            continue;
        r->owner = b;
        r->evict_max = (EVICT_BATCH + b->n_workers - 1) / b->n_workers;
        r->evict_message.fn = on_evict_request;
        r->evicted_message.fn = on_evicted;
        mk_post(r->loop, &r->evict_message);
    }
    return false;
}

static const struct mk__acceptor_callbacks acceptor_callbacks = {assign_accepted, request_eviction, NULL};

static int open_acceptor(void *ctx, struct mk__acceptor *a)
{
    struct mk__balancer *b = ctx;
    assert(b->loop && !a->open);
    a->limits = b->limits;
    return mk__acceptor_open(a, b->loop, a->event.fd, a->listener->shared, &acceptor_callbacks, b);
}

/* Workers know a new listener only once they have its generation: see mk__balancer_open_pending(). */
static int open_unless_pending(void *ctx, struct mk__acceptor *a)
{
    return a->listener->state == MK__LISTENER_NEW ? 0 : open_acceptor(ctx, a);
}

/* ── the end ── */

static void end_handoff(struct mk__balancer *b)
{
    mk__acceptors_close(&b->acceptors);
    for (unsigned i = 0; i < b->n_workers; i++)
        mk_post(b->workers[i]->loop, &b->workers[i]->end_message);
}

static void on_delay_timer(struct mk_timer *timer)
{
    end_handoff(MK_CONTAINER_OF(timer, struct mk__balancer, delay_timer));
}

static void on_drain(struct mk_message *message)
{
    struct mk__balancer *b = MK_CONTAINER_OF(message, struct mk__balancer, drain_message);
    if (b->delay_ms)
        mk_timer_arm(b->loop, &b->delay_timer, b->delay_ms);
    else
        end_handoff(b);
}

void mk__balancer_drain(struct mk__balancer *b, uint32_t delay_ms)
{
    assert(b->loop && b->n_workers > 0);
    b->delay_ms = delay_ms;
    b->drain_message.fn = on_drain;
    mk_post(b->loop, &b->drain_message);
}

/* ── updates ── */

int mk__balancer_prepare(struct mk__balancer_update *update, struct mk__balancer *b,
                         const struct mk__listeners *listeners, unsigned n)
{
    *update = (struct mk__balancer_update){.balancer = b, .n_workers = n};
    assert(n <= MK__BALANCER_WORKERS_MAX);
    if (!n)
        return 0;
    update->workers = mk_account_alloc(NULL, n * sizeof(struct mk__receiver *));
    return update->workers ? mk__acceptors_make(&update->acceptors, listeners, 0, 1) : -ENOMEM;
}

void mk__balancer_free_update(struct mk__balancer_update *update)
{
    mk__acceptors_free(&update->acceptors);
    mk_account_free(NULL, update->workers, 0);
    update->workers = NULL;
}

static void swap_workers(struct mk__balancer *b, struct mk__balancer_update *update)
{
    struct mk__receiver **workers = b->workers;
    unsigned n = b->n_workers;
    b->workers = update->workers;
    b->n_workers = update->n_workers;
    update->workers = workers;
    update->n_workers = n;
}

static void apply_update(struct mk_message *message)
{
    struct mk__balancer_update *update = MK_CONTAINER_OF(message, struct mk__balancer_update, message);
    struct mk__balancer *b = update->balancer;
    bool has_workers = update->n_workers > 0;
    if (has_workers)
        swap_workers(b, update);
    /* connections that wait at a removed address still go to a worker */
    mk__acceptors_replace(&b->acceptors, &update->acceptors, open_unless_pending, b);
    if (!has_workers)
        swap_workers(b, update);
    mk_timer_cancel(&b->delay_timer);
    sem_post(&update->done);
}

static void open_pending(struct mk_message *message)
{
    struct mk__balancer_update *update = MK_CONTAINER_OF(message, struct mk__balancer_update, message);
    mk__acceptors_open(&update->balancer->acceptors, open_acceptor, update->balancer);
    sem_post(&update->done);
}

/* Runs `fn` in the control thread, and waits for its end. */
static void run_in_control_thread(struct mk__balancer_update *update, mk_message_fn fn)
{
    sem_init(&update->done, 0, 0);
    update->message.fn = fn;
    mk_post(update->balancer->loop, &update->message);
    while (sem_wait(&update->done) < 0)
        ;
    sem_destroy(&update->done);
}

void mk__balancer_apply(struct mk__balancer_update *update, struct mk_loop *loop)
{
    struct mk__balancer *b = update->balancer;
    if (!b->loop) {
        b->loop = loop;
        mk_timer_init(&b->delay_timer, on_delay_timer);
    }
    run_in_control_thread(update, apply_update);
}

void mk__balancer_open_pending(struct mk__balancer_update *update)
{
    run_in_control_thread(update, open_pending);
}
