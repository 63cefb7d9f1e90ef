// SPDX-License-Identifier: Apache-2.0
/*
 * The object `msg`.
 */
#include "common/current.h"
#include "log/last_lines.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "service/service.h"

#include <stdio.h>

enum { TEXT_BYTES = 1024 };

struct kind {
    enum mk_log_level level;
    const char *prefix; /* in the server's log */
    const char *word;   /* in the service's file */
};

static void write_line(struct kind kind, const char *format, va_list args)
{
    char text[TEXT_BYTES];
    vsnprintf(text, sizeof(text), format ? format : "(no text)", args);
    size_t len = strlen(text);
    while (len && text[len - 1] == '\n')
        text[--len] = 0;
    message_log(kind.level, "%s%s", kind.prefix, text);
    last_lines_add_of(current.service, kind.word, mk_str(text, len));
    if (current.service && logs_of(current.service)->messages)
        log_add(logs_of(current.service)->messages, "%s: %s", kind.word, text);
}

#define DEFINE_MESSAGE(name, ...) \
    static void name(const char *format, ...) \
    { \
        va_list args; \
        va_start(args, format); \
        write_line((struct kind){__VA_ARGS__}, format, args); \
        va_end(args); \
    }

DEFINE_MESSAGE(write_info, MK_LOG_INFO, "", "info")
DEFINE_MESSAGE(write_warning, MK_LOG_WARN, "", "warn")
DEFINE_MESSAGE(write_error, MK_LOG_ERROR, "", "error")
DEFINE_MESSAGE(write_bug, MK_LOG_ERROR, "bug: ", "bug")

const struct duda_api_msg object_msg = {
    .info = write_info,
    .warn = write_warning,
    .err = write_error,
    .bug = write_bug,
};
