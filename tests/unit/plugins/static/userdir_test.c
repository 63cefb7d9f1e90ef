// SPDX-License-Identifier: Apache-2.0
/* UserDir: which paths are of a user, and which users have a folder. The password database is the test's own. */
#include "folder.h"

#include <errno.h>
#include <pwd.h>

#include "plugins/static/static.h"

static struct static_settings settings;
static struct static_host host;
static struct static_site site = {.settings = &settings, .host = &host};

/* ── the database ── */

static const struct user {
    const char *name;
    uid_t uid;
    const char *home; /* below the test's folder unless it is "" or has a slash; NULL: none */
    int err;          /* instead of an entry */
} users[] = {
    {"bob", 1000, "bob", 0},       {"eve", 60000, "eve", 0},      {"large", 4000000000, "bob", 0},
    {"root", 0, "bob", 0},         {"daemon", 999, "bob", 0},     {"nobody", 65534, "bob", 0},
    {"homeless", 1001, "none", 0}, {"nopage", 1002, "nopage", 0}, {"file", 1003, "file", 0},
    {"linked", 1004, "linked", 0}, {"stolen", 1005, "stolen", 0}, {"relative", 1006, "./bob", 0},
    {"empty", 1007, "", 0},        {"nothing", 1008, NULL, 0},    {"huge", 1009, "bob", ERANGE},
    {"busy", 1010, "bob", EMFILE}, {"broken", 1011, "bob", EIO},
};
static unsigned asked;

int getpwnam_r(const char *name, struct passwd *storage, char *buffer, size_t size, struct passwd **ret)
{
    asked++;
    *ret = NULL;
    for (size_t i = 0; i < COUNT(users); i++) {
        const struct user *u = &users[i];
        if (strcmp(u->name, name) != 0)
            continue;
        bool as_it_is = !u->home || !*u->home || strchr(u->home, '/');
        snprintf(buffer, size, "%s", !u->home ? "" : as_it_is ? u->home : mk_test_path(u->home));
        *storage = (struct passwd){.pw_uid = u->uid, .pw_dir = u->home ? buffer : NULL};
        *ret = u->err ? NULL : storage;
        return u->err;
    }
    return 0;
}

/* ── paths ── */

static const struct {
    const char *path, *user, *rest; /* no user: not of one */
} paths[] = {
    {"/~bob/", "bob", "/"},
    {"/~bob", "bob", ""},
    {"/~bob/a/b", "bob", "/a/b"},
    {"/~b", "b", ""},
    {"/~Bob.x-y_z@corp$/", "Bob.x-y_z@corp$", "/"},
    {"/~01234567890123456789012345678901_/", "", "/"},
    {"/~012345678901234567890123456789_2/x", "012345678901234567890123456789_2", "/x"},
    {"/~", "", "/"},
    {"/~/", "", "/"},
    {"/~../", "", "/"},
    {"/~.", "", "/"},
    {"/~-bob/", "", "/"},
    {"/~+bob/", "", "/"},
    {"/~bob:x/", "", "/"},
    {"/~bob\n/", "", "/"},
    {"/~b\xc3\xb6"
     "b/",
     "", "/"},
    {"/~~bob/", "", "/"},
    {"/", NULL, NULL},
    {"/bob", NULL, NULL},
    {"/x/~bob/", NULL, NULL},
};

TEST(paths)
{
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct static_location at = {&site, mk_str_c(paths[i].path), MK_STR_NONE};
        assert_int_equal(mk__static_userdir_match(&at), paths[i].user != NULL);
        assert_int_equal(userdir_is_matched(&at), paths[i].user != NULL);
        if (!paths[i].user)
            continue;
        assert_str_equal(at.user, paths[i].user);
        assert_str_equal(at.path, paths[i].rest);
    }
}

TEST(without_the_key)
{
    struct mk_str before = host.user_dir;
    struct static_location at = {&site, MK_STR("/~bob/"), MK_STR_NONE};
    host.user_dir = MK_STR_NONE;
    assert_false(mk__static_userdir_match(&at));
    assert_str_equal(at.path, "/~bob/");
    host.user_dir = before;
}

/* ── users ── */

static const char *describe(const char *user, const char *path)
{
    static char content[32];
    struct static_location at = {&site, mk_str_c(path), mk_str_c(user)};
    struct find_result f = mk__static_userdir_find(&at, &(struct find_mode){0});
    if (f.kind == FOUND_DIRECTORY)
        return "directory";
    if (f.kind == FOUND_NOTHING)
        return strerrorname_np(f.err);
    memset(content, 0, sizeof(content));
    assert_int_equal(read(f.fd, content, sizeof(content) - 1), f.bytes);
    close(f.fd);
    return content;
}

