// SPDX-License-Identifier: Apache-2.0
/*
 * Opens, runs, drains and closes a worker's thread (server/worker/thread.h).
 */
#include "server/worker/thread.h"

#include "base/log.h"
#include "http/conn.h"
#include "http/http.h"
#include "net/resolver.h"
#include "server/counts.h"
#include "server/worker/cpus.h"

#include <monkey/base/thread_start.h>
#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * STACK_BYTES: handlers of plugins and services have buffers of some 100 KB on it. Pages that are not used cost
 * nothing; 2 MB and more could become huge pages.
 */
enum { STACK_BYTES = 1024 * 1024, EVICT_BATCH = 16, MEMORY_RESERVE = 8 };

/* ── connections ── */

static bool is_drained(const struct mk__thread *t)
{
    if (mk__receiver_load(&t->receiver) > t->http.conns_in_drain)
        return false; /* some were handed off, and not taken yet */
    return !t->n_works && mk__conn_all_drained(&t->http);
}

static void end_if_drained(struct mk__thread *t)
{
    if (mk__context_ends_conns(&t->http) && is_drained(t))
        mk__loop_stop(&t->loop);
}

void mk__thread_conn_freed(struct mk__thread *t)
{
    mk__limits_remove_conn(t->limits);
    mk__receiver_count_closed(&t->receiver);
    mk__heap_trim_note(&t->heap_trim);
    end_if_drained(t);
}

void mk_worker_begin_work(struct mk_worker *worker)
{
    MK_CONTAINER_OF(worker->loop, struct mk__thread, loop)->n_works++;
}

void mk_worker_end_work(struct mk_worker *worker)
{
    struct mk__thread *t = MK_CONTAINER_OF(worker->loop, struct mk__thread, loop);
    assert(t->n_works > 0);
    t->n_works--;
    end_if_drained(t);
}

/* The last part of MemoryLimit is reserved for connections with a request. */
static bool is_short_of_memory(const struct mk__thread *t)
{
    return t->account.bytes > t->account.bytes_max - t->account.bytes_max / MEMORY_RESERVE;
}

/* Returns the listener's transport; NULL: the generation in use has it no more. */
static const struct mk_transport *find_transport(const struct mk__thread *t, const struct mk__listener *listener)
{
    const struct mk_generation *g = t->worker->generation;
    struct mk__listen_mode mode;
    return mk__generation_listen_mode(g, listener, &mode) == 0 ? mode.transport : NULL;
}

/* Closes a connection that cannot be served: its listener and its transport were removed by a reload. */
static void reject_fd(struct mk__thread *t, int fd)
{
    assert(fd >= 0);
    close(fd);
    mk__thread_conn_freed(t);
}

/* Descriptors or memory ran out: closes idle connections first. */
static unsigned evict_idle(struct mk__thread *t, unsigned n)
{
    return mk__limits_count_evicted(t->limits, mk__conn_close_idle(&t->http, n));
}

/* Once in a turn at most: plugins close descriptors that they do not need. */
static void ask_for_descriptors(struct mk__thread *t)
{
    const struct mk_generation *g = t->worker->generation;
    if (t->fds_asked_turn == t->loop.turns)
        return;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        if (!MK_PLUGIN_HOOK(g->plugins[i], process, low_on_descriptors))
            continue;
        g->plugins[i]->process->low_on_descriptors(g->plugin_states[i]);
        t->fds_asked_turn = t->loop.turns;
    }
}

void mk_worker_note_descriptor(struct mk_worker *worker, int fd)
{
    struct mk__thread *t = MK_CONTAINER_OF(worker->loop, struct mk__thread, loop);
    if (fd < 0 || mk__limits_is_low_on_fds(t->limits, fd))
        ask_for_descriptors(t);
}

/* Plugins free memory that they do not need, before idle connections are closed. */
static void ask_for_memory(struct mk__thread *t)
{
    const struct mk_generation *g = t->worker->generation;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], process, low_on_memory))
            g->plugins[i]->process->low_on_memory(t->worker, g->plugin_states[i]);
}

