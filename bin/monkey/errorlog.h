// SPDX-License-Identifier: Apache-2.0
/*
 * The error log as the program's: where it goes, and that it goes on there.
 */
#ifndef MONKEY_ERRORLOG_H
#define MONKEY_ERRORLOG_H

#include <monkey/monkey.h>

/* Opens it. `background`: without a file it goes nowhere instead of to stderr. 0 or -errno. */
int errorlog_open(const struct mk_server_info *info, bool background);
/* The file of now, which may be another one; when it cannot be opened the old one goes on. */
void errorlog_reopen(struct mk_server *server);
/* Its descriptor, which never changes. */
int errorlog_fd(void);
/* A file that we have made is given to the user that we are going to be. */
void errorlog_chown(uint32_t uid, uint32_t gid);

/* Writes what was wrong with a configuration, or odd, into it. */
void errorlog_write_problems(const struct mk_server *server, enum mk_log_level level);

#endif
