// SPDX-License-Identifier: Apache-2.0
/*
 * The poller of real servers: one epoll descriptor per loop.
 */
#include "loop/loop.h"

#include <errno.h>
#include <unistd.h>

static int open_epoll(struct mk_loop *loop)
{
    loop->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->poll_fd < 0 ? -errno : 0;
}

static void close_epoll(struct mk_loop *loop)
{
    close(loop->poll_fd);
}

static int control_epoll(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.ptr = event};
    return epoll_ctl(loop->poll_fd, op, event->fd, &wanted) < 0 ? -errno : 0;
}

static int wait_epoll(struct mk_loop *loop, int timeout_ms)
{
    int n = epoll_wait(loop->poll_fd, loop->batch, MK__LOOP_BATCH, timeout_ms);
    return n < 0 ? -errno : n;
}

const struct mk__poller mk__poller_epoll = {
    .open = open_epoll,
    .close = close_epoll,
    .control = control_epoll,
    .wait = wait_epoll,
};
