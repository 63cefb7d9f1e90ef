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

TEST(variables_in_texts)
{
    static const struct {
        const char *text, *found, *here; /* NULL: none */
    } rows[] = {
        {"a $host b", "$host", "host"},
        {"x${remote_addr}", "${remote_addr}", "client"},
        {"{path}", "{path}", "path"},
        {"{http.request.header.X-A}", "{http.request.header.X-A}", "header_NAME"},
        {"$http_x_a", "$http_x_a", "header_NAME"},
        {"a%{REQUEST_URI}e", "%{REQUEST_URI}", "target"},
        {"%{anything}", "%{anything}", NULL},
        {"%[src]", "%[src]", NULL},
        {"$scheme://", "$scheme", NULL},
        {"{a} $b {query}", "{query}", "query"},
        {"$hosts", NULL, NULL},
        {"{host", NULL, NULL},
        {"{}$", NULL, NULL},
        {"{\"host\"}", NULL, NULL},
        {"%20$5", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_variable_found found = {.here = NULL};
        assert_int_equal(mk_variable_find_in(mk_str_c(rows[i].text), &found), rows[i].found != NULL);
        if (!rows[i].found)
            continue;
        assert_str_equal(found.text, rows[i].found);
        assert_int_equal(found.here != NULL, rows[i].here != NULL);
        if (rows[i].here)
            assert_string_equal(found.here, rows[i].here);
    }
}
