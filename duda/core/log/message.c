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

static _Atomic bool has_limit = true; /* LogLimit */

void message_begin_limit(bool limits)
{
    static _Atomic bool has_begun;
    if (!atomic_exchange(&has_begun, true))
        has_limit = limits;
}

void message_set_limit(bool limits)
{
    has_limit = limits;
}

/* What a service says while it starts is written in full; so is all at the level debug, for its author. */
static bool is_limited(void)
{
    return has_limit && phase_now() != PHASE_MAIN && !mk_log_wants(MK_LOG_DEBUG);
}

/* A limit is that of a format: many lines of a service leave those about it their room. */
static const char line_of_service[] = "%s", line_about_service[] = "%s";

static void write_line(struct service *s, bool is_own, enum mk_log_level level, const char *format, va_list args)
{
    char text[TEXT_BYTES];
    int saved = errno;
    const char *name = s ? s->self.name.data : crash_find_caller(); /* in a thread that the framework does not know */
    int n = name ? snprintf(text, sizeof(text), "service %s: ", name) : 0;
    if ((size_t)n < sizeof(text))
        vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    if (!is_limited())
        mk_log(level, "%s", text);
    else
        mk_log_limited_text(level, s, is_own ? line_of_service : line_about_service, text);
    errno = saved;
}

void message_write(enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(current.service, true, level, format, args);
    va_end(args);
}

void message_log_of(struct service *s, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(s, false, level, format, args);
    va_end(args);
}

void message_log(enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(current.service, false, level, format, args);
    va_end(args);
}
