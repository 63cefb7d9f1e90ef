// SPDX-License-Identifier: Apache-2.0
/*
 * Consecutive failed starts of a server while no other server runs: how they are logged, and when clients are refused.
 */
#ifndef MONKEY_FAILURES_H
#define MONKEY_FAILURES_H

#include "ipc.h"
#include "output.h"

/* Counts and logs a failed start, with the process's output unless it equals the last one. The next start is in
 * `delay_ms`. */
void failures_add(const struct output *output, pid_t pid, int status, const char *what, int delay_ms);
/* The same for a start that failed before the fork: `err` is the -errno. */
void failures_add_error(int err, int delay_ms);
/* Resets the count: a server is ready. */
void failures_clear(void);

/*
 * Returns whether new connections shall be closed while no server runs. At first they wait in the backlog for the next
 * start; after several failed starts they are closed, so that clients see the outage at once.
 */
bool failures_must_refuse(void);
/* Accepts and closes the connections that wait in the backlog. */
void failures_close_pending(const struct ipc_sockets *sockets);

#endif
