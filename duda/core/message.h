// SPDX-License-Identifier: Apache-2.0
/*
 * Lines about a service in the server's log. At the start of the server duda_main() runs before the log is opened: its
 * lines are kept until the first worker starts.
 */
#ifndef DUDA_CORE_MESSAGE_H
#define DUDA_CORE_MESSAGE_H

#include <monkey/buf.h>
#include <monkey/log.h>

#include <stdarg.h>

struct service;

/* Write a line with the current service's name, or that of `s`, before the text. Any thread; keep errno. */
void message_log(enum mk_log_level level, const char *format, ...) MK_PRINTF(2, 3);
void message_log_of(struct service *s, enum mk_log_level level, const char *format, ...) MK_PRINTF(3, 4);
void message_vlog_of(struct service *s, enum mk_log_level level, const char *format, va_list args) MK_PRINTF(3, 0);

/* Initializes the lines that are kept, writes them, and frees them. In one thread at a time. */
void message_init_early(struct mk_buf *early);
void message_write_early(struct mk_buf *early);
/* Appends the last error among them, for a service that cannot start, so that no worker will write them. */
void message_quote_early(const struct mk_buf *early, struct mk_buf *out);

#endif
