// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for the sockets of lookups: in a loop, or while the caller is blocked.
 */
#include "lookup_state.h"

#include <monkey/base/arena.h>
#include <monkey/base/poll.h>
#include <monkey/base/time.h>

#include <sys/epoll.h>
#include <sys/time.h>

/* Returns how long c-ares can wait for a socket, at most `most`. */
static uint32_t get_wait(struct lookup *l, uint64_t most)
{
    struct timeval limit = {(time_t)(most / 1000), (suseconds_t)(most % 1000 * 1000)}, storage;
    const struct timeval *wait = ares_timeout(l->channel, &limit, &storage);
    return (uint32_t)(wait->tv_sec * 1000 + (wait->tv_usec + 999) / 1000);
}

/* ── in a loop ── */

/* After a call that may have ended the lookup. */
static void continue_lookup(struct lookup *l)
{
    uint64_t now = mk_loop_now_ms(l->loop);
    if (l->has_ended) {
        mk_timer_cancel(&l->timer);
        mk_task_schedule(l->loop, &l->task);
        return;
    }
    mk_timer_arm(l->loop, &l->timer, get_wait(l, l->deadline_ms > now ? l->deadline_ms - now : 0));
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct lookup *l = MK_CONTAINER_OF(event, struct lookup_socket, event)->lookup;
    int fd = event->fd;
    ares_process_fd(l->channel, events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
                    events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
    continue_lookup(l);
}

static void on_timer(struct mk_timer *timer)
{
    struct lookup *l = MK_CONTAINER_OF(timer, struct lookup, timer);
    if (mk_loop_now_ms(l->loop) >= l->deadline_ms)
        lookup_expire(l);
    else
        ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    continue_lookup(l);
}

static void on_end(struct mk_task *task)
{
    struct lookup *l = MK_CONTAINER_OF(task, struct lookup, task);
    l->fn(l, l->ctx);
}

static struct lookup_socket *find_socket(struct lookup *l, int fd)
{
    for (unsigned i = 0; i < LOOKUP_SOCKETS_MAX; i++)
        if (l->sockets[i].event.fd == fd)
            return &l->sockets[i];
    return NULL;
}

/* A socket that cannot be watched is as one without an answer. */
void lookup_on_socket(void *ctx, int fd, int readable, int writable)
{
    struct lookup *l = ctx;
    uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
    if (!l->loop)
        return;
    struct lookup_socket *socket = find_socket(l, fd);
    if (socket && events) {
        mk_event_change(l->loop, &socket->event, events);
    } else if (socket) {
        mk_event_del(l->loop, &socket->event);
        socket->event.fd = -1;
    } else if (events && (socket = find_socket(l, -1))) {
        *socket = (struct lookup_socket){.event = {.ready = on_event, .fd = fd}, .lookup = l};
        if (mk_event_add(l->loop, &socket->event, events) < 0)
            socket->event.fd = -1;
    }
}

void lookup_start(struct lookup *l, struct mk_loop *loop, lookup_fn fn, void *ctx)
{
    l->loop = loop;
    l->fn = fn;
    l->ctx = ctx;
    l->deadline_ms = mk_loop_now_ms(loop) + LOOKUP_MS_MAX;
    mk_timer_init(&l->timer, on_timer);
    mk_task_init(&l->task, on_end);
    lookup_begin(l);
    continue_lookup(l);
}

/* ── blocking ── */

/* Stores the sockets of a lookup, and how long it can wait. Returns how many there are. */
static unsigned add_sockets(struct lookup *l, struct pollfd *ret, uint32_t *wait_ms)
{
    ares_socket_t fds[LOOKUP_SOCKETS_MAX];
    unsigned n = 0;
    int mask = ares_getsock(l->channel, fds, LOOKUP_SOCKETS_MAX);
    for (unsigned i = 0; i < LOOKUP_SOCKETS_MAX; i++) {
        short events =
            (short)((ARES_GETSOCK_READABLE(mask, i) ? POLLIN : 0) | (ARES_GETSOCK_WRITABLE(mask, i) ? POLLOUT : 0));
        if (events)
            ret[n++] = (struct pollfd){.fd = fds[i], .events = events};
    }
    *wait_ms = get_wait(l, *wait_ms);
    return n;
}

static void process_sockets(struct lookup *l, const struct pollfd *fds)
{
    for (unsigned i = 0; i < l->n_polled && !l->has_ended; i++)
        if (fds[i].revents)
            ares_process_fd(l->channel, fds[i].revents & ~POLLOUT ? fds[i].fd : ARES_SOCKET_BAD,
                            fds[i].revents & POLLOUT ? fds[i].fd : ARES_SOCKET_BAD);
    if (!l->has_ended)
        ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Waits once. Returns whether a lookup has not ended. */
static bool wait_once(struct lookup *const *lookups, unsigned n, struct pollfd *fds, uint32_t wait_ms)
{
    unsigned total = 0, at = 0;
    bool is_waiting = false;
    for (unsigned i = 0; i < n; i++) {
        struct lookup *l = lookups[i];
        l->n_polled = l->has_ended ? 0 : add_sockets(l, fds + total, &wait_ms);
        total += l->n_polled;
        is_waiting |= !l->has_ended;
    }
    if (is_waiting)
        mk_poll(fds, total, (int)wait_ms);
    for (unsigned i = 0; i < n; at += lookups[i++]->n_polled)
        process_sockets(lookups[i], fds + at);
    return is_waiting;
}

void lookups_wait(struct lookup *const *lookups, unsigned n, uint32_t ms)
{
    uint64_t now = mk_time_monotonic_ms(), end = now + ms;
    struct pollfd *fds = mk_account_alloc(NULL, n * LOOKUP_SOCKETS_MAX * sizeof(*fds));
    for (unsigned i = 0; i < n; i++)
        lookup_begin(lookups[i]);
    for (; fds && now < end && wait_once(lookups, n, fds, (uint32_t)(end - now)); now = mk_time_monotonic_ms())
        ;
    for (unsigned i = 0; i < n; i++)
        lookup_expire(lookups[i]);
    mk_account_free(NULL, fds, 0);
}
