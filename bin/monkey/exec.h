// SPDX-License-Identifier: Apache-2.0
/*
 * Starts the program again from its path, where a newer one may be by then, and passes the listening sockets on.
 */
#ifndef MONKEY_EXEC_H
#define MONKEY_EXEC_H

#include "ipc.h"
#include "options.h"

/* The name in LISTEN_FDNAMES of sockets that a server opened, in contrast to those of a service manager. */
#define EXEC_FD_NAME "monkey-own"
/* Environment variables with the descriptor of the ipc channel: to a supervisor, or to the process being replaced. */
#define EXEC_ENV_SUPERVISOR "MONKEY_SUPERVISOR"
#define EXEC_ENV_PREDECESSOR "MONKEY_PREDECESSOR"
/* The descriptor that becomes stderr when the server is ready, if its stderr is a pipe while it starts. */
#define EXEC_ENV_STDERR "MONKEY_STDERR"
/* The descriptor of the memory of the counters (mk_counters_inherit()). */
#define EXEC_ENV_COUNTERS "MONKEY_COUNTERS"

/*
 * Keeps the absolute paths of the program and of its configuration, since the working directory
 * changes later. `o` must outlive all calls.
 */
void exec_init(const struct options *o);
/* Replaces the paths in the options by these absolute ones. */
void exec_use_absolute_paths(struct options *o);

/*
 * Starts a server with these sockets. `role` is EXEC_ENV_SUPERVISOR or EXEC_ENV_PREDECESSOR; `ret_ipc_fd` receives our
 * end of the channel, `ret_output` our non-blocking end of a pipe that is its stderr until it is ready. With NULL it
 * inherits our stderr.
 * Returns the process id or -errno.
 */
pid_t exec_start_server(const struct ipc_sockets *sockets, const char *role, int *ret_ipc_fd, int *ret_output);

/* Replaces this process by the supervisor of the same configuration. Returns only on failure: -errno. */
int exec_supervisor(void);
/* Executes the program of `monkey shell`; `argv` begins with "shell". Returns an exit code after a message. */
int exec_shell(char **argv);

#endif
