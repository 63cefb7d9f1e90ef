// SPDX-License-Identifier: Apache-2.0
/*
 * Holds requests that wait for room in a log (gate.h).
 */
#include "gate.h"

#include <monkey/arena.h>
#include <monkey/list.h>
#include <monkey/loop.h>

#include <assert.h>
#include <errno.h>

/*
 * The worker sets `closed` and then reads the queue; the writer takes lines and then reads `closed`. So at least one
 * sees what the other did. The thread that resets `closed` opens the gate: the writer by a message, the worker
 * directly.
 */
struct gate {
    struct mk_message message; /* from the writer to the loop */
    struct mk_loop *loop;
    const struct queue *queue;
    struct mk_list waiting;   /* waiters, the oldest first; for the worker */
    struct mk_worker *worker; /* held while the gate is closed, so that it is not freed */
    _Atomic bool closed;
};

/* In the arena of its request. */
struct waiter {
    struct mk_list node;
    struct gate *gate;
    struct mk_request *req;
};

static void on_message(struct mk_message *message);

struct gate *gate_new(struct mk_loop *loop, const struct queue *q)
{
    struct gate *g = mk_account_alloc(NULL, sizeof(*g));
    if (!g)
        return NULL;
    memset(g, 0, sizeof(*g));
    g->loop = loop;
    g->queue = q;
    g->message.fn = on_message;
    mk_list_init(&g->waiting);
    return g;
}

void gate_free(struct gate *g)
{
    assert(!g || (mk_list_empty(&g->waiting) && !g->worker));
    mk_account_free(NULL, g, sizeof(*g));
}

static bool is_full(const struct gate *g)
{
    return queue_waiting(g->queue) >= g->queue->max / 2;
}

static bool has_room(const struct gate *g)
{
    return queue_waiting(g->queue) <= g->queue->max / 4;
}

/* The gate may be freed by this call. */
static void release_worker(struct gate *g)
{
    struct mk_worker *worker = g->worker;
    assert(worker && mk_list_empty(&g->waiting));
    g->worker = NULL;
    mk_worker_put(worker);
}

/* Lets requests continue in their order, while there is room for more lines. */
static void release_waiters(struct gate *g)
{
    while (!mk_list_empty(&g->waiting) && !is_full(g)) {
        struct waiter *w = MK_CONTAINER_OF(g->waiting.next, struct waiter, node);
        assert(w->gate == g);
        mk_list_del(&w->node);
        w->gate = NULL;
        mk_request_decline(w->req);
    }
}

static void on_message(struct mk_message *message)
{
    struct gate *g = MK_CONTAINER_OF(message, struct gate, message);
    do {
        release_waiters(g);
        if (mk_list_empty(&g->waiting)) {
            release_worker(g);
            return;
        }
        atomic_store(&g->closed, true);
    } while (has_room(g) && atomic_exchange(&g->closed, false));
}

/* The request has ended: its client has left, or by a timeout. */
static void remove_waiter(void *ctx)
{
    struct waiter *w = ctx;
    struct gate *g = w->gate;
    if (!g)
        return;
    mk_list_del(&w->node);
    if (mk_list_empty(&g->waiting) && atomic_exchange(&g->closed, false))
        release_worker(g);
}

static struct waiter *add_waiter(struct gate *g, struct mk_request *req)
{
    struct waiter *w = mk_arena_alloc(mk_request_arena(req), sizeof(*w));
    if (!w)
        return NULL;
    *w = (struct waiter){.req = req};
    if (mk_arena_defer(mk_request_arena(req), remove_waiter, w) < 0)
        return NULL;
    w->gate = g;
    mk_list_add(&g->waiting, &w->node);
    return w;
}

int gate_pass(struct gate *g, struct mk_request *req)
{
    if (MK_LIKELY(mk_list_empty(&g->waiting) && !is_full(g)))
        return MK_DECLINED;
    if (!add_waiter(g, req))
        return -ENOMEM;
    if (g->worker)
        return 0; /* the gate is closed, or the message to open it is on its way */
    g->worker = mk_worker_get(mk_request_worker(req));
    atomic_store(&g->closed, true);
    gate_check(g);
    return 0;
}

void gate_check(struct gate *g)
{
    if (g && has_room(g) && atomic_exchange(&g->closed, false))
        mk_post(g->loop, &g->message);
}
