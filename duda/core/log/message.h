// SPDX-License-Identifier: Apache-2.0
/*
 * Lines about a service in the server's log.
 */
#ifndef DUDA_CORE_LOG_MESSAGE_H
#define DUDA_CORE_LOG_MESSAGE_H

#include <monkey/log.h>

#include <stdarg.h>

struct service;

/* Write a line with the current service's name, or that of `s`, before the text. Any thread; keep errno. */
void message_log(enum mk_log_level level, const char *format, ...) MK_PRINTF(2, 3);
void message_log_of(struct service *s, enum mk_log_level level, const char *format, ...) MK_PRINTF(3, 4);
void message_vlog_of(struct service *s, enum mk_log_level level, const char *format, va_list args) MK_PRINTF(3, 0);

#endif
