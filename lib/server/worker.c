// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a worker (server/worker.h): opened and closed by the process context, run by its own thread.
 */
#include "server/worker.h"

#include "server/roster.h"

#include "base/log.h"
#include "http/conn.h"
#ifndef MK_LEAN
#include "http/h2_core.h"
#include "net/names.h"
#include "server/cpus.h"
#include "server/fair.h"
#endif

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, IDLE_CLOSED_AT_ONCE = 16, MEMORY_RESERVE = 8 };

/* ── connections ── */

static bool is_empty(const struct mk__worker *w)
{
#ifndef MK_LEAN
    if (mk__feed_load(&w->feed) > w->http.late)
        return false; /* others are on their way */
#endif
    return mk__conn_drained(&w->http);
}

void mk__worker_closed(struct mk__worker *w)
{
    mk__capacity_leave(w->capacity);
#ifndef MK_LEAN
    atomic_fetch_add_explicit(&w->feed.gone, 1, memory_order_relaxed);
    if (w->feed.starved)
        w->feed.starved = false;
#endif
    if ((w->http.draining || w->http.leaving) && is_empty(w))
        mk__loop_stop(&w->loop);
}

/* The last part of its memory is for those who have a request. */
static bool is_short_of_memory(const struct mk__worker *w)
{
    return w->account.bytes > w->account.bytes_max - w->account.bytes_max / MEMORY_RESERVE;
}

/* By the generation that the worker has; NULL: that has no such transport any more. */
static const struct mk_transport *transport_of(const struct mk__worker *w, const struct mk__listening *listening)
{
    const struct mk_generation *g = w->now->generation;
#ifdef MK_LEAN
    (void)listening;
    return g->transport;
#else
    struct mk__way way;
    return mk__generation_way(g, listening, &way) == 0 ? way.transport : NULL;
#endif
}

/* A connection that cannot be served: its listener is gone, and the transport too. */
static void reject_fd(struct mk__worker *w, int fd)
{
    close(fd);
    mk__worker_closed(w);
}

static int serve(struct mk__worker *w, const struct mk__listening *listening, int fd)
{
    struct mk_io io = {.transport = transport_of(w, listening), .listening = listening, .fd = fd};
#ifndef MK_LEAN
    if (w->http.h2)
        w->http.h2->give_up(&w->http, IDLE_CLOSED_AT_ONCE);
#endif
    if (!io.transport) {
        reject_fd(w, fd);
        return 0;
    }
    bool is_short = is_short_of_memory(w), resists = mk__capacity_resists(w->capacity);
    if (is_short && !resists) {
        mk__capacity_refuse(w->capacity, listening, fd);
        mk__worker_closed(w);
        return 0;
    }
    if (is_short)
        mk__capacity_made_room(w->capacity, mk__conn_close_idle(&w->http, IDLE_CLOSED_AT_ONCE));
    int err = mk__conn_open(&w->http, &io, w->now);
    if (err == -ENOMEM && mk__log_due(&w->complained_ms, mk_loop_now_ms(&w->loop)))
        mk_log_warn("worker %u: out of memory (MemoryLimit), connections are being closed", w->index);
    return resists ? err : 0;
}

static int take_accepted(struct mk__acceptor *a, int fd)
{
    struct mk__worker *w = a->ctx;
#ifndef MK_LEAN
    atomic_fetch_sub_explicit(&w->feed.gone, 1, memory_order_relaxed);
#endif
    return serve(w, a->listening, fd);
}

/* Out of descriptors or memory: those of connections that nobody uses right now are the first to give. */
static bool make_room(struct mk__acceptor *a)
{
    struct mk__worker *w = a->ctx;
    return mk__capacity_made_room(w->capacity, mk__conn_close_idle(&w->http, IDLE_CLOSED_AT_ONCE)) > 0;
}

static const struct mk__acceptor_calls acceptor_calls = {take_accepted, make_room};

#ifndef MK_LEAN
/* A connection that the process context has put into our queue. */
static void on_arrival(struct mk__guests *guests, int fd, uint32_t sequence, uint32_t events)
{
    struct mk__worker *w = MK_OWNER(guests, struct mk__worker, guests);
    const struct mk__listening *listening = mk__arrivals_find(w->arrivals, fd, sequence);
    if (!listening)
        return;
    int err = w->ended ? -ESHUTDOWN : mk__guests_admit(guests, fd, sequence, events);
    if (err == 0) {
        err = serve(w, listening, fd);
        guests->events = 0; /* perhaps it was closed before it was taken */
    } else {
        close(fd);
        mk__worker_closed(w);
    }
    if (err == -ENOMEM)
        w->feed.starved = true;
}

static void drain(struct mk__worker *w);
static void leave(struct mk__worker *w);

static void on_part(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, feed.part);
    w->feed.on = false;
    if (w->leaves)
        leave(w);
    else
        drain(w);
}

