// SPDX-License-Identifier: Apache-2.0
/* Which mistakes of services are logged. */
#include "testing.h"

#include <stdio.h>

#include "duda/core/common/misuse.h"

/* Returns how many lines before were not written, or -1: this one must not be written. */
static int count(struct misuse *m, const char *call, const char *reason, uint64_t now_ms)
{
    unsigned missing = 0;
    return misuse_is_due(m, call, reason, now_ms, &missing) ? (int)missing : -1;
}

TEST(each_mistake_is_logged_once_in_ten_seconds)
{
    struct misuse m = {0};
    assert_int_equal(count(&m, "a()", "x", 0), 0);
    assert_int_equal(count(&m, "a()", "x", 0), -1);
    assert_int_equal(count(&m, "a()", "y", 0), 0);
    assert_int_equal(count(&m, "b()", "x", 5), 0);
    assert_int_equal(count(&m, "a()x", "", 5), 0);
    assert_int_equal(count(&m, "a()", "x", MISUSE_INTERVAL_MS), -1);
    assert_int_equal(count(&m, "a()", "x", MISUSE_INTERVAL_MS + 1), 2);
    assert_int_equal(count(&m, "a()", "y", MISUSE_INTERVAL_MS + 1), 0);
    assert_int_equal(count(&m, "b()", "x", MISUSE_INTERVAL_MS + 5), 0);
    assert_int_equal(count(&m, "a()", "x", MISUSE_INTERVAL_MS + 5), -1);
}

static int count_reason(struct misuse *m, int number, uint64_t now_ms)
{
    char reason[16];
    snprintf(reason, sizeof(reason), "%d", number);
    return count(m, "a()", reason, now_ms);
}

TEST(the_lines_of_all_mistakes_are_bounded)
{
    struct misuse m = {0};
    for (int i = 0; i < MISUSE_ROWS; i++)
        assert_int_equal(count_reason(&m, i, (uint64_t)i + 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(count_reason(&m, MISUSE_ROWS + i, MISUSE_INTERVAL_MS), -1);
    assert_int_equal(count_reason(&m, MISUSE_ROWS, MISUSE_INTERVAL_MS + 1), 1000); /* in the oldest row */
    assert_int_equal(count_reason(&m, MISUSE_ROWS + 1, MISUSE_INTERVAL_MS + 1), -1);
    assert_int_equal(count_reason(&m, 1, MISUSE_INTERVAL_MS + 2), 1);
}