static const struct {
    const char *user, *path, *expected[3]; /* Off, Inside, On */
} finds[] = {
    {"bob", "/a", {"a", "a", "a"}},
    {"bob", "/", {"index", "index", "index"}},
    {"bob", "/sub", {"directory", "directory", "directory"}},
    {"bob", "/none", {"ENOENT", "ENOENT", "ENOENT"}},
    {"bob", "/out", {"ELOOP", "EXDEV", "private"}},
    {"bob", "/in", {"ELOOP", "a", "a"}},
    {"bob", "/absolute", {"ELOOP", "a", "a"}},
    {"eve", "/", {"eve", "eve", "eve"}},
    {"large", "/a", {"a", "a", "a"}},
    {"root", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"daemon", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"nobody", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"homeless", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"nopage", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"file", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"linked", "/a", {"ENOENT", "linked", "linked"}},
    {"stolen", "/private", {"ENOENT", "ENOENT", "private"}},
    {"relative", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"empty", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"nothing", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"huge", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"busy", "/a", {"EMFILE", "EMFILE", "EMFILE"}}, /* a temporary error: 503 */
    {"broken", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
    {"unknown", "/a", {"ENOENT", "ENOENT", "ENOENT"}},
};

TEST(users)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(finds); i++)
        for (settings.symlinks = SYMLINKS_OFF; settings.symlinks <= SYMLINKS_ON; settings.symlinks++) {
            const char *found = describe(finds[i].user, finds[i].path);
            if (strcmp(found, finds[i].expected[settings.symlinks]) != 0)
                fail_msg("mode %d, %s%s: %s", settings.symlinks, finds[i].user, finds[i].path, found);
        }
    settings.symlinks = SYMLINKS_OFF;
    assert_int_equal(mk_test_descriptors(), before);
}

/* What cannot be a name is not even asked for; nothing is remembered of the others. */
TEST(how_often_is_asked)
{
    asked = 0;
    assert_string_equal(describe("", "/"), "ENOENT");
    assert_int_equal(asked, 0);
    describe("bob", "/a");
    describe("bob", "/a");
    assert_int_equal(asked, 2);
}

TEST(without_tryfiles)
{
    struct mk_str tries[] = {MK_STR("/a")};
    host.try_files = (struct mk_conf_list){tries, 1};
    host.n_tries = 1;
    assert_string_equal(describe("bob", "/none"), "ENOENT");
    host.n_tries = 0;
}

TEST(long_homes)
{
    static char name[STATIC_NAME_BYTES + 1];
    struct mk_str before = host.user_dir;
    memset(name, 'x', sizeof(name) - 1);
    for (size_t len = STATIC_NAME_BYTES - 600; len <= STATIC_NAME_BYTES; len += 50) {
        host.user_dir = mk_str(name + sizeof(name) - 1 - len, len);
        assert_string_equal(describe("bob", "/a"), "ENOENT");
    }
    host.user_dir = before;
}

/* ── the directive ── */

TEST(values)
{
    static const char *const good[] = {"public_html", "a/b", ".public", "a..b", "..."};
    static const char *const bad[] = {"", "/a", "a/", "a//b", "..", ".", "../a", "a/..", "a/../b", "./a"};
    struct mk_arena arena;
    char text[256];
    struct mk_buf error;
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    for (size_t i = 0; i < COUNT(good) + COUNT(bad); i++) {
        bool is_good = i < COUNT(good);
        struct mk_str word = mk_str_c(is_good ? good[i] : bad[i - COUNT(good)]), name = MK_STR_NONE;
        struct mk_conf_value value = {.text = word, .words = &word, .n = 1};
        mk_buf_init_fixed(&error, text, sizeof(text));
        assert_int_equal(mk__static_userdir_parse(&value, &name, &arena, &error), is_good ? 0 : -EINVAL);
        assert_int_equal(error.len == 0, is_good);
        assert_true(!is_good || mk_str_eq(name, word));
        value.n = 2;
        assert_int_equal(mk__static_userdir_parse(&value, &name, &arena, &error), -EINVAL);
    }
    mk_arena_release(&arena);
}

static int set_up(void **state)
{
    static const char *const dirs[] = {"bob",    "bob/www", "bob/www/sub", "eve",        "eve/www",
                                       "nopage", "file",    "linked",      "linked/web", "stolen"};
    static const char *const files[][2] = {
        {"bob/www/a", "a"}, {"bob/www/index.html", "index"}, {"bob/private", "private"},
        {"file/www", ""},   {"eve/www/index.html", "eve"},   {"linked/web/a", "linked"}};
    static struct mk_str index[] = {MK_STR("index.html")};
    char target[600];
    if (mk_test_folder_make(state) < 0)
        return -1;
    assert_int_equal(chdir(mk_test_folder), 0); /* a home that is relative would be there */
    for (size_t i = 0; i < COUNT(dirs); i++)
        mk_test_mkdir(dirs[i]);
    for (size_t i = 0; i < COUNT(files); i++)
        mk_test_write(files[i][0], mk_str_c(files[i][1]));
    mk_test_link("../private", "bob/www/out");
    mk_test_link("a", "bob/www/in");
    mk_test_link("web", "linked/www");
    snprintf(target, sizeof(target), "%s", mk_test_path("bob/www/a"));
    mk_test_link(target, "bob/www/absolute");
    snprintf(target, sizeof(target), "%s", mk_test_path("bob"));
    mk_test_link(target, "stolen/www");
    settings.index = (struct mk_conf_list){index, 1};
    host.user_dir = MK_STR("www");
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
