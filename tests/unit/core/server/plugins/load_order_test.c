// SPDX-License-Identifier: Apache-2.0
/* Where a line of plugins.load belongs. */
#include "testing.h"

#include <monkey/base/buf.h>

#include "server/plugins/load_order.h"

static const char *const order[] = {"liana", "tls", "redirect", "static", "dirlisting", "logger", NULL};

TEST(places)
{
    static const struct {
        const char *text, *name, *place;
    } rows[] = {
        {"[PLUGINS]\n    Load liana\n    Load static\n", "tls", ", below \"Load liana\" in line 2"},
        {"[PLUGINS]\n    Load liana\n    Load static\n", "logger", ", below \"Load static\" in line 3"},
        {"[PLUGINS]\n\tLoad liana static\r\n", "dirlisting", ", below \"Load static\" in line 2"},
        {"[PLUGINS]\n    Load liana\n    #Load tls\n", "tls", ": remove the # in line 3"},
        {"[PLUGINS]\n    # load TLS\n    Load liana", "tls", ": remove the # in line 2"},
        {"[PLUGINS]\n    # Load tls for certificates\n    Load liana", "tls", ", below \"Load liana\" in line 3"},
        {"[PLUGINS]\n    Load static\n", "liana", ""},
        {"[PLUGINS]\n    Load liana\n", "other", ""},
        {"", "tls", ""},
        {"Load", "tls", ""},
        {"\n\n#\n", "tls", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[100];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk__load_order_describe(mk_str_c(rows[i].text), order, rows[i].name, &out);
        assert_string_equal(mk_buf_cstr(&out), rows[i].place);
    }
}

TEST(plugins_in_a_wrong_order)
{
    assert_true(mk__load_order_check("static", "dirlisting")->is_error);
    assert_null(mk__load_order_check("dirlisting", "static"));
    assert_false(mk__load_order_check("proxy", "static")->is_error);
    assert_null(mk__load_order_check("static", "proxy"));
    assert_null(mk__load_order_check("static", "liana"));
}
