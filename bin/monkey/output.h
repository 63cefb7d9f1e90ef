// SPDX-License-Identifier: Apache-2.0
/*
 * What a starting process writes to its stderr, in particular why it cannot start: kept until it is ready or ends, for
 * the error log of the process that started it. If that process logs to stderr, the new process writes there directly.
 */
#ifndef MONKEY_OUTPUT_H
#define MONKEY_OUTPUT_H

#include <monkey/log.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OUTPUT_BYTES_MAX = 4096 };

struct output {
    int fd; /* our end of the pipe; -1: closed, or there is none */
    size_t len;
    char text[OUTPUT_BYTES_MAX]; /* the first bytes */
};

/* Returns whether the log is not stderr. */
bool output_is_needed(int log_fd);
/* Reads the available bytes without blocking. */
void output_read(struct output *o);
/* Logs each line, prefixed with the process id. */
void output_log(const struct output *o, enum mk_log_level level, pid_t pid);
bool output_is_same(const struct output *a, const struct output *b);
void output_close(struct output *o);

#endif
