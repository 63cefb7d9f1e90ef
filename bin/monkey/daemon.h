// SPDX-License-Identifier: Apache-2.0
/*
 * Being a daemon: the background, the pid file, the log file.
 */
#ifndef MONKEY_DAEMON_H
#define MONKEY_DAEMON_H

/*
 * Goes to the background, before any thread exists. The parent waits for daemon_ready() and then leaves with
 * the code given there. Returns in the child: 0 or -errno.
 */
int daemon_fork(void);
/* Lets the parent leave with `code`, and lets go of the terminal. Without daemon_fork() it does nothing. */
void daemon_ready(int code);

/* Writes our pid to `path`, which stays locked as long as we live. -EWOULDBLOCK: its owner is running. */
int daemon_write_pid(const char *path);
void daemon_remove_pid(const char *path);

/* Opens the error log for appending: the descriptor or -errno. */
int daemon_open_log(const char *path);

#endif
