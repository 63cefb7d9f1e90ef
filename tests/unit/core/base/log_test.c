// SPDX-License-Identifier: Apache-2.0
/* The error log: one line an event, whatever the event holds. */
#include "testing.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <time.h>

#include <monkey/log.h>

static int pipe_fds[2];

static int open_log(void **state)
{
    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    mk_log_to(pipe_fds[1], MK_LOG_INFO);
    return 0;
}

static int close_log(void **state)
{
    (void)state;
    mk_log_to(-1, MK_LOG_INFO);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return 0;
}

/* What the log wrote so far; the text is good until the next call. */
static const char *written(void)
{
    static char text[20000];
    mk_log_to(-1, MK_LOG_INFO);
    close(pipe_fds[1]);
    pipe_fds[1] = -1;
    size_t len = 0;
    for (ssize_t n; (n = read(pipe_fds[0], text + len, sizeof(text) - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("\"%s\" does not match \"%s\"", text, pattern);
    regfree(&regex);
}

#define TIME "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z"

/* The same form in the handler of a signal, where the rest of a long message is lost. */
TEST(writes_in_a_handler, open_log, close_log)
{
    char text[5000];
    time_t before = time(NULL), seconds;
    struct tm tm = {0};
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    mk_log_signal(MK_LOG_ERROR, "it\nbegins");
    mk_log_signal(MK_LOG_DEBUG, "not wanted");
    mk_log_signal(MK_LOG_WARN, text);
    const char *line = written();
    assert_matches(line, "^" TIME " error it.x0abegins\n" TIME " warn  (x{200}){5}\n$");
    assert_non_null(strptime(line, "%Y-%m-%dT%H:%M:%S", &tm));
    seconds = timegm(&tm);
    assert_true(seconds >= before && seconds <= time(NULL));
}

TEST(writes_lines, open_log, close_log)
{
    mk_log_error("first %d", 1);
    mk_log_warn("second");
    mk_log_info("third");
    mk_log_debug("not wanted");
    assert_matches(written(), "^" TIME " error first 1\n" TIME " warn  second\n" TIME " info  third\n$");
}

TEST(escapes, open_log, close_log)
{
    mk_log_error("a\r\nb\t\x1b[31m\x7f\xc3\xbc~ c");
    assert_non_null(strstr(written(), " error a\\x0d\\x0ab\\x09\\x1b[31m\\x7f\\xc3\\xbc~ c\n"));
}

TEST(cuts_long_messages, open_log, close_log)
{
    char message[5000];
    memset(message, '\n', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    mk_log_error("%s", message);
    const char *text = written();
    assert_int_equal(strlen(text), strlen("2026-11-20T05:04:03.123Z error ") + 999 * 4 + 1);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

TEST(keeps_errno, open_log, close_log)
{
    close(pipe_fds[1]);
    errno = ENOTDIR;
    mk_log_error("to a closed descriptor: %m");
    assert_int_equal(errno, ENOTDIR);
    mk_log_to(-1, MK_LOG_DEBUG);
    mk_log_error("nowhere");
    assert_int_equal(errno, ENOTDIR);
}

TEST(levels, open_log, close_log)
{
    mk_log_to(pipe_fds[1], MK_LOG_WARN);
    assert_true(mk_log_wants(MK_LOG_ERROR));
    assert_true(mk_log_wants(MK_LOG_WARN));
    assert_false(mk_log_wants(MK_LOG_INFO));
    mk_log_info("not wanted");
    mk_log_to(pipe_fds[1], MK_LOG_DEBUG);
    mk_log_debug("wanted");
    assert_matches(written(), "^" TIME " debug wanted\n$");
    assert_false(mk_log_wants(MK_LOG_ERROR));
}
