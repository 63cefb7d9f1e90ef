// SPDX-License-Identifier: Apache-2.0
/*
 * The object `console`.
 */
#include "common/current.h"
#include "log/last_lines.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"

#include <stdio.h>

enum { TEXT_BYTES = 4096, PATH_CHARS = 200 };

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
    char text[TEXT_BYTES];
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
        message_log_of(s, MK_LOG_INFO, "%s", text);
}

const struct duda_api_console object_console = {
    .debug = write_debug,
};
