// SPDX-License-Identifier: Apache-2.0
/* Escaping of any bytes, sizes and dates, and the kinds of files. */
#include "plugins/dirlisting/template.h"

#include "testing.h"

static char storage[4096];

static struct mk_str escape(struct mk_str text, bool lines)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    text_html(&out, text, lines);
    assert_int_equal(out.err, 0);
    return mk_buf_str(&out);
}

#define BAD "\xef\xbf\xbd"

TEST(html)
{
    static const struct {
        struct mk_str text;
        const char *html;
    } rows[] = {
        {MK_STR(""), ""},
        {MK_STR("plain name.txt"), "plain name.txt"},
        {MK_STR("<b>\"&'"), "&lt;b&gt;&quot;&amp;&#39;"},
        {MK_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92"},
        {MK_STR("a\xff z"), "a" BAD " z"},
        {MK_STR("a\xc3"), "a" BAD},
        {MK_STR("\xc3<"), BAD "&lt;"},
        {MK_STR("\xc0\xaf"), BAD BAD},                 /* "/" in two bytes */
        {MK_STR("\xed\xa0\x80"), BAD BAD BAD},         /* a surrogate */
        {MK_STR("\xf4\x90\x80\x80"), BAD BAD BAD BAD}, /* above U+10FFFF */
        {MK_STR("a\nb\tc\rd"), "a\xe2\x90\x8a"
                               "b\xe2\x90\x89"
                               "c\xe2\x90\x8d"
                               "d"},
        {MK_STR("\x1b[31m\x7f"), BAD "[31m" BAD},
        {MK_STR("\xc2\x85"), BAD}, /* U+0085, a control character */
        {MK_STR("gpj\xe2\x80\xae"
                "exe"),
         "gpj" BAD "exe"}, /* U+202E: right to left */
        {MK_STR("a\xe2\x80\x8b"
                "b"),
         "a" BAD "b"},                 /* U+200B: no width */
        {MK_STR("\xef\xbf\xbe"), BAD}, /* U+FFFE is no character */
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str_equal(escape(rows[i].text, false), rows[i].html);
    assert_str_equal(escape(MK_STR("a\r\n\tb<\x01"), true), "a\n\tb&lt;" BAD);
}

TEST(uri)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    text_uri(&out, MK_STR("aZ9-._~ /?#%:&'\"\n\xff"));
    assert_str_equal(mk_buf_str(&out), "aZ9-._~%20%2F%3F%23%25%3A%26%27%22%0A%FF");
}

TEST(sizes)
{
    static const struct {
        uint64_t bytes;
        const char *size, *exact;
    } rows[] = {
        {0, "0 B", "0 bytes"},
        {1, "1 B", "1 byte"},
        {1023, "1023 B", "1,023 bytes"},
        {1024, "1.0 KB", "1,024 bytes"},
        {1536, "1.5 KB", "1,536 bytes"},
        {10188, "9.9 KB", "10,188 bytes"},
        {10240, "10 KB", "10,240 bytes"},
        {1048575, "1.0 MB", "1,048,575 bytes"},
        {1000000000, "954 MB", "1,000,000,000 bytes"},
        {UINT64_MAX, "16 EB", "18,446,744,073,709,551,615 bytes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_str_equal(text_size(storage, rows[i].bytes), rows[i].size);
        assert_str_equal(text_exact_size(storage, rows[i].bytes), rows[i].exact);
    }
}

TEST(times)
{
    assert_str_equal(text_time(storage, 784111777), "1994-11-06 08:49");
    assert_str_equal(text_iso_time(storage, 784111777), "1994-11-06T08:49:37Z");
    assert_str_equal(text_time(storage, -1), "1969-12-31 23:59");
    assert_str_equal(text_time(storage, INT64_MAX), "");
    assert_str_equal(text_time(storage, INT64_MIN), "");
    assert_str_equal(text_time(storage, 253402300800), ""); /* the year 10000 */
}

TEST(kinds)
{
    static const struct {
        const char *name, *kind;
    } rows[] = {
        {"a.7z", "archive"}, {"a.ZIP", "archive"}, {"a.b.jpg", "image"},  {"a.zst", "archive"},
        {"a.webm", "video"}, {"a.md", "text"},     {"a.c", "code"},       {"a.pdf", "document"},
        {"a.woff2", "font"}, {"a.exe", "program"}, {"a.mp3", "audio"},    {"a", "file"},
        {"README", "text"},  {"Makefile", "code"}, {"a.", "file"},        {".jpg", "file"},
        {"", "file"},        {"zst", "archive"},   {"a.unknown", "file"}, {"a.averylongextension", "file"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str_equal(kind_of(mk_str_c(rows[i].name)), rows[i].kind);
}
