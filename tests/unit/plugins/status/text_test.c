// SPDX-License-Identifier: Apache-2.0
/*
 * UTF-8.
 */
#include "testing.h"

#include "plugins/status/text.h"

static void check_utf8(const char *bytes, size_t len, const char *text)
{
    struct mk_buf out;
    char *copy = mk_test_guarded(bytes, len);
    mk_buf_init(&out, 4096);
    text_write(&out, mk_str(copy, len));
    assert_str_equal(mk_buf_str(&out), text);
    mk_buf_release(&out);
    mk_test_unguard(copy, len);
}

#define BAD "\xef\xbf\xbd"
#define CHECK_UTF8(bytes, text) check_utf8(bytes, sizeof(bytes) - 1, text)

TEST(utf8)
{
    CHECK_UTF8("plain", "plain");
    CHECK_UTF8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92");
    CHECK_UTF8("\xc3", BAD);
    CHECK_UTF8("a\xe2\x82", "a" BAD BAD);
    CHECK_UTF8("\xc0\xaf", BAD BAD);                 /* longer than needed */
    CHECK_UTF8("\xe0\x9f\xbf", BAD BAD BAD);         /* the same */
    CHECK_UTF8("\xed\xa0\x80", BAD BAD BAD);         /* a surrogate */
    CHECK_UTF8("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* beyond U+10FFFF */
    CHECK_UTF8("\xf0\x9f\x90x", BAD BAD BAD "x");
    CHECK_UTF8("\xff\x80z", BAD BAD "z");
}
