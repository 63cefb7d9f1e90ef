// SPDX-License-Identifier: Apache-2.0
/*
 * The destination of a log: the value of AccessLog or ErrorLog.
 */
#ifndef LOGGER_DEST_H
#define LOGGER_DEST_H

#include <monkey/conf.h>

enum log_dest_kind { DEST_OFF, DEST_FILE, DEST_STDOUT, DEST_STDERR, DEST_SYSLOG };

struct log_dest {
    enum log_dest_kind kind;
    struct mk_str path; /* of a file or a socket, absolute; NUL-terminated; else empty */
};

/* Parses a struct log_dest; an mk_conf_parse_fn. */
int dest_parse(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error);

/* Checks that it can be written; creates nothing. Returns 0 or -errno. */
int dest_check(const struct log_dest *dest);

/*
 * Opens a file for appending; creates it with mode 0640 or stricter. Does not wait for a reader of a FIFO. Follows
 * links as <monkey/file.h> says. Returns a descriptor or -errno.
 */
int dest_open_file(const char *path);

#endif
