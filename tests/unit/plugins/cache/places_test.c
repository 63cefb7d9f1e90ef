// SPDX-License-Identifier: Apache-2.0
/* Which entries are a host's, and their paths there. */
#include "fixture.h"

#include "plugins/cache/places.h"

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
