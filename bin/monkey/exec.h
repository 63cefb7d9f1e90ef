// SPDX-License-Identifier: Apache-2.0
/*
 * Starting this program anew, as what lies at its path by then, with the listening sockets that are there.
 */
#ifndef MONKEY_EXEC_H
#define MONKEY_EXEC_H

#include "ipc.h"
#include "options.h"

/* What a socket is called (LISTEN_FDNAMES) that a server has made, in contrast to those of a service manager. */
#define EXEC_FD_NAME "monkey-own"
/* The variables that hold the number of the channel: one if the other end stays, one if it leaves. */
#define EXEC_ENV_SUPERVISOR "MONKEY_SUPERVISOR"
#define EXEC_ENV_PREDECESSOR "MONKEY_PREDECESSOR"
/* The number of the stderr for a server that serves, if it has another one while it starts. */
#define EXEC_ENV_STDERR "MONKEY_STDERR"

/*
 * Remembers where the program and its configuration lie (`dir` may be NULL), as absolute paths: the working directory
 * changes. The options must stay.
 */
void exec_init(const struct options *o, const char *dir);
/* Lets the options themselves name those paths. */
void exec_use_absolute_paths(struct options *o);

/*
 * Starts a server; the process, or -errno. `role` is one of the variables above, `ret_ipc_fd` our end. `ret_output`:
 * our end of a pipe (not blocking) that is its stderr until it serves; NULL, if it shall have our stderr.
 */
pid_t exec_start_server(const struct ipc_sockets *sockets, const char *role, int *ret_ipc_fd, int *ret_output);

/* Becomes the supervisor of this configuration; returns only -errno. */
int exec_supervisor(void);

#endif