static void open_feed(struct mk__worker *w, bool on)
{
    w->ended = false;
    w->feed = (struct mk__feed){.on = on, .part.fn = on_part};
    mk__guests_init(&w->guests, &w->account, on_arrival);
    w->loop.guests = &w->guests;
}

/* What was given to it and it has not seen yet: each has one event. Nobody may give any more. */
static void close_feed(struct mk__worker *w)
{
    w->ended = true;
    while (mk__feed_load(&w->feed) && mk__loop_turn(&w->loop) == 0)
        ;
}
#endif

/* ── the end ── */

/* Is it one for those who want to know how the drain goes? A small build has none. */
static bool lasts(const struct mk__worker *w, const struct mk__acceptor *a)
{
#ifndef MK_LEAN
    const struct mk__listener *listener = mk__generation_listener(w->now->generation, a->listening);
    return listener && listener->lasts;
#else
    (void)w, (void)a;
    return false;
#endif
}

static void close_acceptors(struct mk__worker *w, bool all)
{
    for (unsigned i = 0; i < w->acceptors.n; i++) {
        struct mk__acceptor *a = w->acceptors.items[i];
        if (!lasts(w, a))
            mk__acceptor_close(a);
        else if (!all)
            w->http.lasting = true;
        else if (a->listening->shared)
            mk__acceptor_leave(a); /* another worker may still drain, and answer */
        else
            mk__acceptor_close(a);
    }
}

static void stop(struct mk__worker *w)
{
    close_acceptors(w, true);
    w->http.draining = true;
    mk__conn_abort_all(&w->http);
    mk__loop_stop(&w->loop);
}

static void on_drain_timer(struct mk_timer *timer)
{
    struct mk__worker *w = MK_OWNER(timer, struct mk__worker, drain_timer);
#ifndef MK_LEAN
    if (w->http.leaving && !w->http.draining) {
        drain(w);
        return;
    }
#endif
    mk_log_info("worker %u: the drain time is over, cutting what is left", w->index);
    stop(w);
}

static void drain(struct mk__worker *w)
{
    close_acceptors(w, false);
    mk__conn_drain(&w->http);
    if (is_empty(w))
        mk__loop_stop(&w->loop);
    else
        mk_timer_arm(&w->loop, &w->drain_timer, w->now->generation->settings->drain_timeout_ms);
}

static void on_delay_timer(struct mk_timer *timer)
{
    drain(MK_OWNER(timer, struct mk__worker, delay_timer));
}

#ifndef MK_LEAN
/* Connections end with their next response or when they have been idle for long enough. */
static void leave(struct mk__worker *w)
{
    close_acceptors(w, true);
    mk__conn_leave(&w->http);
    if (is_empty(w))
        mk__loop_stop(&w->loop);
    else
        mk_timer_arm(&w->loop, &w->drain_timer, w->now->generation->settings->drain_timeout_ms);
}
#endif

/* StopDelay: who asks is told that we are going, and has time to look elsewhere. */
static void on_drain(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, drain_message);
    uint32_t delay_ms = w->now->generation->settings->stop_delay_ms;
    w->http.stopping = !w->leaves;
#ifndef MK_LEAN
    if (w->feed.on)
        return; /* whoever feeds it waits for the delay, and then parts with it */
    if (w->leaves) {
        leave(w);
        return;
    }
#endif
    if (delay_ms)
        mk_timer_arm(&w->loop, &w->delay_timer, delay_ms);
    else
        drain(w);
}

#ifndef MK_LEAN
static void on_hurry(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, hurry_message);
    if (!w->http.draining)
        drain(w);
}
#endif

static void on_stop(struct mk_message *message)
{
    stop(MK_OWNER(message, struct mk__worker, stop_message));
}

void mk__worker_drain(struct mk__worker *w)
{
    if (w->running && !atomic_exchange(&w->drain_sent, true))
        mk_post(&w->loop, &w->drain_message);
}

#ifndef MK_LEAN
void mk__worker_hurry(struct mk__worker *w)
{
    mk_post(&w->loop, &w->hurry_message);
}

void mk__worker_leave(struct mk__worker *w)
{
    w->leaves = true;
    mk__worker_drain(w);
}
#endif

void mk__worker_stop(struct mk__worker *w)
{
    if (w->running && !atomic_exchange(&w->stop_sent, true))
        mk_post(&w->loop, &w->stop_message);
}

/* ── opening and closing ── */

int mk__worker_accept(void *worker, struct mk__acceptor *a)
{
    struct mk__worker *w = worker;
    a->capacity = w->capacity;
    return mk__acceptor_open(a, &w->loop, a->event.fd, a->listening->shared, &acceptor_calls, w);
}

static int open_acceptors(struct mk__worker *w, const struct mk__sockets *sockets, unsigned workers)
{
    int err = workers ? mk__acceptors_make(&w->acceptors, sockets, w->index, workers) : 0;
    return err == 0 ? mk__acceptors_open(&w->acceptors, mk__worker_accept, w) : err;
}

