// SPDX-License-Identifier: Apache-2.0
/*
 * Being a daemon: the background, the pid file, the log file.
 */
#ifndef MONKEY_DAEMON_H
#define MONKEY_DAEMON_H

#include <stdbool.h>

/* Raises the limit of descriptors to the most that this process may have. */
void daemon_raise_descriptors(void);

/*
 * Goes to the background, before any thread exists. The parent waits for daemon_ready() and then leaves with
 * the code given there. Returns in the child: 0 or -errno.
 */
int daemon_fork(void);
/* Lets the parent leave with `code`, and, in the background, lets go of the terminal and the working directory. */
void daemon_ready(int code, bool background);

/* Writes our pid to `path`, which stays locked as long as we live. -EWOULDBLOCK: its owner is running. */
int daemon_write_pid(const char *path);
/* Removes it if it is still ours; where we may not do that any more it is left empty. */
void daemon_remove_pid(const char *path);
/* The locked file, for the process that takes our place; -1 if ours lies elsewhere than `path`. */
int daemon_pid_fd(const char *path);
/* That process has it now. */
void daemon_release_pid(void);
/* The other side: the file is ours, and names us from daemon_confirm_pid() on. */
void daemon_take_pid(int fd);
void daemon_confirm_pid(void);

/* Opens the error log for appending: the descriptor or -errno. `ret_made`: there was none at this place. */
int daemon_open_log(const char *path, bool *ret_made);

#endif
