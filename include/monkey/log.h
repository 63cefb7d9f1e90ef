// SPDX-License-Identifier: Apache-2.0
/*
 * The error log: one line per event, to one descriptor of the process. A plugin writes the access logs.
 *
 *     2026-11-20T05:04:03.123Z warn  accept: out of file descriptors, pausing for 100 ms
 *
 * Each line is written by one write(2), so that lines of several threads do not mix. Bytes that are not printable
 * ASCII, and backslashes, are written as \xNN: nothing that a client sends can break a line or reach a terminal as an
 * escape sequence. Until a log is opened nothing is written.
 */
#ifndef MONKEY_LOG_H
#define MONKEY_LOG_H

#include <stdbool.h>

#include "status.h"

MK_C_BEGIN

enum mk_log_level { MK_LOG_ERROR, MK_LOG_WARN, MK_LOG_INFO, MK_LOG_DEBUG };

/* Writes lines at `level` and more urgent ones to `fd` from now on; -1: to nowhere. Any thread. */
MK_API void mk_log_to(int fd, enum mk_log_level level);

/* A line of the log: the message without time and level, in printable ASCII as in the log, with a NUL. */
typedef void (*mk_log_fn)(enum mk_log_level level, const char *message, void *ctx);
/*
 * Passes lines at `level` and more urgent ones to `fn` from now on, instead of writing them to a descriptor. Several
 * threads call it, also at the same time; it must not block, and must not log. mk_log_to() ends it. Call it while no
 * server runs.
 */
MK_API void mk_log_to_function(mk_log_fn fn, void *ctx, enum mk_log_level level);

/* Changes the level; the next mk_log_to() sets it again. Any thread. */
MK_API void mk_log_set_level(enum mk_log_level level);

/* Returns whether lines at `level` are written. */
MK_API bool mk_log_wants(enum mk_log_level level);

/*
 * Writes one line, whose message is cut at 1,000 bytes. Any thread; keeps errno. It never waits for a pipe or a
 * terminal: a line that cannot be written at once is lost, and the next one that can is preceded by the number of lost
 * lines.
 */
MK_API void mk_log(enum mk_log_level level, const char *format, ...) MK_PRINTF(2, 3);

/*
 * Writes a line that clients can cause, as mk_log(): four with the same format and owner in ten seconds, at
 * MK_LOG_DEBUG all. Those that are left out are counted, and the next one has their number. `owner` is what the line is
 * about, and only compared; NULL: all such lines count together. Any thread.
 */
MK_API void mk_log_limited(enum mk_log_level level, const void *owner, const char *format, ...) MK_PRINTF(3, 4);

/*
 * The same for text of which more than four lines are of use, such as what a program says: all of a format and an owner
 * have MK_LOG_LIMITED_BYTES in ten seconds, at MK_LOG_DEBUG, too.
 */
MK_API void mk_log_limited_text(enum mk_log_level level, const void *owner, const char *format, ...) MK_PRINTF(3, 4);

/* What lines with a limit of bytes have in ten seconds: mk_request_log_text() and mk_host_log_text(), too. */
enum { MK_LOG_LIMITED_BYTES = 10240 };

/* Writes one line as mk_log(), cut at 1,000 bytes. Async-signal-safe, for handlers of signals. */
MK_API void mk_log_signal(enum mk_log_level level, const char *message);

/* Write a line at the level in their name. The arguments of mk_log_debug() are evaluated only if it is written. */
#define mk_log_error(...) mk_log(MK_LOG_ERROR, __VA_ARGS__)
#define mk_log_warn(...) mk_log(MK_LOG_WARN, __VA_ARGS__)
#define mk_log_info(...) mk_log(MK_LOG_INFO, __VA_ARGS__)
#define mk_log_debug(...) \
    do { \
        if (MK_UNLIKELY(mk_log_wants(MK_LOG_DEBUG))) \
            mk_log(MK_LOG_DEBUG, __VA_ARGS__); \
    } while (0)

MK_C_END

#endif
