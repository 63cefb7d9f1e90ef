// SPDX-License-Identifier: Apache-2.0
/* Pages of the entries of a host in each order, and removing entries. */
#include "fixture.h"

#include "plugins/cache/calls.h"

enum { FILES = 5 };

static struct places places;

/* The page that was listed last. */
static struct {
    char paths[FILES + 1][32];
    struct scan_row rows[FILES + 1];
    unsigned n;
} page;

static void keep_row(const struct scan_row *row, void *ctx)
{
    (void)ctx;
    assert_true(page.n < COUNT(page.rows));
    snprintf(page.paths[page.n], sizeof(page.paths[0]), "%.*s", (int)row->path_len, row->path);
    page.rows[page.n++] = *row;
}

static void list(const struct scan_query *query)
{
    page.n = 0;
    assert_int_equal(scan_each(site.cache, &places, query, keep_row, NULL), 0);
}

static void expect_paths(const char *expected)
{
    char found[256] = "";
    for (unsigned i = 0; i < page.n; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i ? " " : "", page.paths[i]);
    assert_string_equal(found, expected);
}

/* Five files of 1 to 5 bytes, of which the n-th has n hits; each is loaded a second after the one before. */
static void open_with_files(void)
{
    open_cache("", "");
    assert_int_equal(places_read(&places, site.current->default_host), 0);
    for (int n = 1; n <= FILES; n++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", n);
        for (int i = 0; i < n + 2; i++)
            assert_int_equal(strlen(ask_body(name)), n);
        mk_test_pass(&w, 1000);
    }
}

static void close_with_files(void)
{
    places_release(&places);
    close_cache();
}

static struct scan_query query_of(enum scan_sort sort, unsigned limit)
{
    return (struct scan_query){.prefix = MK_STR(""),
                               .sort = sort,
                               .limit = limit,
                               .now_ms = mk_loop_now_ms(mk_worker_loop(site.worker))};
}

TEST(orders)
{
    open_with_files();
    struct scan_query query = query_of(SCAN_HITS, 100);
    list(&query);
    expect_paths("/f5 /f4 /f3 /f2 /f1");
    assert_int_equal(page.rows[0].hits, 5);
    assert_int_equal(page.rows[0].file_bytes, 5);
    assert_int_equal(page.rows[0].kind, ENTRY_BODY);
    assert_int_equal(page.rows[0].age_ms, 1000);
    query = query_of(SCAN_AGE, 100);
    list(&query);
    expect_paths("/f1 /f2 /f3 /f4 /f5");
    assert_int_equal(page.rows[0].age_ms, 5000);
    query = query_of(SCAN_NAME, 2);
    list(&query);
    expect_paths("/f1 /f2");
    query = query_of(SCAN_BYTES, 100);
    list(&query);
    assert_int_equal(page.n, FILES);
    for (unsigned i = 1; i < page.n; i++)
        assert_true(page.rows[i].memory_bytes <= page.rows[i - 1].memory_bytes);
    close_with_files();
}

/* Writes a page; returns the cursor of the next one, or NULL. */
static const char *write_page(const struct scan_query *query, char *text, size_t size, char *ret_cursor)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, size - 1);
    assert_int_equal(scan_write_entries(site.cache, &places, query, &out), 0);
    text[out.len] = '\0';
    const char *next = strstr(text, "\"next\":\"");
    if (!next)
        return NULL;
    sscanf(next, "\"next\":\"%255[^\"]", ret_cursor);
    return ret_cursor;
}

TEST(cursors)
{
    static char text[8192], cursor[256];
    open_with_files();
    for (unsigned sort = 0; sort < SCAN_SORTS; sort++) {
        struct scan_query query = query_of(sort, 2);
        unsigned pages = 0, seen = 0;
        const char *next = "";
        while (next) {
            next = write_page(&query, text, sizeof(text), cursor);
            assert_non_null(strstr(text, "\"total\":5,\"ages\":{\"minute\":5,"));
            for (const char *at = text; (at = strstr(at, "\"path\":")); at++)
                seen++;
            assert_true(++pages <= 3);
            assert_true(!next || scan_read_cursor(mk_str_c(next), sort, &query.after));
        }
        assert_int_equal(pages, 3);
        assert_int_equal(seen, FILES);
    }
    close_with_files();
}

