// SPDX-License-Identifier: Apache-2.0
/* Strings: comparison, trimming, words, tokens, lists, numbers, distances. */
#include "testing.h"

TEST(compares)
{
    assert_true(mk_str_eq(MK_STR("abc"), mk_str_c("abc")));
    assert_true(mk_str_eq(MK_STR_NONE, MK_STR("")));
    assert_false(mk_str_eq(MK_STR("abc"), MK_STR("abC")));
    assert_false(mk_str_eq(MK_STR("abc"), MK_STR("ab")));
    assert_true(mk_str_eq_secret(MK_STR("abc"), mk_str_c("abc")) && mk_str_eq_secret(MK_STR_NONE, MK_STR("")));
    assert_false(mk_str_eq_secret(MK_STR("abc"), MK_STR("abC")) || mk_str_eq_secret(MK_STR("abc"), MK_STR("Abc")));
    assert_false(mk_str_eq_secret(MK_STR("abc"), MK_STR("ab")) || mk_str_eq_secret(MK_STR(""), MK_STR("a")));
    assert_true(mk_str_ieq(MK_STR("Content-LENGTH"), MK_STR("content-length")));
    assert_false(mk_str_ieq(MK_STR("@["), MK_STR("`{")));
    assert_false(mk_str_ieq(MK_STR("\xc3\x84"), MK_STR("\xc3\xa4")));
    assert_true(mk_str_starts(MK_STR("abc"), MK_STR("ab")));
    assert_true(mk_str_starts(MK_STR("abc"), MK_STR_NONE));
    assert_false(mk_str_starts(MK_STR("a"), MK_STR("ab")));
    assert_true(mk_str_ends(MK_STR("abc"), MK_STR("bc")));
    assert_true(mk_str_ends(MK_STR_NONE, MK_STR_NONE));
    assert_false(mk_str_ends(MK_STR("abc"), MK_STR("BC")));
    assert_false(mk_str_ends(MK_STR("c"), MK_STR("bc")));
    assert_true(mk_str_istarts(MK_STR("HTTPS://a"), MK_STR("https://")));
    assert_false(mk_str_istarts(MK_STR("http"), MK_STR("https")));
    assert_true(mk_str_iends(MK_STR("a.PHP"), MK_STR(".php")));
    assert_false(mk_str_iends(MK_STR("php"), MK_STR(".php")));
    assert_int_equal(mk_str_c(NULL).len, 0);
}

TEST(names)
{
    static const char marks[] = "-_";
    assert_true(mk_str_is_name(MK_STR("Az-09_"), marks));
    assert_false(mk_str_is_name(MK_STR_NONE, marks));
    for (int c = -128; c < 128; c++) {
        char byte = (char)c;
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        assert_int_equal(mk_str_is_name(mk_str(&byte, 1), marks), is_alnum || c == '-' || c == '_');
        assert_int_equal(mk_is_name_byte(byte, ""), is_alnum);
    }
}

TEST(trims)
{
    assert_str_equal(mk_str_trim(MK_STR(" \t a b\t ")), "a b");
    assert_str_equal(mk_str_trim(MK_STR("\r\na")), "\r\na");
    assert_str_equal(mk_str_trim(MK_STR(" \t ")), "");
    assert_str_equal(mk_str_trim(MK_STR_NONE), "");
}

