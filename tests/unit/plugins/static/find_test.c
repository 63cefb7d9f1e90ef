// SPDX-License-Identifier: Apache-2.0
/*
 * Paths below a document root: links in every mode, directories, and what is no file. Each case is looked up
 * as a disk thread would, and as the loop does: from the kernel's caches, or EAGAIN.
 */
#include "site.h"

#include <errno.h>

/* What `path` is: "file:CONTENT name", "directory" or the name of an error. */
static const char *describe(struct find_result *f)
{
    static char text[256];
    char content[32] = "";
    if (f->kind == FOUND_DIRECTORY)
        return "directory";
    if (f->kind == FOUND_NOTHING)
        return strerrorname_np(f->err);
    ssize_t n = read(f->fd, content, sizeof(content) - 1);
    assert_int_equal(n, f->bytes);
    close(f->fd);
    snprintf(text, sizeof(text), "%s %.*s", content, MK_STR_ARG(f->name));
    return text;
}

static void check(enum symlink_mode mode, const char *path, const char *expected)
{
    settings.symlinks = mode;
    struct find_result waiting = find_path(&site, mk_str_c(path), NULL, false);
    const char *found = describe(&waiting);
    if (strcmp(found, expected) != 0)
        fail_msg("mode %d, %s: %s, not %s", mode, path, found, expected);
    struct find_result cached = find_path(&site, mk_str_c(path), NULL, true);
    if (cached.kind == FOUND_NOTHING && cached.err == EAGAIN)
        return; /* it would have to wait: allowed at any time */
    found = describe(&cached);
    if (strcmp(found, expected) != 0)
        fail_msg("mode %d, cached, %s: %s, not %s", mode, path, found, expected);
}

/* In every mode. */
static const struct {
    const char *path, *expected;
} plain[] = {
    {"/a.txt", "a /a.txt"},
    {"/sub/b.txt", "b /sub/b.txt"},
    {"/a..b.txt", "dots /a..b.txt"},
    {"/sp ace", "space /sp ace"},
    {"/\xc3\xbc", "utf /\xc3\xbc"},
    {"/.hidden", "hidden /.hidden"}, /* dotfiles are the plugin's matter */
    {"/empty", " /empty"},
    {"/sub", "directory"},
    {"/sub/deep", "directory"},
    {"/sub/", "index index.html"},
    {"/sub/deep/", "htm index.htm"},
    {"/", "ENOENT"},
    {"/none", "ENOENT"},
    {"/none/x", "ENOENT"},
    {"/none/", "ENOENT"},
    {"/a.txt/", "ENOTDIR"},
    {"/a.txt/x", "ENOTDIR"},
    {"/fifo", "ENXIO"}, /* and it does not wait for a writer */
    {"/SUB/b.txt", "ENOENT"},
    {"/dirindex/", "htm index.htm"}, /* an index that is a directory is none */
};

