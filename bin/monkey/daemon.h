// SPDX-License-Identifier: Apache-2.0
/*
 * The process as a daemon: going to the background, the pid file, the log file.
 */
#ifndef MONKEY_DAEMON_H
#define MONKEY_DAEMON_H

#include <stdbool.h>

/* Raises the soft limit of open descriptors to the hard limit. */
void daemon_raise_descriptors(void);

/*
 * Forks, before any thread exists. The parent waits for daemon_ready() and exits with the code given there; only the
 * child returns. Returns 0 or -errno.
 */
int daemon_fork(void);
/*
 * Lets the parent of daemon_fork() exit with `code`. With `background` and code 0 it also detaches from the terminal
 * and changes to /.
 */
void daemon_ready(int code, bool background);

/*
 * Writes the pid to `path` and keeps the file locked until this process ends.
 * Returns 0, -EWOULDBLOCK (another process holds the lock) or another -errno.
 */
int daemon_write_pid(const char *path);
/* Removes the pid file if this process still owns it; empties it if it may not be removed. */
void daemon_remove_pid(const char *path);
/* Returns the descriptor of the locked pid file, for the next process; -1 if `path` is a different file. */
int daemon_pid_fd(const char *path);
/* Closes the pid file: the next process owns it now. */
void daemon_release_pid(void);
/* In the next process: takes ownership of the file. daemon_confirm_pid() writes the pid into it. */
void daemon_take_pid(int fd);
void daemon_confirm_pid(void);

/* Opens the error log for appending. Sets `ret_made` if the file did not exist. Returns the descriptor or -errno. */
int daemon_open_log(const char *path, bool *ret_made);

#endif
