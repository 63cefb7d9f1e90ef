// SPDX-License-Identifier: Apache-2.0
/* Where a path is split into script and PATH_INFO. */
#include "testing.h"

#include <monkey/kit/cgi.h>

static struct mk_str extensions[] = {MK_STR_INIT(".php"), MK_STR_INIT(".phtml")};
static const struct mk_conf_list list = {.items = extensions, .n = COUNT(extensions)};

TEST(paths)
{
    static const struct {
        struct mk_str path;
        const char *script, *info; /* NULL: no segment matches */
    } rows[] = {
        {MK_STR_INIT("/a.php"), "/a.php", ""},
        {MK_STR_INIT("/a.php/"), "/a.php", "/"},
        {MK_STR_INIT("/a.php/b/c"), "/a.php", "/b/c"},
        {MK_STR_INIT("/a.php/b.php"), "/a.php", "/b.php"},
        {MK_STR_INIT("/x/y.phtml/z"), "/x/y.phtml", "/z"},
        {MK_STR_INIT("/foo.jpg/x.php"), "/foo.jpg/x.php", ""},
        {MK_STR_INIT("/a.php.php"), "/a.php.php", ""},
        {MK_STR_INIT("/a.php.jpg"), NULL, NULL},
        {MK_STR_INIT("/a.phpx/b"), NULL, NULL},
        {MK_STR_INIT("/a.PHP"), NULL, NULL},
        {MK_STR_INIT("/a.php."), NULL, NULL},
        {MK_STR_INIT("/a.php "), NULL, NULL},
        {MK_STR_INIT("/a.php::$DATA"), NULL, NULL},
        {MK_STR_INIT("/a.php;/b"), NULL, NULL},
        {MK_STR_INIT("/a.p\xc4\xa5p"), NULL, NULL},
        {MK_STR_INIT("/a.\xef\xbd\x90hp"), NULL, NULL},
        {MK_STR_INIT("/a.ph\xe2\x84\xaa"), NULL, NULL},
        {MK_STR_INIT("/\xc8\xba\xc8\xbax.php.txt"), NULL, NULL}, /* its small letters have a byte more each */
        {MK_STR_INIT("/\xc8\xba\xc8\xbax.php.txt.php"), "/\xc8\xba\xc8\xbax.php.txt.php", ""},
        {MK_STR_INIT("/.php"), NULL, NULL},
        {MK_STR_INIT("/.php/x"), NULL, NULL},
        {MK_STR_INIT("/a.php\n/b"), NULL, NULL},
        {MK_STR_INIT("/a.php/\nb"), "/a.php", "/\nb"},
        {MK_STR_INIT("/"), NULL, NULL},
        {MK_STR_INIT(""), NULL, NULL},
        {MK_STR_INIT("*"), NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_str script = MK_STR_NONE, info = MK_STR_NONE;
        char *path = mk_test_guarded(rows[i].path.p, rows[i].path.len);
        bool found = mk_cgi_split(mk_str(path, rows[i].path.len), &list, &script, &info);
        if (found != (rows[i].script != NULL))
            fail_msg("%.*s", MK_STR_ARG(rows[i].path));
        if (found) {
            assert_str_equal(script, rows[i].script);
            assert_str_equal(info, rows[i].info);
        }
        mk_test_unguard(path, rows[i].path.len);
    }
}

TEST(no_extensions)
{
    struct mk_str script, info, empty = MK_STR("");
    const struct mk_conf_list none = {0}, nothing = {.items = &empty, .n = 1};
    assert_false(mk_cgi_split(MK_STR("/a.php"), &none, &script, &info));
    assert_false(mk_cgi_split(MK_STR("/a.php"), &nothing, &script, &info));
}
