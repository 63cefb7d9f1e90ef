// SPDX-License-Identifier: Apache-2.0
/*
 * Starts of a server that failed, one after the other, while there is no other server: what the log says about them and
 * what clients see.
 */
#ifndef MONKEY_FAILURES_H
#define MONKEY_FAILURES_H

#include "ipc.h"
#include "output.h"

/* Logs one, with the reason unless it is that of the one before; the next start is in `delay_ms`. */
void failures_add(const struct output *output, pid_t pid, int status, const char *what, int delay_ms);
/* Logs one for which there was not even a process: `err` is the -errno. */
void failures_add_error(int err, int delay_ms);
/* A server serves. */
void failures_clear(void);

/*
 * Whether connections are closed while no server runs. At first they wait for the next start, which comes soon; after
 * several that failed, clients learn more from the end of their connections than from none.
 */
bool failures_must_refuse(void);
/* Closes the connections that wait. */
void failures_close_pending(const struct ipc_sockets *sockets);

#endif
