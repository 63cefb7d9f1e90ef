// SPDX-License-Identifier: Apache-2.0
/* Codecs: HTML references, JSON strings, path escapes, hexadecimal digits. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/escape.h>

struct row {
    struct mk_str in;
    const char *out;
};

static void check(void (*codec)(struct mk_buf *, struct mk_str), const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *bytes = mk_test_guarded(rows[i].in.p, rows[i].in.len);
        struct mk_buf b;
        mk_buf_init(&b, 4096);
        codec(&b, mk_str(bytes, rows[i].in.len));
        assert_int_equal(b.err, 0);
        assert_str_equal(mk_buf_str(&b), rows[i].out);
        mk_buf_release(&b);
        mk_test_unguard(bytes, rows[i].in.len);
    }
}

TEST(escapes_html)
{
    const struct row rows[] = {
        {MK_STR(""), ""},
        {MK_STR("a b.txt"), "a b.txt"},
        {MK_STR("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"},
        {MK_STR("\x1b[0m\n\0\x7f"), "&#xfffd;[0m&#xfffd;&#xfffd;&#xfffd;"},
        {MK_STR("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f"},
    };
    check(mk_html_escape, rows, COUNT(rows));
}

TEST(encodes_paths)
{
    const struct row rows[] = {
        {MK_STR_NONE, ""},
        {MK_STR("/a-b._~!$&'()*+,;=:@/Z9"), "/a-b._~!$&'()*+,;=:@/Z9"},
        {MK_STR("/a b%20?#"), "/a%20b%2520%3F%23"},
        {MK_STR("/\xc3\xbc\xff"), "/%C3%BC%FF"},
        {MK_STR("/\r\n\0\"<>\\^`{|}[]\x7f"), "/%0D%0A%00%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D%7F"},
    };
    check(mk_path_encode, rows, COUNT(rows));
}

TEST(encodes_paths_with_encoded_slashes)
{
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_path_encode_kept(&out, MK_STR("/a b%2Fc%2Fd%"), true);
    assert_str_equal(mk_buf_str(&out), "/a%20b%2Fc%2Fd%25");
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_path_encode_kept(&out, MK_STR("/a%2Fb"), false);
    assert_str_equal(mk_buf_str(&out), "/a%252Fb");
}

TEST(encodes_raw_paths)
{
    const struct row rows[] = {
        {MK_STR_NONE, ""},
        {MK_STR("/a%3Bb%2f//../c;d"), "/a%3Bb%2f//../c;d"},
        {MK_STR("/\"<\\>^`{|}\xff%41"), "/%22%3C%5C%3E%5E%60%7B%7C%7D%FF%41"},
    };
    check(mk_path_encode_raw, rows, COUNT(rows));
}

TEST(escapes_json)
{
    const struct row rows[] = {
        {MK_STR(""), ""},
        {MK_STR("a b </script> '&'"), "a b </script> '&'"},
        {MK_STR("\"\\"), "\\\"\\\\"},
        {MK_STR("\n\0\x1b[31m\x7f"), "\\u000a\\u0000\\u001b[31m\\u007f"},
        {MK_STR("\xc2\x80\xc2\x9b\xc2\xa0"), "\\u0080\\u009b\xc2\xa0"}, /* of C1, and a blank behind them */
        {MK_STR("gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x92"), "gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x92"},
        {MK_STR("\xff\xc2"), "\xef\xbf\xbd\xef\xbf\xbd"},
        {MK_STR("\xf0\x9f\x90\""), "\xef\xbf\xbd\\\""},
    };
    check(mk_json_escape, rows, COUNT(rows));
}

TEST(escapes_quoted_strings)
{
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_quoted_escape(&out, MK_STR("a \"b\" \\ \xc3\xbc"));
    assert_str_equal(mk_buf_str(&out), "a \\\"b\\\" \\\\ \xc3\xbc");
}

TEST(full_buffer_tells)
{
    char storage[8];
    struct mk_buf b;
    mk_buf_init_fixed(&b, storage, sizeof(storage));
    mk_html_escape(&b, MK_STR("<<<"));
    assert_int_equal(b.err, -ENOBUFS);
    mk_buf_release(&b);
    mk_path_encode(&b, MK_STR("      "));
    assert_int_equal(b.err, -ENOBUFS);
}

TEST(hex_values)
{
    for (int c = -128; c < 256; c++) {
        const char *digits = "0123456789abcdef", *upper = "0123456789ABCDEF";
        const char *at = c > 0 ? strchr(digits, c) : NULL;
        if (!at && c > 0 && (at = strchr(upper, c)))
            at = digits + (at - upper);
        assert_int_equal(mk_hex_value((char)c), at ? at - digits : -1);
    }
}

TEST(percent_values)
{
    static const struct {
        struct mk_str text;
        int value;
    } rows[] = {
        {MK_STR("%41"), 'A'}, {MK_STR("%fF1"), 0xff}, {MK_STR("%00"), 0},  {MK_STR("%4"), -1},   {MK_STR("%"), -1},
        {MK_STR("%g1"), -1},  {MK_STR("%1g"), -1},    {MK_STR("41 "), -1}, {MK_STR("%%41"), -1}, {MK_STR(""), -1},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk_percent_value(rows[i].text.p, rows[i].text.len), rows[i].value);
}

TEST(decodes_paths)
{
    static const struct {
        const char *path;
        struct mk_str decoded;
        bool is_whole;
    } rows[] = {
        {"", MK_STR(""), true},
        {"/a%20b/%2e%2E", MK_STR("/a b/.."), true},
        {"/%2f%00", MK_STR("/\57\0"), true},
        {"%2541", MK_STR("%41"), true},
        {"/100%", MK_STR("/100%"), false},
        {"/%zz%41", MK_STR("/%zzA"), false},
        {"/a+b?c#d", MK_STR("/a+b?c#d"), true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[32];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        assert_int_equal(mk_path_decode(&out, mk_str_c(rows[i].path)), rows[i].is_whole);
        struct mk_str decoded = mk_buf_str(&out);
        assert_int_equal(decoded.len, rows[i].decoded.len);
        assert_memory_equal(decoded.p, rows[i].decoded.p, decoded.len);
    }
}

TEST(hexadecimal_digits)
{
    char text[9] = "????????";
    assert_ptr_equal(mk_hex_write(text, "\x00\x9a\xff", 3), text + 6);
    assert_memory_equal(text, "009aff??", 8);
    assert_ptr_equal(mk_hex_write(text, "", 0), text);
}
