// SPDX-License-Identifier: Apache-2.0
/* Directives of another server's log formats. */
#include "testing.h"

#include "plugins/logger/foreign.h"

TEST(directives)
{
    assert_string_equal(foreign_find_directive(MK_STR("%h %u")), "client");
    assert_string_equal(foreign_find_directive(MK_STR("%{Referer}i")), "header_NAME");
    assert_null(foreign_find_directive(MK_STR("100%")));
    assert_null(foreign_find_directive(MK_STR("%")));
    assert_null(foreign_find_directive(MK_STR("")));
}
