// SPDX-License-Identifier: Apache-2.0
/* Which lines of a log may be written. */
#include "testing.h"

#include <monkey/base/log_limit.h>

enum { ROWS = 3 };

/* Returns how many lines before were not written, or -1: this one must not be written. */
static int count(struct mk_log_limit_row *rows, const char *text, uint64_t now_ms)
{
    unsigned missing = 0;
    return mk_log_limit_is_due(rows, ROWS, mk_log_limit_hash(0, text), now_ms, &missing) ? (int)missing : -1;
}

TEST(each_kind_has_its_own_time)
{
    struct mk_log_limit_row rows[ROWS] = {{0}};
    assert_int_equal(count(rows, "a", 0), 0);
    assert_int_equal(count(rows, "b", 5), 0);
    assert_int_equal(count(rows, "a", MK_LOG_LIMIT_MS), -1);
    assert_int_equal(count(rows, "a", MK_LOG_LIMIT_MS + 1), 1);
    assert_int_equal(count(rows, "b", MK_LOG_LIMIT_MS + 4), -1);
    assert_int_equal(count(rows, "b", MK_LOG_LIMIT_MS + 5), 1);
}

TEST(further_kinds_wait_for_the_oldest_row)
{
    struct mk_log_limit_row rows[ROWS] = {{0}};
    assert_int_equal(count(rows, "a", 3), 0);
    assert_int_equal(count(rows, "b", 2), 0);
    assert_int_equal(count(rows, "c", 1), 0);
    assert_int_equal(count(rows, "d", MK_LOG_LIMIT_MS), -1);
    assert_int_equal(count(rows, "e", MK_LOG_LIMIT_MS), -1);
    assert_int_equal(count(rows, "d", MK_LOG_LIMIT_MS + 1), 2); /* of "c" */
    assert_int_equal(count(rows, "a", MK_LOG_LIMIT_MS + 1), -1);
}

/* Returns as count(); `*ret_is_last`: further lines are only counted. */
static int count_some(struct mk_log_limit_row *rows, uint64_t kind, uint64_t now_ms, bool *ret_is_last)
{
    unsigned missing = 0;
    *ret_is_last = false;
    return mk_log_limit_admits(rows, 1, 2, 1, kind, now_ms, &missing, ret_is_last) ? (int)missing : -1;
}

TEST(some_lines_of_a_kind)
{
    struct mk_log_limit_row rows[1] = {{0}};
    bool is_last;
    assert_int_equal(count_some(rows, 7, 1, &is_last), 0);
    assert_false(is_last);
    assert_int_equal(count_some(rows, 8, 1, &is_last), -1); /* there is no row for it */
    assert_int_equal(count_some(rows, 7, 2, &is_last), 0);
    assert_true(is_last);
    assert_int_equal(count_some(rows, 7, 3, &is_last), -1);
    assert_int_equal(count_some(rows, 7, MK_LOG_LIMIT_MS + 1, &is_last), 2);
    assert_false(is_last);
}

TEST(other_texts_have_other_hashes)
{
    uint64_t a = mk_log_limit_hash(0, "a");
    assert_true(mk_log_limit_hash(a, "bc") != mk_log_limit_hash(mk_log_limit_hash(0, "ab"), "c"));
    assert_true(mk_log_limit_hash(1, "a") != a && mk_log_limit_hash(0, "a") == a);
}

/* Bytes instead of lines: the line that exceeds the budget is the last one. */
TEST(a_budget_of_bytes)
{
    static const struct {
        unsigned cost;
        uint64_t now_ms;
        bool admits, is_last;
        unsigned missing;
    } steps[] = {
        {40, 5, true, false, 0},
        {59, 6, true, false, 0},
        {500, 7, true, true, 0}, /* one byte was left */
        {1, 8, false, false, 0},
        {1, MK_LOG_LIMIT_MS + 4, false, false, 0},
        {100, MK_LOG_LIMIT_MS + 5, true, true, 2},
        {1, MK_LOG_LIMIT_MS + 6, false, false, 0},
    };
    struct mk_log_limit_row rows[1] = {{0}};
    for (size_t i = 0; i < MK_COUNT_OF(steps); i++) {
        unsigned missing = 0;
        bool is_last = false;
        assert_int_equal(mk_log_limit_admits(rows, 1, 100, steps[i].cost, 7, steps[i].now_ms, &missing, &is_last),
                         steps[i].admits);
        assert_int_equal(missing, steps[i].missing);
        assert_int_equal(is_last, steps[i].is_last);
    }
}
