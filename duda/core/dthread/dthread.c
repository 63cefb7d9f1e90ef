// SPDX-License-Identifier: Apache-2.0
/*
 * Runs coroutines of services (dthread.h).
 */
#include "dthread/dthread.h"

#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "crash/crash.h"
#include "crash/line.h"
#include "event/descriptor.h"
#include "log/message.h"
#include "request/output.h"
#include "request/request.h"

#include <assert.h>
#include <errno.h>

enum { DTHREADS_MAX = 1 << 20, RUNS_OF_A_TURN = 256, CANCELS_MAX = 100 };

/* ── switching ── */

static void unlink_dthread(struct dthread *d)
{
    mk_list_del(&d->node);
    if (d->link_of_request) {
        *d->link_of_request = d->next_of_request;
        if (d->next_of_request)
            d->next_of_request->link_of_request = d->link_of_request;
    }
    slots_remove(&dthreads_of(d->worker)->slots, d->slot);
}

static void clear_running(struct dthread *d)
{
    if (d->is_running)
        atomic_store(d->is_running, false);
}

static void free_dthread(struct dthread *d)
{
    struct service_worker *w = d->worker;
    assert(mk_list_empty(&d->joiners) && !d->n_waiters && d->fd < 0);
    assert(d != dthreads_of(w)->running);
    unlink_dthread(d);
    clear_running(d);
    context_release(&d->context);
    stack_put(&dthreads_of(w)->stacks, d->stack);
    heap_free(d, sizeof(*d));
}

/* Frees the one that has ended: its stack does not run any more. */
static void reap_ended(struct dthreads *all)
{
    if (all->dead)
        free_dthread(all->dead);
    all->dead = NULL;
}

static struct context *get_context(struct dthreads *all, struct dthread *d)
{
    return d ? &d->context : &all->main;
}

static void exit_dthread(struct dthread *d, struct dthread *to);

/* Runs `to`, or what has called the dthreads (NULL). Returns when this stack continues. */
static void transfer_to(struct dthreads *all, struct dthread *to)
{
    struct dthread *from = all->running;
    all->running = to;
    if (to)
        to->state = STATE_RUNNING;
    context_switch(get_context(all, from), get_context(all, to), false);
    reap_ended(all);
    if (from && from->dropped)
        exit_dthread(from, NULL);
}

static void exit_dthread(struct dthread *d, struct dthread *to)
{
    struct dthreads *all = dthreads_of(d->worker);
    assert(d == all->running && !all->dead);
    all->dead = d;
    all->running = to;
    if (to)
        to->state = STATE_RUNNING;
    context_switch(&d->context, get_context(all, to), true);
}

/* Returns the one that continues at the end of a dthread of the old API; NULL: a callback. */
static struct dthread *find_resumer(const struct dthread *d)
{
    struct dthread *resumer = dthread_find(d->worker, d->resumer);
    return resumer && resumer->state == STATE_SUSPENDED ? resumer : NULL;
}

static void wake_joiners(struct dthread *d)
{
    while (!mk_list_empty(&d->joiners))
        dthread_wake(MK_LIST_FIRST(&d->joiners, struct waiter, node)->dthread, 0);
}

/* Answers a request whose last dthread has returned without a response, if nothing else would send one. */
static void answer_forgotten(struct dthread *d)
{
    bool is_last = d->dr && d->dr->dthreads == d && !d->next_of_request;
    if (!is_last || d->has_passed_on || !request_is_forgotten(d->dr))
        return;
    api_error_log_at(d->worker, d->entry.handler ? "router->in_dthread()" : "dthread->handle()",
                     "it has returned without a response, and nothing else sends one: 500 was sent",
                     dthread_get_function(d));
    output_send_page(d->dr, 500);
}

static void call_function(struct dthread *d)
{
    const struct dthread_entry *e = &d->entry;
    if (e->call)
        e->call(e->data);
    else if (e->event)
        e->event(d->dr, e->data);
    else if (d->dr)
        e->handler(d->dr);
}

/* The first function on a stack. */
static void run_dthread(void *ctx)
{
    struct dthread *d = ctx;
    reap_ended(dthreads_of(d->worker));
    call_function(d);
    answer_forgotten(d);
    wake_joiners(d);
    exit_dthread(d, find_resumer(d));
}

/* Runs a dthread from the thread's own stack, until one goes back to it. */
static void run_from_main(struct dthread *d)
{
    struct service_worker *w = d->worker;
    assert(!dthreads_of(w)->running);
    atomic_store_explicit(&w->watch.function, dthread_get_function(d), memory_order_relaxed);
    atomic_store_explicit(&w->watch.is_dthread, true, memory_order_relaxed);
    dthreads_of(w)->depth = w->watch.depth;
    d->begun = true;
    transfer_to(dthreads_of(w), d);
}

