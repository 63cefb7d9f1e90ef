// SPDX-License-Identifier: Apache-2.0
/* Lines that clients can cause: a number of lines, or of bytes, for each format and owner. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <monkey/log.h>

#include "base/log_limit.h"

enum { MANY = 400 };

static unsigned lines, bytes;
static char last[1200];

static void take_line(enum mk_log_level level, const char *message, void *ctx)
{
    (void)level;
    (void)ctx;
    lines++;
    bytes += (unsigned)strlen(message);
    snprintf(last, sizeof(last), "%s", message);
}

static int open_log(void **state)
{
    (void)state;
    mk_log_to_function(take_line, NULL, MK_LOG_INFO);
    lines = bytes = 0;
    mk__log_limit_clear();
    return 0;
}

static int close_log(void **state)
{
    (void)state;
    mk_log_to(-1, MK_LOG_INFO);
    return 0;
}

TEST(four_lines_of_each_owner, open_log, close_log)
{
    for (int i = 0; i < MANY; i++)
        for (int owner = 0; owner < 2; owner++)
            mk_log_limited(MK_LOG_INFO, &last[owner], "line %d", i);
    assert_int_equal(lines, 8);
    assert_string_equal(last, "line 3 (more of these are only counted for 10 s)");
}

TEST(bytes_of_text, open_log, close_log)
{
    for (int i = 0; i < MANY; i++)
        mk_log_limited_text(MK_LOG_INFO, NULL, "%0200d", i);
    assert_true(bytes > MK_LOG_LIMITED_BYTES / 2 && bytes < MK_LOG_LIMITED_BYTES);
    assert_non_null(strstr(last, " (more of these are only counted for 10 s)"));
    unsigned before = lines;
    mk_log_limited_text(MK_LOG_INFO, &last, "%s", "of another owner");
    mk_log_limited_text(MK_LOG_DEBUG, &last, "%s", "not wanted");
    assert_int_equal(lines, before + 1);
}

TEST(text_is_cut_before_the_note, open_log, close_log)
{
    for (int i = 0; i < MANY; i++)
        mk_log_limited_text(MK_LOG_INFO, NULL, "%02000d", i);
    assert_true(strstr(last, "000 (more of these") && strlen(last) < 1000);
}
