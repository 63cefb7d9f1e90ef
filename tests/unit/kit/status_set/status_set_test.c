// SPDX-License-Identifier: Apache-2.0
/* Sets of statuses: single ones, ranges, and what is neither. */
#include "testing.h"

#include <monkey/kit/status_set.h>

#include <errno.h>

TEST(statuses_and_ranges)
{
    struct mk_status_set set = {0};
    assert_int_equal(mk_status_set_add(&set, MK_STR("502")), 0);
    assert_int_equal(mk_status_set_add(&set, MK_STR("200-299")), 0);
    assert_int_equal(mk_status_set_add(&set, MK_STR("100-100")), 0);
    assert_int_equal(mk_status_set_add(&set, MK_STR("599")), 0);
    for (unsigned status = 0; status < 1000; status++)
        assert_int_equal(mk_status_set_has(&set, status),
                         status == 502 || status == 100 || status == 599 || status / 100 == 2);
}

TEST(others_are_refused)
{
    static const char *const words[] = {"",        "99",      "600",     "0502",    "5xx",      "200-", "-200",
                                        "299-200", "200-600", "200 299", "200-29a", "200-2999", "+502"};
    struct mk_status_set set = {0};
    for (size_t i = 0; i < COUNT(words); i++)
        assert_int_equal(mk_status_set_add(&set, mk_str_c(words[i])), -EINVAL);
    for (unsigned status = 0; status < 1000; status++)
        assert_false(mk_status_set_has(&set, status));
}