/* Takes the descriptor. Returns 0, or -ENOMEM where idle connections should be evicted. */
static int serve_conn(struct mk__thread *t, const struct mk__listener *listener, const struct mk__accepted *accepted)
{
    int fd = accepted->fd;
    assert(fd >= 0 && t->worker);
    struct mk_io io = {.transport = find_transport(t, listener), .listener = listener, .fd = fd};
    if (mk__context_is_low_on_memory(&t->http))
        ask_for_memory(t);
    mk__conn_save_memory(&t->http, EVICT_BATCH);
    if (mk__limits_is_low_on_fds(t->limits, fd))
        ask_for_descriptors(t);
    if (!io.transport) {
        reject_fd(t, fd);
        return 0;
    }
    bool is_short = is_short_of_memory(t), evicts = mk__limits_evicts(t->limits);
    if (is_short && !evicts) {
        mk__limits_reject(t->limits, listener, fd);
        mk__thread_conn_freed(t);
        return 0;
    }
    if (is_short)
        evict_idle(t, EVICT_BATCH);
    int err = mk__conn_open(&t->http, &io, &accepted->peer, t->worker);
    if (err == -ENOMEM && mk__log_is_due(&t->warned_ms, mk_loop_now_ms(&t->loop)))
        mk_log_warn("worker %u: out of memory (MemoryLimit), connections are being closed", t->index);
    return evicts ? err : 0;
}

static int serve_accepted(struct mk__acceptor *a, const struct mk__accepted *accepted)
{
    struct mk__thread *t = a->ctx;
    mk__receiver_count_accepted(&t->receiver);
    int err = serve_conn(t, a->listener, accepted);
    return err == 0 && t->fds_asked_turn == t->loop.turns ? MK_AGAIN : err;
}

static bool evict_for_acceptor(struct mk__acceptor *a)
{
    return evict_idle(a->ctx, EVICT_BATCH) > 0;
}

static void free_fds(struct mk__acceptor *a)
{
    ask_for_descriptors(a->ctx);
}

static const struct mk__acceptor_callbacks acceptor_callbacks = {serve_accepted, evict_for_acceptor, free_fds};

/* ── draining and stopping ── */

/* Returns whether health checks are answered at this listener until the drain ends. */
static bool accepts_in_drain(const struct mk__thread *t, const struct mk__acceptor *a)
{
    const struct mk__listen_conf *conf = mk__generation_listen_conf(t->worker->generation, a->listener);
    return conf && conf->accept_in_drain;
}

static void close_acceptors(struct mk__thread *t, bool all)
{
    for (unsigned i = 0; i < t->acceptors.n; i++) {
        struct mk__acceptor *a = t->acceptors.items[i];
        if (!accepts_in_drain(t, a))
            mk__acceptor_close(a);
        else if (!all)
            t->http.accept_in_drain = true;
        else if (a->listener->shared)
            mk__acceptor_stop(a); /* another worker may still drain, and accept there */
        else
            mk__acceptor_close(a);
    }
}

static void stop_thread(struct mk__thread *t)
{
    t->mode = MK__THREAD_STOP;
    close_acceptors(t, true);
    mk__context_advance_shutdown(&t->http, MK__SHUTDOWN_DRAINING);
    mk__conn_abort_all(&t->http);
    mk__loop_stop(&t->loop);
}

/* Ends the thread if no connection is left, else at ShutdownTimeout. */
static void wait_for_drain(struct mk__thread *t)
{
    if (is_drained(t)) {
        mk__loop_stop(&t->loop);
        return;
    }
    mk_timer_arm(&t->loop, &t->drain_timer, t->worker->generation->settings->shutdown_timeout_ms);
    mk__worker_retire(t->worker);
}

static void drain_thread(struct mk__thread *t)
{
    close_acceptors(t, false);
    mk__conn_drain_all(&t->http);
    wait_for_drain(t);
}

static void on_drain_timer(struct mk_timer *timer)
{
    struct mk__thread *t = MK_CONTAINER_OF(timer, struct mk__thread, drain_timer);
    if (t->http.shutdown == MK__SHUTDOWN_RETIRING) {
        drain_thread(t);
        return;
    }
    mk_log_info("worker %u: ShutdownTimeout is over, closing the connections that are left", t->index);
    stop_thread(t);
}

static void on_delay_timer(struct mk_timer *timer)
{
    drain_thread(MK_CONTAINER_OF(timer, struct mk__thread, delay_timer));
}

/* Connections end with their next response or with KeepAliveTimeout. */
static void retire_thread(struct mk__thread *t)
{
    close_acceptors(t, true);
    mk__conn_retire_all(&t->http);
    wait_for_drain(t);
}

static bool is_retiring(const struct mk__thread *t)
{
    return t->mode == MK__THREAD_RETIRE;
}

static void begin_drain(struct mk__thread *t)
{
    if (is_retiring(t))
        retire_thread(t);
    else
        drain_thread(t);
}