/* ── the queue ── */

static void add_ready(struct dthread *d, struct mk_list *queue)
{
    struct service_worker *w = d->worker;
    assert(d->state != STATE_READY && mk_list_empty(&d->queue));
    d->state = STATE_READY;
    mk_list_add(queue, &d->queue);
    if (!w->ended && !dthreads_of(w)->runs)
        mk_task_schedule(w->loop, &dthreads_of(w)->task);
}

static struct dthread *take_ready(struct dthreads *all)
{
    struct dthread *d = MK_LIST_FIRST(&all->ready, struct dthread, queue);
    assert(d->state == STATE_READY);
    mk_list_del(&d->queue);
    return d;
}

/* A callback of the loop. Ends when the service ends in the worker, which may then be freed. */
static void run_ready(struct mk_task *task)
{
    struct dthreads *all = MK_CONTAINER_OF(task, struct dthreads, task);
    struct service_worker *w = all->worker;
    bool ended = false;
    all->runs = true; /* nothing schedules the task */
    mk_list_join(&all->ready, &all->later);
    for (unsigned n = 0; n < RUNS_OF_A_TURN && !ended && !mk_list_empty(&all->ready); n++) {
        struct current outer = service_worker_enter(w);
        run_from_main(take_ready(all));
        ended = w->ended;
        service_worker_leave(w, outer);
    }
    if (ended)
        return;
    all->runs = false;
    if (!mk_list_empty(&all->ready) || !mk_list_empty(&all->later))
        mk_task_schedule(w->loop, &all->task);
}

/* ── life ── */

static void on_time(struct mk_timer *timer)
{
    dthread_wake(MK_CONTAINER_OF(timer, struct dthread, timer), -ETIMEDOUT);
}

static struct dthread *make_dthread(struct service_worker *w, struct stack *stack)
{
    struct dthread *d = heap_zalloc(sizeof(*d));
    if (!d)
        return NULL;
    *d = (struct dthread){.worker = w, .stack = stack, .fd = -1};
    d->number = slots_add(&dthreads_of(w)->slots, d, &d->slot);
    mk_list_add(&dthreads_of(w)->all, &d->node);
    mk_list_init(&d->queue);
    mk_list_init(&d->joiners);
    mk_timer_init(&d->timer, on_time);
    context_init(&d->context, dthreads_of(w)->main.method, stack->base, stack->bytes, run_dthread, d);
    return d;
}

struct dthread *dthread_new(struct service_worker *w, struct dthread_entry entry, int *ret_err)
{
    struct dthreads *all = dthreads_of(w);
    *ret_err = dthread_threads_enter(w);
    if (*ret_err == 0)
        *ret_err = slots_reserve(&all->slots, DTHREADS_MAX);
    struct stack *stack = *ret_err == 0 ? stack_get(&all->stacks, ret_err) : NULL;
    if (!stack)
        return NULL;
    struct dthread *d = make_dthread(w, stack);
    if (!d) {
        stack_put(&all->stacks, stack);
        *ret_err = -ENOMEM;
        return NULL;
    }
    d->entry = entry;
    return d;
}

void dthread_attach(struct dthread *d, struct duda_request *dr)
{
    assert(d->state == STATE_NEW && !d->dr);
    d->dr = dr;
    d->next_of_request = dr->dthreads;
    d->link_of_request = &dr->dthreads;
    if (dr->dthreads)
        dr->dthreads->link_of_request = &d->next_of_request;
    dr->dthreads = d;
    request_use(dr, FEATURE_DTHREADS);
}

void dthread_leave_request(struct duda_request *dr)
{
    while (dr->dthreads) {
        struct dthread *d = dr->dthreads;
        dr->dthreads = d->next_of_request;
        d->dr = NULL;
        d->next_of_request = NULL;
        d->link_of_request = NULL;
        if (!dr->is_complete)
            dthread_interrupt(d, -ECONNABORTED);
    }
}

void dthread_pass_on(struct service_worker *w)
{
    if (dthreads_of(w)->running)
        dthreads_of(w)->running->has_passed_on = true;
}

void dthread_start(struct dthread *d)
{
    add_ready(d, &dthreads_of(d->worker)->ready);
}

struct dthread *dthread_find(const struct service_worker *w, duda_dthread_t number)
{
    return slots_find(&dthreads_of(w)->slots, number);
}

/* ── waiting ── */

bool dthread_may_wait(const struct service_worker *w)
{
    return dthreads_of(w)->running && w->watch.depth == dthreads_of(w)->depth;
}