static void init(struct mk__worker *w, unsigned index)
{
    w->index = index;
    w->running = false;
    w->complained_ms = 0;
    w->acceptors = (struct mk__acceptors){0};
    w->older = NULL;
    w->drain_sent = w->stop_sent = w->leaves = false;
    w->on_end = NULL;
    w->start_err = 0;
    if (MK__PLUGIN_STARTS)
        sem_init(&w->started, 0, 0);
#ifndef MK_LEAN
    sem_init(&w->go, 0, 0);
#endif
    w->drain_message.fn = on_drain;
#ifndef MK_LEAN
    w->hurry_message.fn = on_hurry;
#endif
    w->stop_message.fn = on_stop;
    mk_timer_init(&w->drain_timer, on_drain_timer);
    mk_timer_init(&w->delay_timer, on_delay_timer);
}

/* Whatever is held of them: nothing is under way any more, and the plugins' worker_stop waits for who is not told. */
static void let_go(struct mk__worker *w)
{
    while (w->older) {
        struct mk_worker *older = w->older;
        w->older = older->next;
        mk__pin_free(older);
    }
    mk__pin_free(w->now);
    w->now = NULL;
}

int mk__worker_open(struct mk__worker *w, struct mk_generation *g, unsigned index, unsigned workers,
                    struct mk__jobs *jobs, const struct mk__sockets *sockets)
{
    init(w, index);
    w->account = (struct mk_account){.bytes_max = g->settings->memory_bytes_max};
    w->now = mk__pin_new(w, g);
    int err = w->now ? mk__loop_open(&w->loop, &mk__poller_epoll, &mk__clock_system, jobs) : -ENOMEM;
    if (err == 0) {
#ifndef MK_LEAN
        open_feed(w, workers == 0);
#endif
        err = open_acceptors(w, sockets, workers);
        if (err == 0)
            err = mk__http_open(&w->http, &w->loop, &g->http, &mk__hooks_app, w, &w->account);
        if (err == 0 && MK__PLUGIN_STARTS) {
            err = mk__tickets_open(&w->tickets, &w->loop, &w->account);
            if (err < 0)
                mk__http_close(&w->http);
        }
        if (err < 0)
            mk__loop_close(&w->loop);
    }
    if (err < 0) {
        mk__acceptors_free(&w->acceptors);
        if (w->now)
            let_go(w);
    }
    return err;
}

void mk__worker_close(struct mk__worker *w)
{
#ifndef MK_LEAN
    close_feed(w);
    mk__names_close(&w->loop);
    mk__guests_release(&w->guests);
#endif
    if (MK__PLUGIN_STARTS)
        mk__tickets_close(&w->tickets);
    mk__loop_close(&w->loop); /* the last messages may still ask for an end that has come already */
    mk__http_close(&w->http);
    mk__acceptors_free(&w->acceptors);
    let_go(w);
    if (MK__PLUGIN_STARTS)
        mk__tickets_release(&w->tickets);
    if (MK__PLUGIN_STARTS)
        sem_destroy(&w->started);
#ifndef MK_LEAN
    sem_destroy(&w->go);
#endif
}

/* ── the thread ── */

static void *run(void *ctx)
{
    struct mk__worker *w = ctx;
    char name[16];
    snprintf(name, sizeof(name), "monkey: w%u", w->index % 1000);
    prctl(PR_SET_NAME, name);
    int err = 0;
    if (MK__PLUGIN_STARTS) {
        err = w->start_err = mk__pin_start(w->now);
        sem_post(&w->started);
    }
#ifndef MK_LEAN
    while (err == 0 && sem_wait(&w->go) < 0)
        ;
#endif
    if (err == 0)
        err = mk__loop_run(&w->loop);
    if (err < 0)
        mk_log_error("worker %u: %s", w->index, strerror(-err));
#ifndef MK_LEAN
    else
        stop(w); /* what lasted as long as the drain, and who came during it */
#endif
    if (w->on_end)
        w->on_end(w);
    return NULL;
}

int mk__worker_start(struct mk__worker *w)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals, SIGPIPE too, are not a worker's business */
    w->running = true;
    int err = pthread_create(&w->thread, &attr, run, w);
    if (err)
        w->running = false;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    while (MK__PLUGIN_STARTS && err == 0 && sem_wait(&w->started) < 0)
        ;
    return err ? -err : w->start_err;
}

#ifndef MK_LEAN
void mk__worker_go(struct mk__worker *w)
{
    sem_post(&w->go);
}

void mk__worker_place(struct mk__worker *w, bool bound)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return; /* more processors than fit: all of them, then */
    if (bound)
        mk__cpus_choose(&set, w->index);
    int err = pthread_setaffinity_np(w->thread, sizeof(set), &set);
    if (err)
        mk_log_warn("worker %u: cannot choose its processor: %s", w->index, strerror(err));
}
#endif

void mk__worker_join(struct mk__worker *w)
{
    if (!w->running)
        return;
#ifndef MK_LEAN
    mk__worker_go(w); /* perhaps it was stopped before */
#endif
    pthread_join(w->thread, NULL);
}
