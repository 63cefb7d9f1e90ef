// SPDX-License-Identifier: Apache-2.0
/*
 * The error log of <monkey/log.h>: formats a line on the stack and writes it with one system call.
 */
#include "base/log.h"

#include <monkey/base/time.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A line fits into PIPE_BUF, so that a pipe that polls as writable takes all of it. */
enum { MESSAGE_BYTES = 1000, LINE_BYTES = 4096 };
static_assert(MESSAGE_BYTES * 4 + 64 <= LINE_BYTES && LINE_BYTES <= PIPE_BUF, "each byte may become four");

static _Atomic int log_fd = -1;
static _Atomic int log_level = MK_LOG_INFO;
static _Atomic bool log_may_block;
static _Atomic unsigned lost_lines;      /* since the log has said how many */
static _Atomic unsigned uncounted_lines; /* since mk__log_take_lost() */

static _Atomic(mk_log_fn) log_fn; /* instead of log_fd; NULL: none */
static void *_Atomic log_fn_ctx;

static const char level_names[][8] = {"error", "warn ", "info ", "debug"};

void mk_log_to(int fd, enum mk_log_level level)
{
    assert(level <= MK_LOG_DEBUG);
    struct stat st;
    lost_lines = 0; /* they belong to the former log */
    log_may_block = fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
    log_level = level;
    log_fd = fd;
    log_fn = NULL;
}

void mk_log_to_function(mk_log_fn fn, void *ctx, enum mk_log_level level)
{
    mk_log_to(-1, level);
    log_fn_ctx = ctx;
    log_fn = fn;
}

static bool has_function(void)
{
    return log_fn != NULL;
}

void mk_log_set_level(enum mk_log_level level)
{
    assert(level <= MK_LOG_DEBUG);
    log_level = level;
}

MK_HOT bool mk_log_wants(enum mk_log_level level)
{
    return (log_fd >= 0 || has_function()) && (int)level <= log_level;
}

/* Writes "2026-11-22T19:45:00.123Z ". */
static size_t put_time(char *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned ms = (unsigned)(now.tv_nsec / 1000000);
    size_t n = mk_time_iso(now.tv_sec, out);
    const char rest[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z', ' '};
    memcpy(out + n, rest, sizeof(rest));
    return n + sizeof(rest);
}

static size_t put_text(char *out, const char *text)
{
    size_t n = strlen(text);
    memcpy(out, text, n);
    return n;
}

static size_t put_escaped(char *out, const char *message)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *end = (const unsigned char *)message + strnlen(message, MESSAGE_BYTES);
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)message; p < end; p++) {
        if (*p >= 0x20 && *p < 0x7f && *p != '\\') {
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

static bool log_would_block(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int n = log_may_block ? poll(&one, 1, 0) : -1;
    return n >= 0 && !(one.revents & POLLOUT); /* refused, it says nothing */
}

static size_t put_line(char *line, enum mk_log_level level, const char *message)
{
    size_t n = put_time(line);
    n += put_text(line + n, level_names[level]);
    line[n++] = ' ';
    n += put_escaped(line + n, message);
    line[n++] = '\n';
    assert(n <= LINE_BYTES);
    return n;
}

static void pass_line(enum mk_log_level level, const char *message)
{
    MK_UNINITIALIZED char line[LINE_BYTES];
    mk_log_fn fn = log_fn;
    line[put_escaped(line, message)] = '\0';
    if (fn)
        fn(level, line, log_fn_ctx);
}

/* Writes a line. A log that blocks must not stop the server. Returns false if the line is lost. */
static bool write_line(enum mk_log_level level, const char *message)
{
    if (has_function()) {
        pass_line(level, message);
        return true;
    }
    MK_UNINITIALIZED char line[LINE_BYTES];
    size_t n = put_line(line, level, message);
    return !log_would_block(log_fd) && write(log_fd, line, n) == (ssize_t)n;
}

static void count_lost_line(void)
{
    atomic_fetch_add(&lost_lines, 1);
    atomic_fetch_add(&uncounted_lines, 1);
}

void mk_log(enum mk_log_level level, const char *format, ...)
{
    assert(level <= MK_LOG_DEBUG && format);
    MK_UNINITIALIZED char message[MESSAGE_BYTES];
    int saved = errno;

    if (!mk_log_wants(level))
        return;
    unsigned lost = atomic_exchange(&lost_lines, 0);
    if (lost) {
        snprintf(message, sizeof(message), "%u lines were lost: the error log was full or could not be written", lost);
        if (!write_line(MK_LOG_WARN, message))
            atomic_fetch_add(&lost_lines, lost);
    }
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (!write_line(level, message))
        count_lost_line();
    errno = saved;
}

void mk_log_signal(enum mk_log_level level, const char *message)
{
    assert(level <= MK_LOG_DEBUG);
    int saved = errno;
    if (mk_log_wants(level) && !write_line(level, message))
        count_lost_line();
    errno = saved;
}

unsigned mk__log_take_lost(void)
{
    return atomic_exchange(&uncounted_lines, 0);
}