TEST(wrong_cursors)
{
    static const char *const texts[] = {"",
                                        "5",
                                        ":0123456789abcdef",
                                        "x:0123456789abcdef",
                                        "5:0123456789abcde",
                                        "5:0123456789abcdeg",
                                        "-1:0123456789abcdef",
                                        "/a 5"};
    static struct scan_cursor cursor;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_false(scan_read_cursor(mk_str_c(texts[i]), SCAN_HITS, &cursor));
    assert_true(scan_read_cursor(MK_STR("5:0123456789abcdef"), SCAN_HITS, &cursor));
    assert_true(cursor.value == 5 && cursor.hash == UINT64_C(0x0123456789abcdef));
    assert_false(scan_read_cursor(MK_STR("a:0123456789abcdef"), SCAN_NAME, &cursor));
    assert_true(scan_read_cursor(MK_STR("/a%20b:0123456789abcdef"), SCAN_NAME, &cursor));
    assert_string_equal(cursor.path, "/a b");
}

TEST(prefixes)
{
    open_with_files();
    struct scan_query query = query_of(SCAN_NAME, 100);
    query.prefix = MK_STR("/f2");
    list(&query);
    expect_paths("/f2");
    query.prefix = MK_STR("/g");
    list(&query);
    expect_paths("");
    close_with_files();
}

static uint64_t remove_entries(const char *path, const char *prefix)
{
    const struct scan_target target = {.path = mk_str_c(path), .prefix = mk_str_c(prefix)};
    return scan_remove(site.cache, &places, &target);
}

TEST(removed)
{
    open_with_files();
    assert_int_equal(remove_entries("/f", ""), 0);
    assert_int_equal(remove_entries("/f1", ""), 1);
    assert_int_equal(remove_entries("/f1", ""), 0);
    assert_int_equal(remove_entries("", "/f2"), 1);
    clear_calls();
    assert_string_equal(ask_body("f3"), "333");
    assert_int_equal(disk.opens, 0);
    assert_int_equal(remove_entries("", "/"), 3);
    ask_body("f3");
    assert_int_equal(disk.opens, 1);
    close_with_files();
}

/* An entry is removed by each of its paths. */
TEST(removed_by_another_path)
{
    open_with_files();
    places_release(&places);
    more_places[0] =
        (struct mk_file_place){.device = root_device, .inode = 2, .url = MK_STR("/too"), .name = MK_STR_NONE};
    assert_int_equal(places_read(&places, site.current->default_host), 0);
    assert_int_equal(remove_entries("/too/f1", ""), 1);
    assert_int_equal(remove_entries("/f2", ""), 1);
    assert_int_equal(remove_entries("", "/too/"), 3);
    close_with_files();
}

/* Entries of other folders are not the host's. */
TEST(entries_of_others)
{
    open_with_files();
    places.items[0].inode = 9;
    struct scan_query query = query_of(SCAN_HITS, 100);
    list(&query);
    assert_int_equal(page.n, 0);
    assert_int_equal(remove_entries("", "/"), 0);
    close_with_files();
}

/* The variant is removed with its file: a key says which coding a name has. */
TEST(variants)
{
    static const struct {
        const char *name;
        enum mk_coding coding;
    } names[] = {{"v.js", MK_CODING_IDENTITY}, {"v.js.gz", MK_CODING_GZIP}, {"v.js.x", MK_CODING_IDENTITY}};
    open_with_files();
    for (size_t i = 0; i < COUNT(names); i++) {
        struct mk_file_name name = {.root = &root, .device = root_device, .inode = 2, .name = mk_str_c(names[i].name)};
        struct entry_key key;
        name.coding = (uint8_t)names[i].coding;
        assert_true(entry_make_key(&key, site.cache->store, &name, 0));
        struct mk_item *item =
            mk_store_draft(site.cache->store, ENTRY_MISSING, key.hash, &key.bytes, key.len, sizeof(struct entry));
        assert_non_null(item);
        *entry_of(item) = (struct entry){.fd = -1};
        mk_store_put(site.cache->store, item);
    }
    assert_int_equal(remove_entries("/v.js", ""), 2);
    assert_int_equal(remove_entries("/v.js.x", ""), 1);
    close_with_files();
}

static int list_all(void *ctx)
{
    static char text[8192];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    return scan_write_entries(site.cache, &places, ctx, &out);
}

TEST(no_memory)
{
    open_with_files();
    struct scan_query query = query_of(SCAN_HITS, 3);
    assert_true(mk_test_failing_allocs(list_all, &query) >= 4); /* the page, and the path of each row */
    close_with_files();
}

static int make_files(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    for (int n = 1; n <= FILES; n++) {
        char name[32], text[] = "55555";
        snprintf(name, sizeof(name), "root/f%d", n);
        memset(text, '0' + n, sizeof(text) - 1);
        mk_test_write(name, mk_str(text, (size_t)n));
    }
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)
