// SPDX-License-Identifier: Apache-2.0
/*
 * Calls into the worker of a request, from any thread (ticket.h).
 */
#include "request/ticket.h"

#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "request/request.h"

#include <monkey/request_ref.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>

struct ticket_gate {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct service *service; /* NULL: closed */
    unsigned refs;           /* the service, and calls under way */
    unsigned running;        /* calls that are in the service now */
};

/* What is in a struct duda_ticket. */
struct ticket {
    struct mk_request_ref ref;
    struct duda_request *dr; /* valid if the exchange still exists */
    struct ticket_gate *gate;
    struct mk_loop *loop;
};

static_assert(sizeof(struct ticket) <= sizeof(struct duda_ticket), "a ticket fits into its public struct");

struct call {
    struct mk_request_call call;
    struct ticket ticket;
    duda_event_fn fn;
    void *data;
};

/* ── the gate ── */

int ticket_gate_open(struct service *s)
{
    struct ticket_gate *gate = heap_zalloc(sizeof(*gate));
    if (!gate)
        return -ENOMEM;
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->idle, NULL);
    gate->service = s;
    gate->refs = 1;
    tickets_of(s)->gate = gate;
    return 0;
}

/* Unlocks the gate, and drops a reference. */
static void put_gate(struct ticket_gate *gate)
{
    assert(gate->refs > 0 && gate->running <= gate->refs);
    bool is_last = --gate->refs == 0;
    pthread_mutex_unlock(&gate->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&gate->idle);
    pthread_mutex_destroy(&gate->lock);
    heap_free(gate, sizeof(*gate));
}

void ticket_gate_close(struct service *s)
{
    struct ticket_gate *gate = tickets_of(s)->gate;
    if (!gate)
        return;
    tickets_of(s)->gate = NULL;
    pthread_mutex_lock(&gate->lock);
    gate->service = NULL;
    assert(gate->refs > 0);
    while (gate->running)
        pthread_cond_wait(&gate->idle, &gate->lock);
    put_gate(gate);
}

/* Returns the service, for the time of a call, or NULL if it has ended. */
static struct service *enter_gate(struct ticket_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    struct service *s = gate->service;
    gate->running += s != NULL;
    pthread_mutex_unlock(&gate->lock);
    return s;
}

static void leave_gate(struct ticket_gate *gate, bool entered)
{
    pthread_mutex_lock(&gate->lock);
    assert(gate->running >= (unsigned)entered);
    gate->running -= entered;
    if (gate->running == 0)
        pthread_cond_broadcast(&gate->idle);
    put_gate(gate);
}

/* ── calls ── */

static void run_call(struct mk_request_call *base, struct mk_request *req)
{
    struct call *call = MK_CONTAINER_OF(base, struct call, call);
    struct ticket_gate *gate = call->ticket.gate;
    struct service *s = enter_gate(gate);
    if (s) {
        struct duda_request *dr = req ? call->ticket.dr : NULL;
        struct current outer = current_enter(s, dr ? dr->worker : service_worker_find(s, call->ticket.loop));
        current.request = dr;
        call->fn(dr, call->data);
        current_leave(outer);
    }
    heap_free(call, sizeof(*call));
    leave_gate(gate, s != NULL);
}

int ticket_make(duda_request_t *dr, struct duda_ticket *ret)
{
    struct ticket ticket = {.dr = dr, .gate = tickets_of(dr->worker->service)->gate, .loop = dr->worker->loop};
    int err = mk_request_ref(dr->req, &ticket.ref);
    if (err == 0)
        memcpy(ret, &ticket, sizeof(ticket));
    return err;
}

int ticket_deliver(const struct duda_ticket *ticket, duda_event_fn fn, void *data)
{
    static const struct ticket none;
    bool is_none = !ticket || memcmp(ticket, &none, sizeof(none)) == 0;
    if (is_none || !fn) {
        api_error_log(current.worker, "response->deliver()", is_none ? "there is no ticket" : "there is no function");
        return -EINVAL;
    }
    struct call *call = heap_zalloc(sizeof(*call));
    if (!call)
        return -ENOMEM;
    memcpy(&call->ticket, ticket, sizeof(call->ticket));
    struct ticket_gate *gate = call->ticket.gate;
    call->call.ref = call->ticket.ref;
    call->call.fn = run_call;
    call->fn = fn;
    call->data = data;
    pthread_mutex_lock(&gate->lock);
    gate->refs++;
    int err = gate->service ? 0 : -ESRCH;
    pthread_mutex_unlock(&gate->lock);
    if (err == 0)
        err = mk_request_ref_call(&call->call);
    if (err < 0) {
        heap_free(call, sizeof(*call));
        leave_gate(gate, false);
    }
    return err;
}
