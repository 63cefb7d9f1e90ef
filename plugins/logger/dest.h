// SPDX-License-Identifier: Apache-2.0
/*
 * Where lines go: what the directives AccessLog and ErrorLog name.
 */
#ifndef LOGGER_DEST_H
#define LOGGER_DEST_H

#include <monkey/conf.h>

enum log_dest_kind { DEST_OFF, DEST_FILE, DEST_STDOUT, DEST_STDERR, DEST_SYSLOG };

struct log_dest {
    enum log_dest_kind kind;
    struct mk_str path; /* of a file or a socket, absolute; NUL-terminated; else empty */
};

/* For MK_CONF_KEY_CUSTOM: reads a struct log_dest. */
int dest_parse(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error);

/* Could it be written? Nothing is made for the question. 0 or -errno. */
int dest_check(const struct log_dest *dest);

/*
 * Opens a file for appending, 0640 at the most, without waiting for a reader of a FIFO. Links are followed as
 * monkey/file.h says. Returns a descriptor or -errno.
 */
int dest_open_file(const char *path);

#endif