/* A byte of 0 is one of no set, although each set ends with one. */
TEST(sets_of_bytes)
{
    static const char nul[] = "a\0/b";
    assert_true(mk_is_one_of('/', "?/") && !mk_is_one_of('a', "?/") && !mk_is_one_of('\0', "?/"));
    assert_int_equal(mk_str_visible_len(MK_STR("a~!"), ""), 3);
    assert_int_equal(mk_str_visible_len(MK_STR("a/b"), "/"), 1);
    assert_int_equal(mk_str_visible_len(mk_str(nul, 4), "/"), 1);
    static const char *const hidden[] = {" ", "a b", "\t", "\x7f", "a\x80", "\xc3\xa4", "\x1f"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        assert_false(mk_str_is_visible(mk_str_c(hidden[i]), ""));
    assert_true(mk_str_is_visible(MK_STR(""), "/") && mk_str_is_visible(MK_STR_NONE, "/"));
    assert_true(mk_str_eq(mk_str_until(MK_STR("host:80/path"), "/:"), MK_STR("host")));
    assert_true(mk_str_eq(mk_str_until(MK_STR("host"), "/:"), MK_STR("host")));
    assert_int_equal(mk_str_until(mk_str(nul, 4), "/").len, 2);
    assert_int_equal(mk_str_until(mk_str(nul, 4), "/:").len, 2);
    assert_int_equal(mk_str_until(MK_STR("a/b"), "").len, 3);
    assert_int_equal(mk_str_until(MK_STR("ab"), "/").len, 2);
    assert_int_equal(mk_str_until(MK_STR_NONE, "/").len, 0);
    assert_true(mk_str_eq(mk_str_strip_end(MK_STR("/a/b//"), "/"), MK_STR("/a/b")));
    assert_int_equal(mk_str_strip_end(MK_STR("\r\n"), "\r\n").len, 0);
    assert_int_equal(mk_str_strip_end(mk_str(nul, 2), "a").len, 2);
}

TEST(compares_in_order)
{
    static const struct mk_str sorted[] = {MK_STR_INIT(""),   MK_STR_INIT("a"), MK_STR_INIT("a\0"),
                                           MK_STR_INIT("ab"), MK_STR_INIT("b"), MK_STR_INIT("\xff")};
    for (size_t i = 0; i < COUNT(sorted); i++)
        for (size_t j = 0; j < COUNT(sorted); j++) {
            int order = mk_str_compare(sorted[i], sorted[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    assert_int_equal(mk_str_compare(MK_STR_NONE, MK_STR("")), 0);
}

TEST(dots)
{
    assert_true(mk_str_is_dots(MK_STR(".")) && mk_str_is_dots(MK_STR("..")));
    static const char *const names[] = {"", "...", "a", ".a", "a.", "/.", "./"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_false(mk_str_is_dots(mk_str_c(names[i])));
}

TEST(splits_lines)
{
    struct mk_str rest = MK_STR("one\r\n\n\rtwo\r\r\nend\r");
    static const char *const lines[] = {"one", "", "\rtwo\r", "end"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_true(rest.len > 0);
        assert_true(mk_str_eq(mk_str_split_line(&rest), mk_str_c(lines[i])));
    }
    assert_int_equal(rest.len, 0);
    assert_int_equal(mk_str_split_line(&rest).len, 0);
}

TEST(finds_in_tables)
{
    static const struct mk_str names[] = {MK_STR_INIT("ETag"), MK_STR_INIT("Location")};
    assert_true(mk_str_is_any(MK_STR("etag"), names, 2) && mk_str_is_any(MK_STR("LOCATION"), names, 2));
    assert_false(mk_str_is_any(MK_STR("eta"), names, 2) || mk_str_is_any(MK_STR("Location"), names, 1));
    assert_false(mk_str_is_any(MK_STR(""), names, 0));
}

TEST(truncates)
{
    assert_str_equal(mk_str_truncate(MK_STR("abc"), 4), "abc");
    assert_str_equal(mk_str_truncate(MK_STR("abc"), 3), "abc");
    assert_str_equal(mk_str_truncate(MK_STR("abc"), 2), "ab");
    assert_str_equal(mk_str_truncate(MK_STR("abc"), 0), "");
    assert_str_equal(mk_str_truncate(MK_STR_NONE, 2), "");
}

TEST(splits)
{
    struct mk_str text = MK_STR("a,,bc,"), none = MK_STR_NONE, rest = text;
    assert_str_equal(mk_str_split(&rest, ','), "a");
    assert_str_equal(mk_str_split(&rest, ','), "");
    assert_str_equal(mk_str_split(&rest, ','), "bc");
    assert_str_equal(rest, "");
    assert_str_equal(mk_str_split(&rest, ','), "");
    rest = text;
    assert_str_equal(mk_str_split(&rest, ';'), "a,,bc,");
    assert_str_equal(rest, "");
    assert_ptr_equal(rest.p, text.p + text.len);
    assert_str_equal(mk_str_split(&none, ','), "");
    assert_null(none.p);
}

TEST(walks_lists)
{
    static const struct {
        const char *list, *elements[4];
    } cases[] = {
        {"", {NULL}},
        {" , ,\t,", {NULL}},
        {"close", {"close"}},
        {"foo, close", {"foo", "close"}},
        {",a,,b ,", {"a", "b"}},
        {"\"a,b\";q=1, c", {"\"a,b\";q=1", "c"}},
        {"\"a\\\",b\", c", {"\"a\\\",b\"", "c"}},
        {"\"open, a", {"\"open, a"}},
        {"\"end\\", {"\"end\\"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].list), n = 0;
        char *bytes = mk_test_guarded(cases[i].list, len);
        struct mk_str rest = mk_str(bytes, len), element;
        while (mk_str_next(&rest, &element)) {
            assert_non_null(cases[i].elements[n]);
            assert_str_equal(element, cases[i].elements[n++]);
        }
        assert_null(cases[i].elements[n]);
        assert_int_equal(rest.len, 0);
        mk_test_unguard(bytes, len);
    }
}

TEST(reads_numbers)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool ok;
        uint64_t value;
    } cases[] = {
        {"0", 0, true, 0},
        {"00080", 65535, true, 80},
        {"65535", 65535, true, 65535},
        {"65536", 65535, false, 0},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999", UINT64_MAX, false, 0},
        {"", 10, false, 0},
        {"-1", 10, false, 0},
        {"+1", 10, false, 0},
        {" 1", 10, false, 0},
        {"1 ", 10, false, 0},
        {"0x1", 10, false, 0},
        {"1\xb2", 100, false, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t value = 4711;
        assert_int_equal(mk_str_u64(mk_str_c(cases[i].text), cases[i].max, &value), cases[i].ok);
        assert_int_equal(value, cases[i].ok ? cases[i].value : 4711);
    }
}

TEST(measures_distances)
{
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"Listen", "listen", 0},
        {"Lisetn", "Listen", 1},
        {"Listn", "Listen", 1},
        {"Listeen", "Listen", 1},
        {"kitten", "sitting", 3},
        {"ca", "abc", 3},
    };
    char lengthy[65];
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(mk_str_distance(mk_str_c(cases[i].a), mk_str_c(cases[i].b)), cases[i].distance);
    memset(lengthy, 'x', sizeof(lengthy));
    assert_int_equal(mk_str_distance(mk_str(lengthy, 64), mk_str(lengthy, 64)), 0);
    assert_int_equal(mk_str_distance(mk_str(lengthy, 65), mk_str(lengthy, 65)), 64);
}

TEST(finds_in_lists)
{
    assert_true(mk_str_list_has(MK_STR("Origin, accept-encoding"), MK_STR("Accept-Encoding")));
    assert_true(mk_str_list_has(MK_STR("max-age=5 ,, No-Transform"), MK_STR("no-transform")));
    assert_false(mk_str_list_has(MK_STR("x-no-transform, no-transform=1"), MK_STR("no-transform")));
    assert_false(mk_str_list_has(MK_STR("a=\"b, no-transform\""), MK_STR("no-transform")));
    assert_false(mk_str_list_has(MK_STR(""), MK_STR("*")));
    assert_false(mk_str_list_has(MK_STR_NONE, MK_STR("*")));
}

TEST(cuts_words)
{
    struct mk_str rest = MK_STR("  one\ttwo   three ");
    assert_str_equal(mk_str_next_word(&rest), "one");
    assert_str_equal(mk_str_next_word(&rest), "two");
    assert_str_equal(mk_str_next_word(&rest), "three");
    assert_int_equal(mk_str_next_word(&rest).len, 0);
    assert_int_equal(rest.len, 0);
}

TEST(skips_blanks)
{
    struct mk_str s = MK_STR(" \t x "), none = MK_STR("\t ");
    mk_str_skip_blanks(&s);
    assert_str_equal(s, "x ");
    mk_str_skip_blanks(&none);
    assert_int_equal(none.len, 0);
    assert_str_equal(mk_str_after(s, 1), " ");
    assert_int_equal(mk_str_after(s, 2).len, 0);
}

TEST(knows_tokens)
{
    static const char others[] = "!#$%&'*+-.^_`|~"; /* tchar of RFC 9110 section 5.6.2, without letters and digits */
    for (int c = 0; c < 256; c++) {
        bool expected = (c >= '0' && c <= '9') || (mk_lower((char)c) >= 'a' && mk_lower((char)c) <= 'z') ||
                        memchr(others, c, sizeof(others) - 1);
        assert_int_equal(mk_is_token_byte((char)c), expected);
    }
    assert_int_equal(mk_str_token_len(MK_STR("X-One: 1")), 5);
    assert_true(mk_str_is_token(MK_STR("X-One")));
    assert_false(mk_str_is_token(MK_STR("X One")));
    assert_false(mk_str_is_token(MK_STR("")));
}
