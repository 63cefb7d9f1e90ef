// SPDX-License-Identifier: Apache-2.0
/* Text for pages of any bytes. */
#include "testing.h"

#include "duda/core/common/sanitize.h"

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *text, *clean, *html;
} rows[] = {
    {"", "", ""},
    {"a b", "a b", "a b"},
    {"<b>&\"'</b>", "<b>&\"'</b>", "&lt;b&gt;&amp;&quot;&#39;&lt;/b&gt;"},
    {"\\\"", "\\\"", "\\&quot;"},
    {"a\nb\x1b[31m\x7f", "a b [31m ", "a b [31m "},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", NULL},
    {"\xc2\x85\xc2\xa0", " \xc2\xa0", NULL}, /* NEXT LINE is a control character of C1 */
    {"\xff"
     "a\xfe",
     BAD "a" BAD, NULL},         /* no byte of UTF-8 */
    {"\xc0\xaf", BAD BAD, NULL}, /* longer than needed */
    {"\xe0\x80\xaf", BAD BAD BAD, NULL},
    {"\xf0\x80\x80\xaf", BAD BAD BAD BAD, NULL},
    {"\xed\xa0\x80", BAD BAD BAD, NULL},         /* a surrogate */
    {"\xf4\x90\x80\x80", BAD BAD BAD BAD, NULL}, /* beyond U+10FFFF */
    {"\xe2\x82", BAD, NULL},                     /* it is cut: one for its maximal part */
    {"\xe2\x82"
     "a",
     BAD "a", NULL},
    {"\x80", BAD, NULL},
};

TEST(texts)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[256];
        struct mk_buf out;
        size_t len = strlen(rows[i].text);
        char *data = mk_test_guarded(rows[i].text, len);
        size_t n = sanitize_text(text, sizeof(text), mk_str(data, len));
        assert_str_equal(mk_str(text, n), rows[i].clean);
        mk_buf_init_fixed(&out, text, sizeof(text));
        sanitize_html(&out, mk_str(data, len));
        assert_str_equal(mk_buf_str(&out), rows[i].html ? rows[i].html : rows[i].clean);
        mk_test_unguard(data, len);
    }
}

TEST(a_text_is_cut_between_characters)
{
    static const struct mk_str text = MK_STR("a\xe2\x82\xac\xff");
    static const size_t lengths[] = {0, 1, 1, 1, 4, 4, 4, 7, 7};
    for (size_t size = 0; size < COUNT(lengths); size++) {
        char *to = mk_test_guarded("........", size);
        assert_int_equal(sanitize_text(to, size, text), lengths[size]);
        mk_test_unguard(to, size);
    }
}