/* During ShutdownDelay health checks fail, so that a load balancer can choose another server. */
static void on_drain(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, drain_message);
    uint32_t delay_ms = t->worker->generation->settings->shutdown_delay_ms;
    if (!is_retiring(t))
        mk__context_advance_shutdown(&t->http, MK__SHUTDOWN_ANNOUNCED);
    if (t->receiver.enabled)
        return; /* the control thread waits for the delay, and then sends end_message */
    if (delay_ms && !is_retiring(t))
        mk_timer_arm(&t->loop, &t->delay_timer, delay_ms);
    else
        begin_drain(t);
}

static void on_drain_now(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, drain_now_message);
    if (t->http.shutdown < MK__SHUTDOWN_DRAINING)
        drain_thread(t);
}

static void on_stop(struct mk_message *message)
{
    stop_thread(MK_CONTAINER_OF(message, struct mk__thread, stop_message));
}

/* Only the first call to drain or retire counts, and none after mk__thread_stop(). */
static void ask_to_drain(struct mk__thread *t, enum mk__thread_mode mode)
{
    uint8_t before = MK__THREAD_SERVE;
    if (t->running && atomic_compare_exchange_strong(&t->mode, &before, (uint8_t)mode))
        mk_post(&t->loop, &t->drain_message);
}

void mk__thread_drain(struct mk__thread *t)
{
    ask_to_drain(t, MK__THREAD_DRAIN);
}

void mk__thread_drain_now(struct mk__thread *t)
{
    mk_post(&t->loop, &t->drain_now_message);
}

void mk__thread_retire(struct mk__thread *t)
{
    ask_to_drain(t, MK__THREAD_RETIRE);
}

void mk__thread_stop(struct mk__thread *t)
{
    if (t->running && atomic_exchange(&t->mode, MK__THREAD_STOP) != MK__THREAD_STOP)
        mk_post(&t->loop, &t->stop_message);
}

/* ── connections from the control thread ── */

static int serve_handoff(void *ctx, const struct mk__listener *listener, const struct mk__accepted *accepted)
{
    struct mk__thread *t = ctx;
    if (t->mode != MK__THREAD_STOP)
        return serve_conn(t, listener, accepted);
    reject_fd(t, accepted->fd);
    return 0;
}

static unsigned evict_for_balancer(void *ctx, unsigned n)
{
    return evict_idle(ctx, n);
}

static void on_balancer_end(void *ctx)
{
    begin_drain(ctx);
}

static const struct mk__receiver_callbacks receiver_callbacks = {serve_handoff, evict_for_balancer, on_balancer_end};

/* ── opening and closing ── */

int mk__thread_open_acceptor(void *thread, struct mk__acceptor *a)
{
    struct mk__thread *t = thread;
    a->limits = t->limits;
    return mk__acceptor_open(a, &t->loop, a->event.fd, a->listener->shared, &acceptor_callbacks, t);
}

static int open_acceptors(struct mk__thread *t, const struct mk__listeners *listeners, unsigned workers)
{
    int err = workers ? mk__acceptors_make(&t->acceptors, listeners, t->index, workers) : 0;
    return err == 0 ? mk__acceptors_open(&t->acceptors, mk__thread_open_acceptor, t) : err;
}

static void init_thread(struct mk__thread *t, unsigned index)
{
    t->index = index;
    t->running = false;
    t->mode = MK__THREAD_SERVE;
    t->n_works = 0;
    t->warned_ms = 0;
    t->fds_asked_turn = UINT64_MAX;
    t->acceptors = (struct mk__acceptors){0};
    t->replaced = NULL;
    t->on_end = NULL;
    t->start_err = 0;
    sem_init(&t->started, 0, 0);
    sem_init(&t->may_serve, 0, 0);
    t->drain_message.fn = on_drain;
    t->drain_now_message.fn = on_drain_now;
    t->stop_message.fn = on_stop;
    mk_timer_init(&t->drain_timer, on_drain_timer);
    mk_timer_init(&t->delay_timer, on_delay_timer);
}

struct mk_worker *mk__thread_new_worker(struct mk__thread *t, struct mk_generation *g)
{
    struct mk_worker *worker = mk__worker_new(g);
    if (!worker)
        return NULL;
    worker->index = t->index;
    worker->loop = &t->loop;
    worker->account = &t->account;
    worker->request_refs = &t->request_refs;
    worker->cells = &t->http.cells;
    worker->connections = &t->http.connections.used;
    worker->on_unused = mk__worker_reload_forget;
    return worker;
}

