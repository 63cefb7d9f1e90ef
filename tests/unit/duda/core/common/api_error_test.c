// SPDX-License-Identifier: Apache-2.0
/* Which mistakes of services are logged. */
#include "testing.h"

#include <stdio.h>

#include "duda/core/common/api_error.h"

/* Returns how many lines before were not written, or -1: this one must not be written. */
static int count(struct api_errors *m, const char *call, const char *reason, uint64_t now_ms)
{
    unsigned missing = 0;
    return api_error_is_due(m, call, reason, now_ms, &missing) ? (int)missing : -1;
}

TEST(each_mistake_is_logged_once_in_ten_seconds)
{
    struct api_errors m = {0};
    assert_int_equal(count(&m, "a()", "x", 0), 0);
    assert_int_equal(count(&m, "a()", "x", 0), -1);
    assert_int_equal(count(&m, "a()", "y", 0), 0);
    assert_int_equal(count(&m, "b()", "x", 5), 0);
    assert_int_equal(count(&m, "a()x", "", 5), 0);
    assert_int_equal(count(&m, "a()", "x", API_ERROR_INTERVAL_MS), -1);
    assert_int_equal(count(&m, "a()", "x", API_ERROR_INTERVAL_MS + 1), 2);
    assert_int_equal(count(&m, "a()", "y", API_ERROR_INTERVAL_MS + 1), 0);
    assert_int_equal(count(&m, "b()", "x", API_ERROR_INTERVAL_MS + 5), 0);
    assert_int_equal(count(&m, "a()", "x", API_ERROR_INTERVAL_MS + 5), -1);
}

static int count_reason(struct api_errors *m, int number, uint64_t now_ms)
{
    char reason[16];
    snprintf(reason, sizeof(reason), "%d", number);
    return count(m, "a()", reason, now_ms);
}

TEST(the_lines_of_all_mistakes_are_bounded)
{
    struct api_errors m = {0};
    for (int i = 0; i < API_ERROR_ROWS; i++)
        assert_int_equal(count_reason(&m, i, (uint64_t)i + 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(count_reason(&m, API_ERROR_ROWS + i, API_ERROR_INTERVAL_MS), -1);
    assert_int_equal(count_reason(&m, API_ERROR_ROWS, API_ERROR_INTERVAL_MS + 1), 1000); /* in the oldest row */
    assert_int_equal(count_reason(&m, API_ERROR_ROWS + 1, API_ERROR_INTERVAL_MS + 1), -1);
    assert_int_equal(count_reason(&m, 1, API_ERROR_INTERVAL_MS + 2), 1);
}