static const struct {
    const char *path, *expected[3]; /* Off, Inside, On */
} links[] = {
    {"/to-a", {"ELOOP", "a /to-a", "a /to-a"}},
    {"/to-sub/b.txt", {"ELOOP", "b /to-sub/b.txt", "b /to-sub/b.txt"}},
    {"/to-sub", {"ELOOP", "directory", "directory"}},
    {"/to-sub/", {"ELOOP", "index index.html", "index index.html"}},
    {"/to-to-a", {"ELOOP", "a /to-to-a", "a /to-to-a"}},
    {"/sub/up", {"ELOOP", "a /sub/up", "a /sub/up"}},
    {"/absolute", {"ELOOP", "a /absolute", "a /absolute"}},
    {"/absolute-dir/b.txt", {"ELOOP", "b /absolute-dir/b.txt", "b /absolute-dir/b.txt"}},
    {"/root-itself/a.txt", {"ELOOP", "a /root-itself/a.txt", "a /root-itself/a.txt"}},
    {"/to-absolute", {"ELOOP", "a /to-absolute", "a /to-absolute"}},
    {"/sub/around", {"ELOOP", "EXDEV", "a /sub/around"}}, /* leaves the root on its way */
    {"/outside", {"ELOOP", "EXDEV", "secret /outside"}},
    {"/outside-absolute", {"ELOOP", "EXDEV", "secret /outside-absolute"}},
    {"/outside-dir/secret", {"ELOOP", "EXDEV", "secret /outside-dir/secret"}},
    {"/nearly-inside", {"ELOOP", "EXDEV", "twin /nearly-inside"}}, /* a name that begins like the root's */
    {"/dangling", {"ELOOP", "ENOENT", "ENOENT"}},
    {"/dangling-absolute", {"ELOOP", "ENOENT", "ENOENT"}},
    {"/self", {"ELOOP", "ELOOP", "ELOOP"}},
    {"/ping", {"ELOOP", "ELOOP", "ELOOP"}},
    {"/ping/x", {"ELOOP", "ELOOP", "ELOOP"}},
    {"/absolute-loop", {"ELOOP", "ELOOP", "ELOOP"}},
    {"/to-a/x", {"ELOOP", "ENOTDIR", "ENOTDIR"}},
    {"/absolute/x", {"ELOOP", "ENOTDIR", "ENOTDIR"}},
    {"/magic/cwd", {"ELOOP", "EXDEV", "ELOOP"}}, /* links of /proc/self are not followed */
    {"/linked-index/", {"ELOOP", "b index.html", "b index.html"}},
};

TEST(without_links)
{
    for (size_t i = 0; i < COUNT(plain); i++)
        for (enum symlink_mode mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode++)
            check(mode, plain[i].path, plain[i].expected);
}

TEST(links)
{
    for (size_t i = 0; i < COUNT(links); i++)
        for (enum symlink_mode mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode++)
            check(mode, links[i].path, links[i].expected[mode]);
}

TEST(without_an_index)
{
    struct mk_conf_list none = {NULL, 0}, before = settings.index;
    settings.index = none;
    check(SYMLINKS_OFF, "/sub/", "ENOENT");
    check(SYMLINKS_INSIDE, "/a.txt", "a /a.txt");
    settings.index = before;
}

TEST(long_names)
{
    char path[5000] = "/";
    memset(path + 1, 'x', 300);
    check(SYMLINKS_INSIDE, path, "ENAMETOOLONG");
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 2 ? 'x' : '/';
    path[sizeof(path) - 1] = '\0';
    settings.symlinks = SYMLINKS_INSIDE;
    struct find_result f = find_path(&site, mk_str_c(path), NULL, false);
    assert_int_equal(f.kind, FOUND_NOTHING);
    path[sizeof(path) - 2] = '/';
    f = find_path(&site, mk_str_c(path), NULL, false);
    assert_int_equal(f.kind, FOUND_NOTHING);
}

/* Forty links are followed, as the kernel does; no more. */
TEST(chains_of_links)
{
    char name[32], target[600];
    snprintf(target, sizeof(target), "%s/a.txt", root);
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof(name), "root/chain%d", i);
        mk_test_link(target, name);
        snprintf(target, sizeof(target), "%s/chain%d", root, i);
    }
    check(SYMLINKS_INSIDE, "/chain40", "a /chain40");
    check(SYMLINKS_INSIDE, "/chain41", "ELOOP");
}

TEST(whole_roots)
{
    struct static_site whole = {.settings = &settings,
                                .host = &host,
                                .path = MK_STR(""),
                                .lock = PTHREAD_MUTEX_INITIALIZER};
    char path[600];
    settings.symlinks = SYMLINKS_INSIDE;
    whole.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/outside-absolute", root);
    struct find_result f = find_path(&whole, mk_str_c(path), NULL, false); /* everything is inside of "/" */
    assert_int_equal(f.kind, FOUND_FILE);
    close(f.fd);
    close(whole.root_fd);
}

