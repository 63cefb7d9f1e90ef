// SPDX-License-Identifier: Apache-2.0
/*
 * The objects that write lines: `msg`, `logger` and `console`.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "log/last_lines.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"
#include "service/service.h"

#include <stdio.h>

/* ── the object `msg` ── */

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
    message_write(kind.level, "%s%s", kind.prefix, text);
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

/* ── the object `logger` ── */

static int create_logger(duda_logger_t *logger, const char *name)
{
    static const char call[] = "logger->create()";
    if (!logger) {
        message_log(MK_LOG_ERROR, "%s: there is no logger", call);
        return -1;
    }
    *logger = (duda_logger_t){0};
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    logger->log = log_new(current.service, name, call);
    logger->enabled = logger->log != NULL;
    return logger->log ? 0 : -1;
}

static int print_line(duda_logger_t *logger, const char *format, ...)
{
    if (!logger || !logger->log || !format)
        return -1;
    if (!logger->enabled)
        return 0;
    va_list args;
    va_start(args, format);
    int result = log_vadd(logger->log, format, args);
    va_end(args);
    return result;
}

const struct duda_api_logger object_logger = {
    .create = create_logger,
    .print = print_line,
};

/* ── the object `console` ── */

enum { DEBUG_BYTES = 4096, PATH_CHARS = 200 };

/* Writes "[GET /path] [file.c:3] ". Returns its length. */
static size_t put_place(char *text, size_t size, duda_request_t *dr, const char *file, int line)
{
    const char *name = strrchr(file, '/');
    bool is_alive = dr && object_request.validate_request(dr);
    int n = 0;
    if (is_alive) {
        struct mk_str method = mk_request_method_name(dr->req), path = mk_request_path(dr->req);
        n = snprintf(text, size, "[%.*s %.*s] ", MK_STR_ARG(method),
                     path.len < PATH_CHARS ? (int)path.len : (int)PATH_CHARS, path.p);
    }
    n += snprintf(text + n, size - (size_t)n, "[%.100s:%d] ", name ? name + 1 : file, line);
    return (size_t)n;
}

static void write_debug(duda_request_t *dr, const char *file, int line, const char *format, ...)
{
    char text[DEBUG_BYTES];
    size_t n = put_place(text, sizeof(text), dr, file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof(text) - n, format ? format : "(no text)", args);
    va_end(args);
    struct service *s = current.service;
    last_lines_add_of(s, "debug", mk_str_c(text));
    if (s && logs_of(s)->messages)
        log_add(logs_of(s)->messages, "%s", text);
    else
        message_write(MK_LOG_INFO, "%s", text);
}

const struct duda_api_console object_console = {
    .debug = write_debug,
};
