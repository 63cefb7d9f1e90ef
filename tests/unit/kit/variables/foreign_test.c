// SPDX-License-Identifier: Apache-2.0
/* Variables of other servers, in any case, and the ones here. */
#include "testing.h"

#include <monkey/kit/variables.h>

TEST(foreign_variables)
{
    assert_string_equal(mk_variable_find_foreign(MK_STR("remote_addr")), "client");
    assert_string_equal(mk_variable_find_foreign(MK_STR("HTTP_referer")), "referer");
    assert_string_equal(mk_variable_find_foreign(MK_STR("uri")), "path");
    assert_null(mk_variable_find_foreign(MK_STR("client")));
    assert_null(mk_variable_find_foreign(MK_STR("")));
}
