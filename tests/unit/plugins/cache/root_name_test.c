// SPDX-License-Identifier: Apache-2.0
/* When the path of a root is looked at, because its name in the folder above may have changed. */
#include "fixture.h"

#include "plugins/cache/worker.h"

#define RULE(value) "[CACHE]\n    Files " value "\n"

static char path[512], away[512];
static uint64_t notes[MK_FILE_ROOT_NOTES];
static unsigned confirmations; /* how often the path was looked at */
static int found;              /* what confirm_path() returns */

static int confirm_path(void *context)
{
    (void)context;
    confirmations++;
    return found;
}

/* Opens a cache with an entry for a.txt below a root with this path. */
static void open_with_path(const char *rule, const char *root_path)
{
    open_cache("", rule);
    memset(notes, 0, sizeof(notes));
    confirmations = 0;
    found = 0;
    root.path = root_path;
    root.confirm = confirm_path;
    root.notes = notes;
    snprintf(path, sizeof(path), "%s", mk_test_path("root"));
    snprintf(away, sizeof(away), "%s", mk_test_path("away"));
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask_body("a.txt"), "first");
}

static void close_with_path(void)
{
    close_cache();
    root.path = NULL;
}

static void expect_confirmations(unsigned wanted)
{
    assert_string_equal(ask_body("a.txt"), "first");
    assert_string_equal(ask_body("a.txt"), "first");
    assert_int_equal(confirmations, wanted);
    confirmations = 0;
}

static void move_there_and_back(void)
{
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(rename(away, path), 0);
}

TEST(a_name_that_changes)
{
    open_with_path(RULE("Notify 1h"), mk_test_path("root"));
    expect_confirmations(1);
    expect_confirmations(0);
    for (int i = 0; i < 3; i++) {
        move_there_and_back();
        expect_confirmations(1);
        expect_confirmations(0);
    }
    close_with_path();
}

/* The lookup ends until the path was looked at; entries stay. */
TEST(another_root)
{
    open_with_path(RULE("Notify 1h"), mk_test_path("root"));
    expect_confirmations(1);
    move_there_and_back();
    found = -EAGAIN;
    assert_string_equal(ask_body("a.txt"), "503");
    assert_string_equal(ask_body("none"), "503");
    assert_int_equal(confirmations, 2);
    confirmations = 0;
    found = 0;
    clear_calls();
    expect_confirmations(1);
    assert_int_equal(disk.opens, 0);
    close_with_path();
}

/* Names of the folder above that are not the root's mostly belong to other counters; contents of files to none. */
TEST(other_names_of_the_folder_above)
{
    char name[32];
    unsigned most = 0;
    open_with_path(RULE("Notify 1h"), mk_test_path("root"));
    expect_confirmations(1);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "file%d", i);
        mk_test_write(name, MK_STR("x"));
        assert_string_equal(ask_body("a.txt"), "first");
        most += confirmations;
        confirmations = 0;
    }
    assert_in_range(most, 0, 16);
    mk_test_write("root2", MK_STR("x"));
    ask("a.txt");
    confirmations = 0;
    mk_test_write("root2", MK_STR("more"));
    expect_confirmations(0);
    close_with_path();
}

TEST(forms_of_paths)
{
    static char with_slashes[520];
    static char long_path[600] = "/";
    static const char *const without_a_name[] = {"/", "//", ".", "..", "/..", "", long_path};
    memset(long_path + 1, 'a', sizeof(long_path) - 2);
    snprintf(with_slashes, sizeof(with_slashes), "%s//", mk_test_path("root"));
    open_with_path(RULE("Notify 1h"), with_slashes);
    expect_confirmations(1);
    move_there_and_back();
    expect_confirmations(1);
    close_with_path();
    for (size_t i = 0; i < COUNT(without_a_name); i++) {
        open_with_path(RULE("Notify 1h"), without_a_name[i]);
        expect_confirmations(1);
        move_there_and_back(); /* seen by the root's own watch, which counts for all places */
        expect_confirmations(1);
        expect_confirmations(0);
        close_with_path();
    }
}

/* Moves the name of the root away and back, and asks for a file that cannot be kept. */
static void expect_confirmations_for_new(const char *name, unsigned wanted)
{
    assert_int_equal(rename(name, away), 0);
    assert_int_equal(rename(away, name), 0);
    assert_string_equal(ask_body("new.txt"), "new");
    assert_int_equal(confirmations, wanted);
    confirmations = 0;
}

/* Only a link is looked at for each request for a name that was not kept in the last second. */
TEST(names_that_are_not_kept)
{
    static char folder[512], link[512];
    const struct timespec future[2] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};
    snprintf(folder, sizeof(folder), "%s", mk_test_path("root"));
    snprintf(link, sizeof(link), "%s", mk_test_path("link"));
    assert_int_equal(symlink(folder, link), 0);
    mk_test_write("root/new.txt", MK_STR("new"));
    assert_int_equal(utimensat(AT_FDCWD, mk_test_path("root/new.txt"), future, 0), 0);
    for (unsigned is_link = 0; is_link < 2; is_link++) {
        const char *name = is_link ? link : folder;
        open_with_path(RULE("Notify 1h"), name);
        assert_string_equal(ask_body("new.txt"), "new");
        confirmations = 0;
        for (int i = 0; i < 3; i++)
            expect_confirmations_for_new(name, is_link);
        mk_test_pass(&w, 1000);
        expect_confirmations_for_new(name, 1);
        expect_confirmations_for_new(name, is_link);
        assert_int_equal(rename(name, away), 0);
        assert_int_equal(rename(away, name), 0);
        expect_confirmations(1); /* for a file that is kept */
        close_with_path();
    }
    remove(link);
    remove(mk_test_path("root/new.txt"));
}

/* In other modes the file server's own check is enough. */
TEST(modes)
{
    static const char *const rules[] = {RULE("Revalidate 1h"), RULE("EachCycle"), RULE("Immutable"), RULE("Off")};
    for (size_t i = 0; i < COUNT(rules); i++) {
        open_with_path(rules[i], mk_test_path("root"));
        move_there_and_back();
        expect_confirmations(0);
        close_with_path();
    }
}

/* The folder above is watched again after a failure when something has happened that counts for all places. */
TEST(no_watch)
{
    open_with_path(RULE("Notify 1h"), "/nonexistent/root");
    expect_confirmations(1);
    root.path = path;
    expect_confirmations(0);
    move_there_and_back();
    expect_confirmations(1);
    move_there_and_back();
    expect_confirmations(1);
    close_with_path();
}

/* A folder that is used only to find the root is not forgotten, and one that has ended is watched again. */
TEST(sweeps)
{
    open_with_path(RULE("Notify 1h"), mk_test_path("root"));
    expect_confirmations(1);
    for (int minute = 0; minute < 5; minute++) {
        mk_test_pass(&w, 60 * 1000);
        expect_confirmations(0);
    }
    assert_int_equal(site.cache->notify.folders, 2);
    for (int minute = 0; minute < 3; minute++)
        mk_test_pass(&w, 60 * 1000);
    assert_int_equal(site.cache->notify.folders, 0);
    expect_confirmations(1);
    assert_int_equal(site.cache->notify.folders, 2);
    close_with_path();
}

TEST_FILE(make_cache_folder_with_file, mk_test_folder_remove)
