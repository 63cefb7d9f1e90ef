// SPDX-License-Identifier: Apache-2.0
/*
 * Writes lines about services to the server's log (message.h).
 */
#include "message.h"

#include "current.h"
#include "service.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_BYTES = 1024, EARLY_BYTES_MAX = 64 * 1024 };

/* ── lines of duda_main(): a byte for the level, the text, a NUL ── */

void message_init_early(struct mk_buf *early)
{
    mk_buf_init(early, EARLY_BYTES_MAX);
}

static void keep_line(struct mk_buf *early, enum mk_log_level level, const char *text)
{
    mk_buf_addc(early, (char)level);
    mk_buf_add(early, text, strlen(text) + 1);
}

static const char *next_line(const char *line)
{
    return line + 1 + strlen(line + 1) + 1;
}

void message_write_early(struct mk_buf *early)
{
    const char *end = early->data + early->len;
    for (const char *line = early->data; line < end; line = next_line(line))
        mk_log((enum mk_log_level)line[0], "%s", line + 1);
    mk_buf_release(early);
}

void message_quote_early(const struct mk_buf *early, struct mk_buf *out)
{
    const char *end = early->data + early->len, *last = NULL;
    for (const char *line = early->data; line < end; line = next_line(line)) {
        if (line[0] == MK_LOG_ERROR)
            last = line + 1;
    }
    if (last)
        mk_buf_addf(out, "; its last error was: %s", last);
}

/* ── writing ── */

void message_vlog_of(struct service *s, enum mk_log_level level, const char *format, va_list args)
{
    char text[TEXT_BYTES];
    int saved = errno;
    int n = s ? snprintf(text, sizeof(text), "service %s: ", s->self.name.data) : 0;
    if ((size_t)n < sizeof(text))
        vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    if (s && s->state == SERVICE_LOADED && !mk_log_wants(MK_LOG_ERROR))
        keep_line(&s->early_lines, level, text);
    else
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