static const struct {
    const char *path;
    bool hidden;
} dots[] = {
    {"/", false},
    {"/a.b", false},
    {"/a..b", false},
    {"/.git", true},
    {"/a/.git/x", true},
    {"/..a", true},
    {"/.well-known", false},
    {"/.well-known/x", false},
    {"/.well-knownx", true},
    {"/.well-known/.x", true},
    {"/a/.well-known/x", true},
};

TEST(hidden_names)
{
    for (size_t i = 0; i < COUNT(dots); i++) {
        assert_int_equal(mk__static_open_is_hidden(&site, mk_str_c(dots[i].path)), dots[i].hidden);
        settings.dotfiles = true;
        assert_false(mk__static_open_is_hidden(&site, mk_str_c(dots[i].path)));
        settings.dotfiles = false;
    }
}

TEST(nothing_stays_open)
{
    unsigned before = mk_test_descriptors();
    test_without_links(state);
    test_links(state);
    assert_int_equal(mk_test_descriptors(), before);
}

static void fill_folder(void)
{
    static const char *const dirs[] = {
        "root",      "root/sub", "root/sub/deep", "root/dirindex", "root/dirindex/index.html", "root/linked-index",
        "root-twin", "elsewhere"};
    static const char *const files[][2] = {{"root/a.txt", "a"},
                                           {"root/sub/b.txt", "b"},
                                           {"root/a..b.txt", "dots"},
                                           {"root/sp ace", "space"},
                                           {"root/\xc3\xbc", "utf"},
                                           {"root/.hidden", "hidden"},
                                           {"root/empty", ""},
                                           {"root/sub/index.html", "index"},
                                           {"root/sub/index.htm", "second"},
                                           {"root/sub/deep/index.htm", "htm"},
                                           {"root/dirindex/index.htm", "htm"},
                                           {"root-twin/file", "twin"},
                                           {"elsewhere/secret", "secret"}};
    static const char *const relative[][2] = {{"a.txt", "root/to-a"},
                                              {"sub", "root/to-sub"},
                                              {"to-a", "root/to-to-a"},
                                              {"../a.txt", "root/sub/up"},
                                              {"../../root/a.txt", "root/sub/around"},
                                              {"../elsewhere/secret", "root/outside"},
                                              {"../elsewhere", "root/outside-dir"},
                                              {"nowhere", "root/dangling"},
                                              {"self", "root/self"},
                                              {"pong", "root/ping"},
                                              {"ping", "root/pong"},
                                              {"absolute", "root/to-absolute"},
                                              {"/proc/self", "root/magic"},
                                              {"../sub/b.txt", "root/linked-index/index.html"}};
    static const char *const absolute[][2] = {{"root/a.txt", "root/absolute"},
                                              {"root/sub", "root/absolute-dir"},
                                              {"root", "root/root-itself"},
                                              {"elsewhere/secret", "root/outside-absolute"},
                                              {"root-twin/file", "root/nearly-inside"},
                                              {"root/nowhere", "root/dangling-absolute"},
                                              {"root/absolute-loop", "root/absolute-loop"}};
    for (size_t i = 0; i < COUNT(dirs); i++)
        mk_test_mkdir(dirs[i]);
    for (size_t i = 0; i < COUNT(files); i++)
        mk_test_write(files[i][0], mk_str_c(files[i][1]));
    for (size_t i = 0; i < COUNT(relative); i++)
        mk_test_link(relative[i][0], relative[i][1]);
    for (size_t i = 0; i < COUNT(absolute); i++) {
        char target[600];
        snprintf(target, sizeof(target), "%s", mk_test_path(absolute[i][0]));
        mk_test_link(target, absolute[i][1]);
    }
    assert_int_equal(mkfifo(mk_test_path("root/fifo"), 0644), 0);
}

static int set_up(void **state)
{
    static struct mk_str index[] = {MK_STR("index.html"), MK_STR("index.htm")};
    if (mk_test_folder_make(state) < 0)
        return -1;
    fill_folder();
    return open_site(index, 2);
}

TEST_FILE(set_up, tear_down)
