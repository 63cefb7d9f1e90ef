// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a worker (server/worker.h): opened and closed by the process context, run by its own thread.
 */
#include "server/worker.h"

#include "base/log.h"
#include "http/h1.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, IDLE_CLOSED_AT_ONCE = 16, MEMORY_RESERVE = 8 };

static int serve(const struct mk__acceptor *a, int fd)
{
    struct mk__worker *w = a->ctx;
    struct mk_io io = {.transport = w->generation->transport, .fd = fd};
#ifndef MK_LEAN
    io.listener = (unsigned)(a - w->acceptors);
#endif
    if (w->account.bytes > w->account.bytes_max - w->account.bytes_max / MEMORY_RESERVE)
        mk__h1_close_idle(&w->http, IDLE_CLOSED_AT_ONCE); /* the last part is for those who have a request */
    int err = mk__h1_open(&w->http, &io);
    if (err == -ENOMEM && mk__log_due(&w->complained_ms, mk_loop_now_ms(&w->loop)))
        mk_log_warn("worker %u: out of memory (MemoryLimit), connections are being closed", w->index);
    return err;
}

/* Out of descriptors or memory: those of connections that nobody uses right now are the first to give. */
static bool make_room(void *ctx)
{
    struct mk__worker *w = ctx;
    return mk__h1_close_idle(&w->http, IDLE_CLOSED_AT_ONCE) > 0;
}

/* ── the end ── */

static void close_acceptors(struct mk__worker *w)
{
    for (unsigned i = 0; i < w->n_acceptors; i++)
        mk__acceptor_close(&w->acceptors[i]);
}

static void stop(struct mk__worker *w)
{
    close_acceptors(w);
    w->http.draining = true;
    mk__h1_abort_all(&w->http);
    mk__loop_stop(&w->loop);
}

static void on_drain_timer(struct mk_timer *timer)
{
    struct mk__worker *w = MK_OWNER(timer, struct mk__worker, drain_timer);
    mk_log_info("worker %u: the drain time is over, cutting what is left", w->index);
    stop(w);
}

static void drain(struct mk__worker *w)
{
    close_acceptors(w);
    mk__h1_drain(&w->http);
    if (mk_list_empty(&w->http.live))
        mk__loop_stop(&w->loop);
    else
        mk_timer_arm(&w->loop, &w->drain_timer, w->generation->settings->drain_timeout_ms);
}

#ifndef MK_LEAN
static void on_delay_timer(struct mk_timer *timer)
{
    drain(MK_OWNER(timer, struct mk__worker, delay_timer));
}
#endif

/* StopDelay: who asks is told that we are going, and has time to look elsewhere. */
static void on_drain(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, drain_message);
#ifndef MK_LEAN
    uint32_t delay_ms = w->generation->settings->stop_delay_ms;
    w->http.stopping = true;
    if (delay_ms) {
        mk_timer_arm(&w->loop, &w->delay_timer, delay_ms);
        return;
    }
#endif
    drain(w);
}

static void on_stop(struct mk_message *message)
{
    stop(MK_OWNER(message, struct mk__worker, stop_message));
}

void mk__worker_drain(struct mk__worker *w)
{
    if (w->running && !atomic_exchange(&w->drain_sent, true))
        mk_post(&w->loop, &w->drain_message);
}

void mk__worker_stop(struct mk__worker *w)
{
    if (w->running && !atomic_exchange(&w->stop_sent, true))
        mk_post(&w->loop, &w->stop_message);
}

/* ── opening and closing ── */

static int open_acceptors(struct mk__worker *w, const int *fds, const bool *shared, unsigned n)
{
    w->acceptors = mk_account_alloc(&w->account, n * sizeof(*w->acceptors));
    if (!w->acceptors)
        return -ENOMEM;
    memset(w->acceptors, 0, n * sizeof(*w->acceptors));
    w->n_acceptors = n;
    for (unsigned i = 0; i < n; i++) {
        int err = mk__acceptor_open(&w->acceptors[i], &w->loop, fds[i], shared[i], serve, make_room, w);
        if (err < 0)
            return err;
    }
    return 0;
}

static void free_acceptors(struct mk__worker *w)
{
    mk_account_free(&w->account, w->acceptors, w->n_acceptors * sizeof(*w->acceptors));
    w->acceptors = NULL;
    w->n_acceptors = 0;
}

int mk__worker_open(struct mk__worker *w, const struct mk__generation *g, unsigned index, struct mk__jobs *jobs,
                    const int *fds, const bool *shared, unsigned n)
{
    w->generation = g;
    w->index = index;
    w->running = false;
    w->account = (struct mk_account){.bytes_max = g->settings->memory_bytes_max};
    w->complained_ms = 0;
    w->acceptors = NULL;
    w->n_acceptors = 0;
    w->drain_sent = w->stop_sent = false;
    w->drain_message.fn = on_drain;
    w->stop_message.fn = on_stop;
    mk_timer_init(&w->drain_timer, on_drain_timer);
#ifndef MK_LEAN
    mk_timer_init(&w->delay_timer, on_delay_timer);
#endif
    int err = mk__loop_open(&w->loop, &mk__poller_epoll, &mk__clock_system, jobs);
    if (err < 0)
        return err;
    err = open_acceptors(w, fds, shared, n);
    if (err == 0)
        err = mk__http_open(&w->http, &w->loop, &g->http, &mk__hooks_app, w, &w->account);
    if (err < 0) {
        mk__loop_close(&w->loop);
        free_acceptors(w);
    }
    return err;
}

void mk__worker_close(struct mk__worker *w)
{
    mk__loop_close(&w->loop); /* the last messages may still ask for an end that has come already */
    mk__http_close(&w->http);
    free_acceptors(w);
}

/* ── the thread ── */

static void *run(void *ctx)
{
    struct mk__worker *w = ctx;
    char name[16];
    snprintf(name, sizeof(name), "monkey: w%u", w->index % 1000);
    prctl(PR_SET_NAME, name);
    int err = mk__loop_run(&w->loop);
    if (err < 0)
        mk_log_error("worker %u: %s", w->index, strerror(-err));
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
    return -err;
}

void mk__worker_join(struct mk__worker *w)
{
    if (w->running)
        pthread_join(w->thread, NULL);
}
