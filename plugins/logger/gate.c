// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <monkey/base/arena.h>
#include <monkey/loop.h>

#include <assert.h>
#include <errno.h>

/* In the arena of its request. */
struct waiter {
    struct mk_list node;
    struct gate *gate;
    struct mk_request *req;
};

static bool is_full(const struct gate *g)
{
    return mk_log_producer_waiting(g->producer) >= mk_log_producer_bytes_max(g->producer) / 2;
}

static bool has_room(const struct gate *g)
{
    return mk_log_producer_waiting(g->producer) <= mk_log_producer_bytes_max(g->producer) / 4;
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

void gate_init(struct gate *g, struct mk_loop *loop, const struct mk_log_producer *producer)
{
    *g = (struct gate){.message.fn = on_message, .loop = loop, .producer = producer};
    mk_list_init(&g->waiting);
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
    if (atomic_load(&g->closed) && has_room(g) && atomic_exchange(&g->closed, false))
        mk_post(g->loop, &g->message);
}
