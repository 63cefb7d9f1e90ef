// SPDX-License-Identifier: Apache-2.0
/* Policies: the digests of scripts and styles, and what is left out. */
#include "plugins/dirlisting/policy.h"

#include "testing.h"

TEST(policies)
{
    static const struct template_codes codes = {
        .items = {{MK_STR("a{}"), false}, {MK_STR("1"), true}, {MK_STR("2"), true}}, .n = 3};
    static const struct template_codes none = {.n = 0};
    static const struct markup files = {.has_script_file = true, .has_style_file = true}, plain = {0};
    char storage[1024];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    policy_write(&out, &codes, &plain);
    assert_str_equal(mk_buf_str(&out), "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
                                       "'self'; font-src 'self'; img-src 'self' data:; style-src "
                                       "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='; script-src "
                                       "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=' "
                                       "'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='");
    out.len = 0;
    policy_write(&out, &none, &files);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'self'; script-src 'self'"));
    out.len = 0;
    policy_write(&out, &none, &plain);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'none'; script-src 'none'"));
}
