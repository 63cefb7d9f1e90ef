// SPDX-License-Identifier: Apache-2.0
/* Each variable that is suggested for one of another server exists. */
#include "testing.h"

#include "plugins/logger/foreign.h"

TEST(variables)
{
    assert_string_equal(foreign_find_variable(MK_STR("remote_addr")), "client");
    assert_string_equal(foreign_find_variable(MK_STR("HTTP_referer")), "referer");
    assert_null(foreign_find_variable(MK_STR("client")));
    assert_null(foreign_find_variable(MK_STR("")));
}

TEST(directives)
{
    assert_string_equal(foreign_find_directive(MK_STR("%h %u")), "client");
    assert_string_equal(foreign_find_directive(MK_STR("%{Referer}i")), "header_NAME");
    assert_null(foreign_find_directive(MK_STR("100%")));
    assert_null(foreign_find_directive(MK_STR("%")));
    assert_null(foreign_find_directive(MK_STR("")));
}
