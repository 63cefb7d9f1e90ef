// SPDX-License-Identifier: Apache-2.0
/* Readings of small files that requests of one turn share. */
#include "folder.h"

#include "plugins/static/static.h"

static struct mk_str index_names[] = {MK_STR("index.html")};
static struct static_settings settings = {.index = {index_names, 1}};
static struct static_host plain_host;
static struct static_site one, other;
static struct small_file_cache recent;

static char asked[5000];

static struct find_result find_at(struct static_site *site, uint64_t turn, const char *path)
{
    struct mk_accept accept = {{0}};
    struct mk_str name = mk_str(asked, strlen(path)); /* each request has its own path */
    memset(asked, 'x', sizeof(asked));
    memcpy(asked, path, name.len + 1);
    return mk__static_small_file_cache_find(&recent, turn, &(struct static_location){.site = site, .path = name},
                                            &(struct find_mode){.accept = &accept, .cached = true});
}

/* "read TEXT" from a descriptor, "shared TEXT" when there was none, "nothing" or "directory". */
static const char *ask_at(struct static_site *site, uint64_t turn, const char *path)
{
    static char text[SMALL_FILE_BYTES_MAX + 32];
    struct find_result f = find_at(site, turn, path);
    struct mk_str name = mk_str(asked, strlen(path));
    if (f.kind != FOUND_FILE)
        return f.kind == FOUND_DIRECTORY ? "directory" : "nothing";
    struct mk_str expected = asked[name.len - 1] == '/' ? MK_STR("index.html") : name;
    assert_true(mk_str_eq(f.name, expected));
    if (f.content.p) {
        assert_int_equal(f.fd, -1);
        assert_int_equal(f.content.len, f.bytes);
        snprintf(text, sizeof(text), "shared %.*s", MK_STR_ARG(f.content));
        return text;
    }
    int len = snprintf(text, sizeof(text), "read ");
    ssize_t n = read(f.fd, text + len, SMALL_FILE_BYTES_MAX);
    assert_true(n >= 0);
    text[len + n] = '\0';
    close(f.fd);
    return text;
}

static const char *ask(uint64_t turn, const char *path)
{
    return ask_at(&one, turn, path);
}

TEST(from_the_second_on)
{
    assert_string_equal(ask(1, "/a.txt"), "read first");
    assert_string_equal(ask(1, "/a.txt"), "shared first");
    assert_string_equal(ask(1, "/a.txt"), "shared first");
    assert_string_equal(ask(2, "/a.txt"), "read first");
}

/* And not even that long without a second request for it. */
TEST(for_one_turn)
{
    ask(10, "/a.txt");
    mk_test_write("root/a.txt", MK_STR("second"));
    assert_string_equal(ask(10, "/a.txt"), "shared second");
    mk_test_write("root/a.txt", MK_STR("third one"));
    assert_string_equal(ask(10, "/a.txt"), "shared second");
    assert_string_equal(ask(11, "/a.txt"), "read third one");
    assert_string_equal(ask(11, "/a.txt"), "shared third one");
    mk_test_write("root/a.txt", MK_STR("first"));
}

TEST(others_in_between)
{
    ask(20, "/a.txt");
    ask(20, "/a.txt");
    assert_string_equal(ask(20, "/sub/"), "read index");
    assert_string_equal(ask(20, "/a.txt"), "read first");
    assert_string_equal(ask(20, "/a.txt"), "shared first");
    assert_string_equal(ask(20, "/a.tx"), "nothing");
    assert_string_equal(ask(20, "/a.txt"), "read first");
}

TEST(each_site_has_its_own)
{
    ask(30, "/a.txt");
    assert_string_equal(ask_at(&other, 30, "/a.txt"), "read other");
    assert_string_equal(ask_at(&other, 30, "/a.txt"), "shared other");
    assert_string_equal(ask(30, "/a.txt"), "read first");
}

TEST(an_index)
{
    assert_string_equal(ask(40, "/sub/"), "read index");
    assert_string_equal(ask(40, "/sub/"), "shared index");
    assert_string_equal(ask(40, "/sub/"), "shared index");
}

TEST(what_is_no_file)
{
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ask(50, "/none"), "nothing");
        assert_string_equal(ask(51, "/sub"), "directory");
    }
    mk_test_write("root/none", MK_STR("new"));
    assert_string_equal(ask(50, "/none"), "read new");
    remove(mk_test_path("root/none"));
}

TEST(sizes)
{
    static char text[SMALL_FILE_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text));
    for (size_t bytes = 0; bytes <= sizeof(text); bytes += bytes ? 1 : SMALL_FILE_BYTES_MAX - 1) {
        mk_test_write("root/sized", mk_str(text, bytes));
        ask(60 + bytes, "/sized");
        const char *answer = ask(60 + bytes, "/sized");
        assert_true(mk_str_starts(mk_str_c(answer), mk_str_c(bytes > SMALL_FILE_BYTES_MAX ? "read " : "shared ")));
    }
}

