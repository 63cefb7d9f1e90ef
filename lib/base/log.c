// SPDX-License-Identifier: Apache-2.0
/*
 * The error log of <monkey/log.h>: formats a line on the stack and hands it to the kernel in one call.
 */
#include <monkey/log.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 2000, LINE_BYTES = MESSAGE_BYTES * 4 + 64 };

static _Atomic int log_fd = -1;
static _Atomic int log_level = MK_LOG_INFO;

static const char level_names[][8] = {"error", "warn ", "info ", "debug"};

void mk_log_to(int fd, enum mk_log_level level)
{
    log_level = level;
    log_fd = fd;
}

bool mk_log_wants(enum mk_log_level level)
{
    return log_fd >= 0 && (int)level <= log_level;
}

static size_t put_time(char *out, size_t size)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, size - n, ".%03ldZ ", now.tv_nsec / 1000000);
}

static size_t put_escaped(char *out, const char *message)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)message; *p; p++) {
        if (*p >= 0x20 && *p < 0x7f) {
            out[n++] = (char)*p;
            continue;
        }
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = hex[*p >> 4];
        out[n++] = hex[*p & 15];
    }
    return n;
}

void mk_log(enum mk_log_level level, const char *format, ...)
{
    char message[MESSAGE_BYTES], line[LINE_BYTES];
    int saved = errno;

    if (!mk_log_wants(level))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    size_t n = put_time(line, sizeof(line));
    n += (size_t)snprintf(line + n, sizeof(line) - n, "%s ", level_names[level]);
    n += put_escaped(line + n, message);
    line[n++] = '\n';
    /* a log that cannot be written must not stop the server: the line is lost */
    ssize_t written = write(log_fd, line, n);
    (void)written;
    errno = saved;
}
