// SPDX-License-Identifier: Apache-2.0
/* What clients and files say about paths: queries, lists, sitemaps, URLs. */
#include "testing.h"

#include "plugins/cache/path_list.h"

#include <errno.h>

TEST(pairs)
{
    struct mk_str text = MK_STR("&path=/a%20b&&all&x=1=2&");
    struct path_list_pair pair;
    static const struct {
        struct mk_str name, value;
    } wanted[] = {{MK_STR_INIT("path"), MK_STR_INIT("/a%20b")},
                  {MK_STR_INIT("all"), MK_STR_INIT("")},
                  {MK_STR_INIT("x"), MK_STR_INIT("1=2")}};
    for (unsigned i = 0; i < MK_COUNT_OF(wanted); i++) {
        assert_true(path_list_next_pair(&text, &pair));
        assert_true(mk_str_eq(pair.name, wanted[i].name) && mk_str_eq(pair.value, wanted[i].value));
    }
    assert_false(path_list_next_pair(&text, &pair));
}

TEST(decoded_values)
{
    char out[8];
    assert_int_equal(path_list_decode(MK_STR("a+%2Fb"), out, sizeof(out)), 4);
    assert_string_equal(out, "a /b");
    assert_int_equal(path_list_decode(MK_STR("%2"), out, sizeof(out)), -EINVAL);
    assert_int_equal(path_list_decode(MK_STR("%zz"), out, sizeof(out)), -EINVAL);
    assert_int_equal(path_list_decode(MK_STR("1234567"), out, sizeof(out)), 7);
    assert_int_equal(path_list_decode(MK_STR("12345678"), out, sizeof(out)), -ENAMETOOLONG);
}

TEST(lines)
{
    struct mk_str text = MK_STR("# comment\n\n /a \r\n\t\n/b"), line;
    assert_true(path_list_next_line(&text, &line) && mk_str_eq(line, MK_STR("/a")));
    assert_true(path_list_next_line(&text, &line) && mk_str_eq(line, MK_STR("/b")));
    assert_false(path_list_next_line(&text, &line));
}

TEST(locations)
{
    struct mk_str text = MK_STR("<url><loc> /a\n</loc></url><loc></loc><loc>/b"), entry;
    assert_true(path_list_next_location(&text, &entry) && mk_str_eq(entry, MK_STR("/a")));
    assert_true(path_list_next_location(&text, &entry) && entry.len == 0);
    assert_false(path_list_next_location(&text, &entry));
    assert_int_equal(text.len, 0);
}

static void expect(const char *entry, bool is_xml, const char *host, const char *path)
{
    static struct path_list_url url;
    assert_int_equal(path_list_read(mk_str_c(entry), is_xml, &url), 0);
    assert_true(mk_str_eq(url.host, mk_str_c(host)));
    assert_string_equal(url.path, path);
    assert_int_equal(url.path_len, strlen(path));
}

TEST(urls)
{
    expect("/a/../b%20c?x#y", false, "", "/b c");
    expect("http://example.org", false, "example.org", "/");
    expect("HTTPS://example.org:8443/a?b", false, "example.org", "/a");
    expect("http://[::1]:80/a", false, "[::1]", "/a");
    expect("http://h?x", false, "h", "/");
    expect("/a&amp;b&lt;&gt;&quot;&apos;&other;", true, "", "/a&b<>\"'&other;");
    expect("/a&amp;b", false, "", "/a&amp;b");
}

TEST(wrong_urls)
{
    static struct path_list_url url;
    static char text[8000];
    memset(text, 'a', sizeof(text));
    text[0] = '/';
    assert_int_equal(path_list_read(MK_STR("a"), false, &url), -EINVAL);
    assert_int_equal(path_list_read(MK_STR(""), false, &url), -EINVAL);
    assert_int_equal(path_list_read(MK_STR("http:///a"), false, &url), -EINVAL);
    assert_int_equal(path_list_read(MK_STR("/%00"), false, &url), -EINVAL);
    assert_int_equal(path_list_read(MK_STR("/a%2Fb"), false, &url), -ENOENT);
    assert_int_equal(path_list_read(mk_str(text, sizeof(text)), false, &url), -ENAMETOOLONG);
    assert_int_equal(path_list_read(mk_str(text, PATH_BYTES), false, &url), -ENAMETOOLONG);
}
