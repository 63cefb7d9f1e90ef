// SPDX-License-Identifier: Apache-2.0
/* What clients and files say about paths: queries, lists, sitemaps, URLs. */
#include "fixture.h"
#include "plugins/cache/calls.h"
#include "testing.h"

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

static struct entry_key_bytes key;
static char path[PATH_BYTES];
static struct places places;

static struct entry_key_bytes *make_key(uint64_t inode, const char *name)
{
    key = (struct entry_key_bytes){.device = root_device, .inode = inode, .name_len = (uint32_t)strlen(name)};
    memcpy(key.name, name, strlen(name));
    return &key;
}

static size_t find_path(void)
{
    unsigned at = 0;
    return places_find_path(&places, &key, &at, path);
}

static void expect_path(uint64_t inode, const char *name, const char *expected)
{
    path[0] = '\0';
    make_key(inode, name);
    assert_int_equal(find_path(), strlen(expected));
    if (expected[0])
        assert_string_equal(path, expected);
}

static void open_places(void)
{
    open_cache("", "");
    more_places[0] =
        (struct mk_file_place){.device = root_device, .inode = 3, .url = MK_STR("/alias"), .name = MK_STR_NONE};
    more_places[1] =
        (struct mk_file_place){.device = root_device, .inode = 4, .url = MK_STR("/one.txt"), .name = MK_STR("x")};
    assert_int_equal(places_read(&places, site.current->default_host), 0);
}

TEST(paths_of_entries)
{
    open_places();
    expect_path(2, "a.txt", "/a.txt");
    expect_path(2, "dir/b", "/dir/b");
    expect_path(3, "a.txt", "/alias/a.txt");
    expect_path(4, "x", "/one.txt");
    places_release(&places);
    close_cache();
}

TEST(entries_of_others)
{
    open_places();
    expect_path(5, "a.txt", ""); /* another folder */
    expect_path(4, "y", "");     /* not the file of the alias */
    expect_path(2, ".secret", "");
    expect_path(2, "dir/.secret", "");
    make_key(2, "a.txt")->device = 9;
    assert_int_equal(find_path(), 0);
    make_key(2, "a.txt")->mount = 7;
    assert_int_equal(find_path(), 0);
    places_release(&places);
    close_cache();
}

/* Two aliases of a folder: an entry has two paths. */
TEST(several_paths)
{
    unsigned at = 0;
    open_places();
    places.items[2] =
        (struct mk_file_place){.device = root_device, .inode = 3, .url = MK_STR("/too"), .name = MK_STR_NONE};
    make_key(3, "a.txt");
    assert_int_equal(places_find_path(&places, &key, &at, path), 12);
    assert_string_equal(path, "/alias/a.txt");
    assert_int_equal(places_find_path(&places, &key, &at, path), 10);
    assert_string_equal(path, "/too/a.txt");
    assert_int_equal(places_find_path(&places, &key, &at, path), 0);
    places_release(&places);
    close_cache();
}

TEST(long_names)
{
    open_places();
    static char folder[PATH_BYTES];
    memset(folder, 'a', sizeof(folder));
    struct mk_str *url = &places.items[0].url, whole = *url;
    make_key(2, "b");
    *url = mk_str(folder, PATH_BYTES - 3);
    assert_int_equal(find_path(), PATH_BYTES - 1);
    assert_int_equal(path[PATH_BYTES - 1], '\0');
    url->len++;
    assert_int_equal(find_path(), 0);
    *url = whole;
    places_release(&places);
    close_cache();
}

static int read_places(void *ctx)
{
    (void)ctx;
    int err = places_read(&places, site.current->default_host);
    places_release(&places);
    return err;
}

TEST(no_memory_and_no_server)
{
    open_cache("", "");
    assert_int_equal(mk_test_failing_allocs(read_places, NULL), 1);
    site.current->n_plugins = N_PLUGINS; /* without the one that serves files */
    assert_int_equal(read_places(NULL), -ENOENT);
    site.current->n_plugins = N_PLUGINS + 1;
    close_cache();
}

TEST_FILE(make_cache_folder, mk_test_folder_remove)
