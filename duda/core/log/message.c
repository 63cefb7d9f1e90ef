// SPDX-License-Identifier: Apache-2.0
/*
 * Writes lines about services to the server's log (message.h).
 */
#include "log/message.h"

#include "common/current.h"
#include "crash/crash.h"
#include "service/service.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_BYTES = 1024 };

void message_vlog_of(struct service *s, enum mk_log_level level, const char *format, va_list args)
{
    char text[TEXT_BYTES];
    int saved = errno;
    const char *name = s ? s->self.name.data : crash_find_caller(); /* in a thread that the framework does not know */
    int n = name ? snprintf(text, sizeof(text), "service %s: ", name) : 0;
    if ((size_t)n < sizeof(text))
        vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    mk_log(level, "%s", text);
    errno = saved;
}

void message_log_of(struct service *s, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_vlog_of(s, level, format, args);
    va_end(args);
}

void message_log(enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_vlog_of(current.service, level, format, args);
    va_end(args);
}
