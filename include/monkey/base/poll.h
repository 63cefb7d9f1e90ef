// SPDX-License-Identifier: Apache-2.0
/*
 * poll(2) for threads that wait for nothing else. A sandbox or a security module may refuse the call each time (EPERM,
 * ENOSYS), and a kernel without memory does for a while: such a thread neither spins then, nor misses what happens.
 */
#ifndef MONKEY_POLL_H
#define MONKEY_POLL_H

#include <poll.h>

#include "../status.h"

MK_C_BEGIN

enum { MK_POLL_PAUSE_MS = 50 };

/*
 * Waits as poll(2) does. If the call is refused, it waits for MK_POLL_PAUSE_MS or `timeout_ms`, whichever is less, and
 * reports that all descriptors but negative ones are ready for what was asked: they must not block. The first time in
 * the process is logged as an error. Any thread.
 * Returns how many are ready; 0: none within the time, or before a signal came. `revents` is always set.
 */
MK_API int mk_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/* The same without a line in the log; async-signal-safe. */
MK_API int mk_poll_unlogged(struct pollfd *fds, nfds_t n, int timeout_ms);

MK_C_END

#endif
