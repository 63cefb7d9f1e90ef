// SPDX-License-Identifier: Apache-2.0
/*
 * Lines about a service in the server's log.
 */
#ifndef DUDA_CORE_LOG_MESSAGE_H
#define DUDA_CORE_LOG_MESSAGE_H

#include <monkey/log.h>

struct service;

/* Sets whether lines are limited; by the generation that serves. */
void message_set_limit(bool limits);
/* The same before the first generation of the process serves; later calls have no effect. */
void message_begin_limit(bool limits);

/*
 * Write a line with the current service's name, or that of `s`, before the text: of each service
 * MK_LOG_LIMITED_BYTES in ten seconds; in duda_main(), with LogLimit Off, and with LogLevel debug all. Any thread; keep
 * errno.
 */
void message_log(enum mk_log_level level, const char *format, ...) MK_PRINTF(2, 3);
void message_log_of(struct service *s, enum mk_log_level level, const char *format, ...) MK_PRINTF(3, 4);
/* The same for a line of the current service itself, which has a limit of its own. */
void message_write(enum mk_log_level level, const char *format, ...) MK_PRINTF(2, 3);

#endif