/*
 * Frees the workers of all generations, even if references are left: no exchange is left, and the plugins' worker_stop
 * waits for threads that use their state.
 */
static void free_workers(struct mk__thread *t)
{
    while (t->replaced) {
        struct mk_worker *older = t->replaced;
        t->replaced = older->next;
        mk__worker_free(older);
    }
    mk__worker_free(t->worker);
    t->worker = NULL;
}

int mk__thread_open(struct mk__thread *t, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk_thread_pool *jobs, const struct mk__listeners *listeners)
{
    assert(t->limits && (index < workers || workers == 0));
    init_thread(t, index);
    mk__heap_trim_init(&t->heap_trim, g->in_program ? NULL : &t->loop);
    t->account = (struct mk_account){.bytes_max = g->settings->memory_bytes_max};
    t->worker = mk__thread_new_worker(t, g);
    int err = t->worker ? mk__loop_open(&t->loop, &mk__poller_epoll, &mk__clock_system, jobs) : -ENOMEM;
    if (err == 0) {
        mk__receiver_init(&t->receiver, &t->loop, workers == 0, &receiver_callbacks, t);
        err = open_acceptors(t, listeners, workers);
        if (err == 0)
            err = mk__http_init(&t->http, &t->loop, &g->http, &mk__request_hooks_app, t, &t->account);
        if (err == 0) {
            err = mk__request_ref_open(&t->request_refs, &t->loop, &t->account);
            if (err < 0)
                mk__http_release(&t->http);
        }
        if (err == 0)
            mk__counts_open_thread(&t->http);
        if (err < 0)
            mk__loop_close(&t->loop);
    }
    if (err < 0) {
        mk__acceptors_free(&t->acceptors);
        if (t->worker)
            free_workers(t);
    }
    return err;
}

void mk__thread_close(struct mk__thread *t)
{
    t->mode = MK__THREAD_STOP;
    mk__resolver_close(&t->loop);
    mk__request_ref_close(&t->request_refs);
    mk__loop_close(&t->loop); /* the last messages may still be drain and stop */
    assert(mk_list_empty(&t->http.conns));
    mk__http_release(&t->http);
    mk__acceptors_free(&t->acceptors);
    free_workers(t);
    mk__counts_close_thread(&t->http);
    mk__request_ref_release(&t->request_refs);
    mk__receiver_release(&t->receiver);
    sem_destroy(&t->started);
    sem_destroy(&t->may_serve);
}

/* ── the thread ── */

void mk__thread_end(struct mk__thread *t)
{
    stop_thread(t);
}

static void *run_thread(void *ctx)
{
    struct mk__thread *t = ctx;
    char name[16];
    snprintf(name, sizeof(name), "monkey: w%u", t->index % 1000);
    prctl(PR_SET_NAME, name);
    int err = t->start_err = mk__worker_start(t->worker);
    sem_post(&t->started);
    while (err == 0 && sem_wait(&t->may_serve) < 0)
        ;
    if (err == 0 && t->mode != MK__THREAD_STOP)
        mk__worker_serve(t->worker);
    if (err == 0)
        err = mk__loop_run(&t->loop);
    if (err < 0)
        mk_log_error("worker %u: %s", t->index, strerror(-err));
    else
        mk__thread_end(t);
    if (t->on_end)
        t->on_end(t);
    return NULL;
}

int mk__thread_start(struct mk__thread *t)
{
    assert(t->worker && !t->running);
    t->running = true;
    int err = mk_thread_start(&t->thread, STACK_BYTES, run_thread, t);
    if (err < 0)
        t->running = false;
    while (err == 0 && sem_wait(&t->started) < 0)
        ;
    return err < 0 ? err : t->start_err;
}

void mk__thread_start_serving(struct mk__thread *t)
{
    sem_post(&t->may_serve);
}

void mk__thread_set_affinity(struct mk__thread *t, bool bound)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return; /* more processors than the set holds: the thread may use all */
    if (bound)
        mk__cpus_pick(&set, t->index);
    int err = pthread_setaffinity_np(t->thread, sizeof(set), &set);
    if (err)
        mk_log_warn("worker %u: cannot choose its processor: %s", t->index, strerror(err));
}

void mk__thread_join(struct mk__thread *t)
{
    if (!t->running)
        return;
    mk__thread_start_serving(t); /* it may still wait, if the start failed */
    pthread_join(t->thread, NULL);
}