struct dthread *dthread_begin_wait(const char *call, int *ret_err)
{
    struct service_worker *w = current.worker;
    *ret_err = -EPERM;
    if (!w || !dthreads_of(w)->running) {
        api_error_log(w, call, "only a dthread can wait");
        return NULL;
    }
    if (!dthread_may_wait(w)) {
        api_error_log(w, call, "a function that the framework calls cannot wait, also not below a dthread");
        return NULL;
    }
    struct dthread *d = dthreads_of(w)->running;
    *ret_err = d->interrupt;
    assert(d->state == STATE_RUNNING);
    d->interrupt = 0;
    return *ret_err ? NULL : d;
}

/* Removes it from what could wake it. */
static void end_wait(struct dthread *d)
{
    struct descriptor *descriptor = d->fd >= 0 ? descriptor_find(d->worker, d->fd) : NULL;
    mk_timer_cancel(&d->timer);
    for (unsigned i = 0; i < d->n_waiters; i++)
        mk_list_del(&d->waiters[i].node);
    if (descriptor && descriptor->handler.data == d)
        descriptor_remove(descriptor);
    d->n_waiters = 0;
    d->fd = -1;
}

void dthread_wake(struct dthread *d, int result)
{
    assert(d->state == STATE_WAITING);
    end_wait(d);
    d->result = result;
    add_ready(d, &dthreads_of(d->worker)->ready);
}

void dthread_interrupt(struct dthread *d, int err)
{
    if (d->state == STATE_WAITING)
        dthread_wake(d, err);
    else
        d->interrupt = err;
}

int dthread_suspend_for(struct dthread *d, struct waiter *waiters, unsigned n, uint32_t timeout_ms)
{
    struct service_worker *w = d->worker;
    assert(d == dthreads_of(w)->running && timeout_ms);
    d->state = STATE_WAITING;
    d->waiters = waiters;
    d->n_waiters = n;
    if (timeout_ms != DUDA_FOREVER && !w->ended)
        mk_timer_arm(w->loop, &d->timer, timeout_ms);
    transfer_to(dthreads_of(w), NULL);
    return d->result;
}

int dthread_suspend(struct dthread *d, uint32_t timeout_ms)
{
    return dthread_suspend_for(d, NULL, 0, timeout_ms);
}

int dthread_suspend_turn(struct dthread *d)
{
    assert(d == dthreads_of(d->worker)->running);
    add_ready(d, &dthreads_of(d->worker)->later);
    d->result = 0;
    transfer_to(dthreads_of(d->worker), NULL);
    return d->result;
}

static int on_readable(int fd, void *data)
{
    (void)fd;
    dthread_wake(data, DUDA_EVENT_READ);
    return DUDA_EVENT_OWNED;
}

static int on_writable(int fd, void *data)
{
    (void)fd;
    dthread_wake(data, DUDA_EVENT_WRITE);
    return DUDA_EVENT_OWNED;
}

int dthread_suspend_for_fd(struct dthread *d, int fd, int mode, uint32_t timeout_ms)
{
    struct duda_event_handler handler = {
        .fd = fd,
        .mode = mode,
        .behavior = DUDA_EVENT_LEVEL_TRIGGERED,
        .on_read = mode & DUDA_EVENT_READ ? on_readable : NULL,
        .on_write = mode & DUDA_EVENT_WRITE ? on_writable : NULL,
        .data = d,
    };
    int err = d->worker->ended ? 0 : descriptor_add(d->worker, &handler);
    assert(d->fd < 0);
    if (err < 0)
        return err;
    d->fd = fd;
    return dthread_suspend(d, timeout_ms);
}

/* ── the old API ── */

/* The callback continues afterwards, so the watchdog gets its function again. */
static void resume_from_callback(struct dthread *d)
{
    struct service_worker *w = d->worker;
    struct current outer = service_worker_enter(w);
    uintptr_t function = atomic_load_explicit(&w->watch.function, memory_order_relaxed);
    run_from_main(d);
    atomic_store_explicit(&w->watch.function, function, memory_order_relaxed);
    atomic_store_explicit(&w->watch.is_dthread, false, memory_order_relaxed);
    service_worker_leave(w, outer);
}

void dthread_resume(struct dthread *d)
{
    struct dthreads *all = dthreads_of(d->worker);
    struct dthread *from = all->running;
    if (!d->begun)
        d->resumer = from ? from->number : 0;
    d->begun = true;
    if (from) {
        from->state = STATE_SUSPENDED;
        transfer_to(all, d);
    } else {
        resume_from_callback(d);
    }
}

void dthread_yield(struct dthread *d)
{
    assert(d == dthreads_of(d->worker)->running);
    d->state = STATE_SUSPENDED;
    transfer_to(dthreads_of(d->worker), NULL);
}

