// SPDX-License-Identifier: Apache-2.0
/* Lines of error output: how they are split, cut and limited. */
#include "testing.h"

#include "harness.h"

#include "base/log_limit.h"

#include <monkey/kit/cgi.h>

#include <stdio.h>

static struct mk_test_fixture fixture;
static char logged[64 * 1024];
static unsigned lines;

static void take_line(enum mk_log_level level, const char *message, void *ctx)
{
    (void)ctx;
    assert_int_equal(level, MK_LOG_WARN);
    size_t n = strlen(logged);
    snprintf(logged + n, sizeof(logged) - n, "%s|", message);
    lines++;
}

static int open_log(void **state)
{
    (void)state;
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    mk_log_to_function(take_line, NULL, MK_LOG_INFO);
    logged[0] = '\0';
    lines = 0;
    mk__log_limit_clear();
    return 0;
}

static int close_log(void **state)
{
    (void)state;
    mk_log_to(-1, MK_LOG_INFO);
    mk_test_fixture_close(&fixture);
    return 0;
}

static struct mk_cgi_stderr make_stderr(void)
{
    return (struct mk_cgi_stderr){.prefix = "p"};
}

/* Lines of which the log would show nothing. */
TEST(lines_without_text, open_log, close_log)
{
    struct mk_cgi_stderr s = make_stderr();
    mk_cgi_stderr_add(&s, MK_STR("\x1b\n \t\n\0\0\n\x7f\x01\r\none\n\x1bx\n \x02"));
    mk_cgi_stderr_end(&s);
    assert_string_equal(logged, "p: one|p: \\x1bx|");
    assert_int_equal(lines, 2);
}

TEST(pieces, open_log, close_log)
{
    const struct mk_str text = MK_STR("one\ntwo\r\n\n\r\nthree\x1b[1m\nfour");
    for (size_t piece = 1; piece <= text.len; piece++) {
        struct mk_cgi_stderr s = make_stderr();
        logged[0] = '\0';
        for (size_t at = 0; at < text.len; at += piece)
            mk_cgi_stderr_add(&s, mk_str(text.p + at, text.len - at < piece ? text.len - at : piece));
        mk_cgi_stderr_end(&s);
        assert_string_equal(logged, "p: one|p: two|p: three\\x1b[1m|p: four|");
    }
}

TEST(long_line, open_log, close_log)
{
    char text[1000];
    struct mk_cgi_stderr s = make_stderr();
    memset(text, 'a', sizeof(text));
    mk_cgi_stderr_add(&s, mk_str(text, sizeof(text)));
    mk_cgi_stderr_add(&s, mk_str(text, sizeof(text)));
    mk_cgi_stderr_add(&s, MK_STR("\r\nb\n"));
    mk_cgi_stderr_end(&s);
    assert_int_equal(lines, 2);
    assert_int_equal(strlen(logged), 3 + MK_CGI_STDERR_LINE_BYTES + 1 + 5);
}

/* All scripts of a host have a budget of bytes; the last line that is written says so. */
TEST(many_scripts, open_log, close_log)
{
    for (int script = 0; script < 20; script++) {
        struct mk_cgi_stderr s = make_stderr();
        for (int i = 0; i < 100; i++)
            mk_cgi_stderr_add(&s, MK_STR("x\x1b\n"));
        mk_cgi_stderr_end(&s);
    }
    assert_true(lines > MK_LOG_LIMITED_BYTES / 100 && lines <= MK_LOG_LIMITED_BYTES / 50);
    assert_non_null(strstr(logged, "p: x\\x1b (more of these are only counted for 10 s)|"));
}
