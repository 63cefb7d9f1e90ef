// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for descriptors, also if poll(2) is refused (<monkey/base/poll.h>).
 */
#include "poll.h"

#include <monkey/base/poll.h>
#include <monkey/log.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

void mk__poll_pause(int timeout_ms)
{
    int ms = timeout_ms >= 0 && timeout_ms < MK_POLL_PAUSE_MS ? timeout_ms : MK_POLL_PAUSE_MS;
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

void mk__poll_report(const char *call, int err)
{
    static atomic_bool was_logged[2]; /* of errors that may end, and of those that stay */
    bool is_refused = err == -EPERM || err == -EACCES || err == -ENOSYS;
    if (!atomic_exchange(&was_logged[is_refused], true))
        mk_log_error("%s: %s: this process tries every %d ms instead of waiting%s", call, strerror(-err),
                     MK_POLL_PAUSE_MS, is_refused ? "; allow the call in the sandbox" : "");
}

/* Returns how many descriptors are ready, or -errno, with what is tried then. */
static int wait_or_pause(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int ready = poll(fds, n, timeout_ms), err = ready < 0 ? -errno : 0;
    if (err == 0)
        return ready;
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = fds[i].fd < 0 || err == -EINTR ? 0 : fds[i].events;
    if (err == -EINTR)
        return 0;
    mk__poll_pause(timeout_ms);
    return err;
}

int mk_poll_unlogged(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int ready = wait_or_pause(fds, n, timeout_ms);
    return ready < 0 ? (int)n : ready;
}

int mk_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int ready = wait_or_pause(fds, n, timeout_ms);
    if (ready < 0)
        mk__poll_report("poll", ready);
    return ready < 0 ? (int)n : ready;
}