/* ── crashes ── */

static const struct dthread *find_running(void)
{
    return current.worker ? dthreads_of(current.worker)->running : NULL;
}

void dthread_describe_crash(struct line *l, uintptr_t address)
{
    const struct dthread *d = find_running();
    if (!d)
        return;
    line_add(l, ", in the dthread ");
    crash_add_address(l, dthread_get_function(d));
    if (!stack_has_guard(d->stack, address))
        return;
    line_add(l, ", whose stack of ");
    line_add_number(l, stack_kilobytes(), 10);
    line_add(l, " KB has overflowed");
}

struct mk_request *dthread_find_crash_request(void)
{
    const struct dthread *d = find_running();
    const struct duda_request *dr = d ? d->dr : current.request;
    return dr ? dr->req : NULL;
}

/* ── the end ── */

int dthread_init(struct service_worker *w)
{
    struct dthreads *all = dthreads_of(w);
    all->worker = w;
    mk_list_init(&all->all);
    mk_list_init(&all->ready);
    mk_list_init(&all->later);
    mk_list_init(&all->channels);
    mk_list_init(&all->in_thread);
    mk_task_init(&all->task, run_ready);
    stack_pool_init(&all->stacks);
    return 0;
}

void dthread_stop(struct service_worker *w)
{
    mk_task_cancel(&dthreads_of(w)->task);
    MK_LIST_EACH_ITEM(&dthreads_of(w)->all, struct dthread, node, d) {
        mk_timer_cancel(&d->timer);
        if (d->fd >= 0)
            dthread_wake(d, -ECANCELED);
    }
}

/* Frees one that does not continue; if it has begun, its stack runs once more, to be left. Returns whether it has. */
static bool discard_dthread(struct dthread *d)
{
    bool begun = d->begun;
    mk_list_del(&d->queue);
    end_wait(d);
    wake_joiners(d);
    d->dropped = true;
    if (begun)
        run_from_main(d);
    else
        free_dthread(d);
    return begun;
}

void dthread_abandon(struct dthread *d)
{
    assert(d->is_held && d != dthreads_of(d->worker)->running);
    mk_list_del(&d->queue);
    end_wait(d);
    wake_joiners(d);
    unlink_dthread(d);
}

void dthread_free_abandoned(struct dthread *d)
{
    struct stack_pool pool;
    clear_running(d);
    context_release(&d->context);
    stack_pool_init(&pool);
    stack_put(&pool, d->stack);
    stack_pool_release(&pool);
    heap_free(d, sizeof(*d));
}

/* Runs those that are ready. Returns how many were abandoned. */
static unsigned run_all(struct service_worker *w)
{
    struct dthreads *all = dthreads_of(w);
    unsigned n = 0;
    mk_list_join(&all->ready, &all->later);
    while (!mk_list_empty(&all->ready)) {
        struct dthread *d = take_ready(all);
        bool ignores = d->cancelled > CANCELS_MAX;
        n += ignores;
        struct current outer = current_enter(w->service, w);
        if (ignores)
            discard_dthread(d);
        else
            run_from_main(d);
        current_leave(outer);
    }
    return n;
}

/* Tells those that wait or yield that the service ends. Returns how many were abandoned: those of the old API. */
static unsigned cancel_all(struct service_worker *w)
{
    unsigned dropped = 0;
    MK_LIST_EACH_ITEM(&dthreads_of(w)->all, struct dthread, node, d) {
        if (d->is_held)
            continue;
        d->cancelled++;
        if (d->state == STATE_WAITING)
            dthread_wake(d, -ECANCELED);
        else if (d->state == STATE_READY)
            d->result = -ECANCELED;
        else
            dropped += discard_dthread(d);
    }
    return dropped;
}

static void report_dropped(const struct service_worker *w, unsigned n)
{
    if (n)
        message_log_of(w->service, MK_LOG_WARN,
                       "%u dthreads had not ended although the service has: what they hold is lost", n);
}

void dthread_report_end(struct service_worker *w)
{
    assert(!dthreads_of(w)->running && w->ended);
    unsigned dropped = run_all(w);
    dropped += cancel_all(w);
    dropped += run_all(w);
    report_dropped(w, dropped);
}

void dthread_cancel_all(struct service_worker *w)
{
    struct dthreads *all = dthreads_of(w);
    unsigned dropped = 0;
    assert(!all->running && w->ended);
    while (!mk_list_empty(&all->all)) {
        dropped += run_all(w);
        dropped += cancel_all(w);
    }
    report_dropped(w, dropped);
    channel_free_all(w);
    stack_pool_release(&all->stacks);
    slots_release(&all->slots);
    dthread_threads_leave(w);
}