/* Files of the kernel have more to say than their size tells. */
TEST(a_size_that_is_wrong)
{
    struct static_site kernel = one;
    kernel.in_memory = true;
    kernel.root_fd = open("/proc/sys/kernel", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask_at(&kernel, 70, "/ostype"), "read Linux\n");
    close(kernel.root_fd);
}

TEST(paths_that_are_long)
{
    char path[SMALL_FILE_PATH_BYTES_MAX + 2];
    for (size_t len = SMALL_FILE_PATH_BYTES_MAX; len <= SMALL_FILE_PATH_BYTES_MAX + 1; len++) {
        for (size_t i = 0; i < len; i++)
            path[i] = i % 2 ? '.' : '/';
        memcpy(path + len - 6, "/a.txt", 7);
        ask(80 + len, path);
        assert_string_equal(ask(80 + len, path), len > SMALL_FILE_PATH_BYTES_MAX ? "read first" : "shared first");
    }
}

/* What another client would get in another coding is asked for anew. */
TEST(variants)
{
    struct static_host compressed = {.codings = {MK_CODING_GZIP}, .n_codings = 1};
    struct static_site varied = one;
    varied.host = &compressed;
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask_at(&varied, 90, "/a.txt"), "read first");
}

static struct mk_file describe(const struct find_result *f, const char *type)
{
    return (struct mk_file){.fd = f->fd,
                            .content = f->content,
                            .bytes = f->bytes,
                            .mtime_seconds = 1000000000,
                            .version = 1,
                            .type = mk_str_c(type),
                            .block = f->block,
                            .owner = f->owner,
                            .owned = f->owned};
}

static void add_lines(const struct find_result *f, const char *type)
{
    struct mk_file file = describe(f, type);
    mk__static_small_file_cache_add_lines(&file);
}

static void assert_has_line(const struct find_result *f, const char *line)
{
    assert_non_null(f->block);
    assert_non_null(memmem(f->block->text.p, f->block->text.len, line, strlen(line)));
}

/* The lines are those of the request that has read the file, for the requests after it in this turn. */
TEST(lines_of_the_head)
{
    struct find_result f = find_at(&one, 200, "/a.txt");
    assert_null(f.owner);
    add_lines(&f, "text/plain");
    close(f.fd);
    f = find_at(&one, 200, "/a.txt");
    assert_true(f.owner && f.content.p && !f.block);
    add_lines(&f, "text/plain");
    for (int i = 0; i < 2; i++) {
        f = find_at(&one, 200, "/a.txt");
        assert_has_line(&f, "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n");
        assert_has_line(&f, "Content-Type: text/plain\r\n");
        assert_has_line(&f, "Content-Length: 5\r\n");
        add_lines(&f, "text/html"); /* it has lines already */
    }
    ask(201, "/a.txt");
    f = find_at(&one, 201, "/a.txt");
    assert_true(f.owner && !f.block);
}

/* The length of a line says whether a block has it: an empty type has none. */
TEST(types_without_lines)
{
    char longest[300] = {0};
    memset(longest, 'x', sizeof(longest) - 1);
    const char *const types[] = {"", longest};
    for (unsigned k = 0; k < COUNT(types); k++) {
        ask(210 + k, "/a.txt");
        for (int i = 0; i < 3; i++) {
            struct find_result f = find_at(&one, 210 + k, "/a.txt");
            assert_true(f.owner && !f.block);
            add_lines(&f, types[k]);
        }
    }
}

/* A response that takes longer holds the file. */
TEST(held_after_the_turn)
{
    ask(220, "/a.txt");
    struct find_result f = find_at(&one, 220, "/a.txt");
    add_lines(&f, "text/plain");
    f = find_at(&one, 220, "/a.txt");
    f.owner->get(f.owned);
    ask(221, "/sub/");
    ask(221, "/sub/");
    mk__static_small_file_cache_clear(&recent);
    assert_str_equal(f.content, "first");
    assert_has_line(&f, "Content-Type: text/plain\r\n");
    f.owner->put(f.owned);
}

TEST(nothing_stays_open)
{
    unsigned before = mk_test_descriptors();
    test_from_the_second_on(state);
    test_for_one_turn(state);
    test_sizes(state);
    test_a_size_that_is_wrong(state);
    assert_int_equal(mk_test_descriptors(), before);
}

static void open_site(struct static_site *site, const char *root)
{
    *site = (struct static_site){.settings = &settings, .host = &plain_host, .lock = PTHREAD_MUTEX_INITIALIZER};
    site->root_fd = open(mk_test_path(root), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(site->root_fd >= 0);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("root/sub");
    mk_test_mkdir("other");
    mk_test_write("root/a.txt", MK_STR("first"));
    mk_test_write("root/sub/index.html", MK_STR("index"));
    mk_test_write("other/a.txt", MK_STR("other"));
    open_site(&one, "root");
    open_site(&other, "other");
    mk__static_small_file_cache_init(&recent, NULL);
    return 0;
}

static int tear_down(void **state)
{
    mk__static_small_file_cache_release(&recent);
    close(one.root_fd);
    close(other.root_fd);
    return mk_test_folder_remove(state);
}

TEST_FILE(set_up, tear_down)
