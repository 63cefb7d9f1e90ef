// SPDX-License-Identifier: Apache-2.0
/* Lines that a handler of a signal writes: what does not fit is cut, and the NUL stays. */
#include "testing.h"

#include "duda/core/crash/line.h"

TEST(texts_and_numbers)
{
    char data[64];
    struct line l = {data, 0, sizeof(data)};
    line_add(&l, "at ");
    line_add_number(&l, 0xbeef, 16);
    line_add(&l, ", ");
    line_add_number(&l, 0, 10);
    line_add_number(&l, 120, 10);
    assert_string_equal(data, "at 0xbeef, 0120");
    assert_int_equal(l.len, 15);
}

TEST(control_characters)
{
    char data[64];
    struct line l = {data, 0, sizeof(data)};
    line_add_bytes(&l, "a\n\x1b\x7f\xc3\xa4 b", 8);
    assert_string_equal(data, "a???\xc3\xa4 b");
}

TEST(what_does_not_fit)
{
    char data[8];
    struct line l = {data, 0, sizeof(data)};
    line_add(&l, "123456789");
    assert_string_equal(data, "1234567");
    line_add(&l, "x");
    line_add_bytes(&l, "y", 1);
    line_add_number(&l, UINTPTR_MAX, 16);
    assert_string_equal(data, "1234567");
}
