// SPDX-License-Identifier: Apache-2.0
/*
 * Whoever started this process and wants to know how it goes: a supervisor, the process before this one, a service
 * manager, or nobody.
 */
#ifndef MONKEY_LAUNCHER_H
#define MONKEY_LAUNCHER_H

#include <monkey/monkey.h>

#include "options.h"

/* Takes its variables out of the environment. Early, before there are threads. */
void launcher_init(void);
/* A supervisor stays above us: the background, the pid file and the service manager are its business. */
bool launcher_is_supervisor(void);
/* There is somebody who started us with sockets: no new session, no fork. */
bool launcher_exists(void);
/* Once we are somebody else: the end of a supervisor still ends us. */
void launcher_set_pdeathsig(void);

/* Makes `path` name us: by the parent, from it, or by ourselves. As daemon_write_pid(). */
int launcher_claim_pid_file(const char *path);

/* The stderr of a server that serves; while it starts, its own stderr may lead to the process that started it. */
int launcher_get_stderr(void);
void launcher_send_log(int fd);
void launcher_notify_reloading(void);
/* We serve, at these sockets; also after a reload, successful or not. */
void launcher_notify_ready(struct mk_server *server, unsigned workers);
void launcher_notify_stopping(void);

/* Takes over the sockets of LISTEN_FDS (sd_listen_fds(3)) and its variables out of the environment. */
void listen_fds_inherit(struct mk_server *server);
/* The same for a process without a server: calls with each. */
void listen_fds_each(void (*fn)(int fd, bool own, void *ctx), void *ctx);

#endif
