// SPDX-License-Identifier: Apache-2.0
/*
 * The error log of the program: opening, reopening and its owner.
 */
#ifndef MONKEY_ERRORLOG_H
#define MONKEY_ERRORLOG_H

#include <monkey/monkey.h>

/*
 * Keeps lines in memory until errorlog_open(), which writes them: plugins and services log while the configuration that
 * names the log is loaded.
 */
void errorlog_keep(void);
/* Opens the error log. With `background` and without ErrorLog it is discarded. Returns 0 or -errno. */
int errorlog_open(const struct mk_server_info *info, bool background);
/* Opens the error log of the current configuration. If that fails the old one stays in use. */
void errorlog_reopen(struct mk_server *server);
/* Returns the log's descriptor, which never changes. */
int errorlog_fd(void);
/* Changes the owner of a log file that this process created, before it drops root. */
void errorlog_chown(uint32_t uid, uint32_t gid);

/*
 * Logs the problems of a configuration, each line at the level of its problem; `level` is that of lines that have none.
 */
void errorlog_write_problems(const struct mk_server *server, enum mk_log_level level);

#endif
