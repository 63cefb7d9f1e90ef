// SPDX-License-Identifier: Apache-2.0
/*
 * The process that started this one and follows its progress: a supervisor, the process being replaced, a service
 * manager, or none of these.
 */
#ifndef MONKEY_LAUNCHER_H
#define MONKEY_LAUNCHER_H

#include <monkey/monkey.h>

#include "options.h"

/* Reads the launcher's variables and removes them from the environment. Call before any thread exists. */
void launcher_init(void);
/* Returns whether a supervisor started this process: it handles the background, the pid file and the service manager.
 */
bool launcher_is_supervisor(void);
/* Returns whether a supervisor or the previous process waits for this one: it must not fork then. */
bool launcher_exists(void);
/* Lets the supervisor's death end this process. Call again after a change of the user, which resets it. */
void launcher_set_pdeathsig(void);

/*
 * Claims the pid file: the supervisor writes it, or the previous process passes it on, or this process opens it.
 * Returns 0 or -errno as daemon_write_pid().
 */
int launcher_claim_pid_file(const char *path);

/* Returns the stderr for a ready server; while it starts, stderr may be a pipe to the process that started it. */
int launcher_get_stderr(void);
/* Sends the error log to a supervisor, which logs there too. */
void launcher_send_log(int fd);
void launcher_notify_reloading(void);
/* Reports that the server is ready, and its sockets; also after each reload, successful or not. */
void launcher_notify_ready(struct mk_server *server, unsigned workers);
void launcher_notify_stopping(void);

/* Logs if the counters of the process before cannot be used. Call once the error log is open. */
void launcher_report_counters(void);

/* Offers the sockets of LISTEN_FDS that the process before has opened to plugins. Before the load. */
void launcher_offer_listen_fds(void);
/* Passes the sockets of LISTEN_FDS (sd_listen_fds(3)) to the server, and removes its variables from the environment. */
void launcher_inherit_listen_fds(struct mk_server *server);
/* The same for a process without a server: calls `fn` for each socket. */
void launcher_each_listen_fd(void (*fn)(int fd, bool own, void *ctx), void *ctx);

#endif
