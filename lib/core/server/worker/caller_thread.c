// SPDX-License-Identifier: Apache-2.0
/*
 * Runs the turns of a worker in the thread of the program (server/worker/caller_thread.h).
 */
#include "server/worker/caller_thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

/* ── SIGPIPE: sendfile(2) has no flag against it, and the program's disposition stays as it is ── */

static void block_sigpipe(sigset_t *ret_before)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

static void restore_sigpipe(const sigset_t *before)
{
    static const struct timespec now = {0};
    sigset_t set;
    if (sigismember(before, SIGPIPE))
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ── turns ── */

int mk__caller_thread_start(struct mk__thread *t)
{
    assert(t->worker && !t->running);
    t->running = true;
    t->loop.owner = pthread_self();
    t->loop.owned = true;
    t->start_err = mk__worker_start(t->worker);
    if (t->start_err == 0)
        mk__worker_serve(t->worker); /* it is the only one */
    return t->start_err;
}

bool mk__caller_thread_is_current(const struct mk__thread *t)
{
    return pthread_equal(t->loop.owner, pthread_self());
}

static void ignore_timer(struct mk_timer *timer)
{
    (void)timer;
}

static void ignore_task(struct mk_task *task)
{
    (void)task;
}

/* The turn waits until the next timer at most, and not at all if a task is scheduled. */
static int run_turn(struct mk_loop *loop, int timeout_ms)
{
    struct mk_timer timer;
    struct mk_task task;
    mk_timer_init(&timer, ignore_timer);
    mk_task_init(&task, ignore_task);
    loop->now_ms = loop->clock->now_ms(loop->clock->ctx); /* the last turn may be long ago */
    if (timeout_ms == 0)
        mk_task_schedule(loop, &task);
    else if (timeout_ms > 0)
        mk_timer_arm(loop, &timer, (uint32_t)timeout_ms);
    int err = mk__loop_turn(loop);
    mk_timer_cancel(&timer);
    mk_task_cancel(&task);
    return err;
}

int mk__caller_thread_turn(struct mk__thread *t, int timeout_ms)
{
    sigset_t before;
    assert(mk__caller_thread_is_current(t));
    block_sigpipe(&before);
    int err = run_turn(&t->loop, timeout_ms);
    if (mk__epoch_joined(&t->loop.epoch))
        mk__epoch_idle(&t->loop.epoch); /* the program may do anything else before the next turn */
    restore_sigpipe(&before);
    return err == 0 && t->loop.stopping ? -ECANCELED : err;
}

int mk__caller_thread_timeout_ms(const struct mk__thread *t)
{
    return mk__loop_timeout_ms(&t->loop, t->loop.clock->now_ms(t->loop.clock->ctx));
}

void mk__caller_thread_finish(struct mk__thread *t)
{
    sigset_t before;
    if (!t->running)
        return;
    block_sigpipe(&before);
    int err = mk__loop_run(&t->loop);
    if (err < 0)
        mk_log_error("worker %u: %s", t->index, strerror(-err));
    mk__thread_end(t);
    restore_sigpipe(&before);
}
