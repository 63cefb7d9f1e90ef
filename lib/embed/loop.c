// SPDX-License-Identifier: Apache-2.0
/*
 * A server in the loop of the program (<monkey/embed.h>): one turn at a time, and a descriptor that says when. The
 * descriptor is that of epoll(7), which is readable while something in it is ready; a timerfd in it expires with the
 * next timer of the server.
 */
#include "embed/embed.h"

#include "server/worker/caller_thread.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Returns the worker in the calling thread; NULL: the call is a mistake, and `*ret_err` its -errno. */
static struct mk__thread *begin_loop_call(struct mk_server *s, int *ret_err)
{
    *ret_err = mk__server_begin_call(s);
    if (*ret_err < 0)
        return NULL;
    if (!mk__server_is_running(s))
        *ret_err = mk__server_refuse(s, -EINVAL, "mk_server_run_once(), mk_server_fd(): the server does not run");
    else if (!mk__server_is_in_caller(s))
        *ret_err = mk__server_refuse(s, -EINVAL,
                                     "mk_server_run_once(), mk_server_fd(): the server has its own threads; call "
                                     "mk_server_in_caller() before the start");
    return *ret_err < 0 ? NULL : s->workers[0];
}

/* ── the timer ── */

static void set_timer(struct mk__embedded *e, int delay_ms)
{
    struct itimerspec when = {.it_value = {.tv_sec = delay_ms / 1000, .tv_nsec = delay_ms % 1000 * 1000000L}};
    if (delay_ms <= 0)
        when.it_value = (struct timespec){.tv_nsec = delay_ms == 0}; /* at once, or never */
    timerfd_settime(e->timer_event.fd, 0, &when, NULL);
}

/* Has the timer expire with the next timer of the loop, unless it does so already. */
static void update_timer(struct mk__embedded *e, const struct mk__thread *t)
{
    if (!e->loop)
        return;
    int delay_ms = mk__caller_thread_timeout_ms(t);
    uint64_t at = delay_ms < 0 ? UINT64_MAX : mk_loop_now_ms(&t->loop) + (uint64_t)delay_ms;
    if (at == e->timer_ms && delay_ms != 0)
        return;
    e->timer_ms = at;
    set_timer(e, delay_ms);
}

static void on_timer(struct mk_event *event, uint32_t events)
{
    struct mk__embedded *e = MK_CONTAINER_OF(event, struct mk__embedded, timer_event);
    uint64_t count;
    (void)events;
    e->timer_ms = UINT64_MAX; /* expired: it is set anew after this turn */
    if (read(event->fd, &count, sizeof(count)) < 0)
        return; /* EAGAIN: set again in the meantime */
}

static int open_timer(struct mk__embedded *e, struct mk__thread *t)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    e->timer_event = (struct mk_event){.ready = on_timer, .fd = fd};
    int err = mk_event_add(&t->loop, &e->timer_event, EPOLLIN);
    if (err < 0) {
        close(fd);
        e->timer_event.fd = -1;
        return err;
    }
    e->loop = &t->loop;
    e->timer_ms = UINT64_MAX;
    return 0;
}

void mk__embed_stopped(struct mk__embedded *e)
{
    if (!e->loop)
        return;
    mk_event_del(e->loop, &e->timer_event);
    close(e->timer_event.fd);
    e->timer_event.fd = -1;
    e->loop = NULL;
}

/* ── calls of the program ── */

int mk_server_run_once(struct mk_server *s, int timeout_ms)
{
    int err;
    struct mk__thread *t = begin_loop_call(s, &err);
    if (!t)
        return err;
    s->in_turn = true;
    err = t->loop.stopping ? -ECANCELED : mk__caller_thread_turn(t, timeout_ms);
    s->in_turn = false;
    if (err == 0)
        update_timer(s->embedded, t);
    if (err == -ECANCELED)
        s->refusal = "the server was told to stop at once: call mk_server_stop()";
    return err;
}

int mk_server_fd(struct mk_server *s)
{
    int err;
    struct mk__thread *t = begin_loop_call(s, &err);
    if (!t)
        return err;
    if (!s->embedded->loop)
        err = open_timer(s->embedded, t);
    if (err < 0)
        return err;
    update_timer(s->embedded, t);
    return t->loop.poll_fd;
}
