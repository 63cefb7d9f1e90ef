// SPDX-License-Identifier: Apache-2.0
/* Real paths of folders that are replaced. */
#include "folder.h"
#include "testing.h"

#include "server/generation/generation.h"

#include <monkey/kit/source.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

static struct mk_generation generation;
static struct mk_host host = {.generation = &generation};
static struct mk_source_folder folder;
static const char *link_path;
static int n_opened, open_err;

static int open_folder(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_link(struct mk_source_folder *f)
{
    assert_ptr_equal(f, &folder);
    n_opened++;
    return open_err ? open_err : open_folder(link_path);
}

static const char *make_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s", mk_test_path(name));
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

/* Has the link name another folder. */
static void set_link(const char *target)
{
    unlink(link_path);
    assert_int_equal(symlink(target, link_path), 0);
}

static int open_fixture(void **state)
{
    static char path[512];
    (void)state;
    link_path = path;
    snprintf(path, sizeof(path), "%s", mk_test_path("current"));
    n_opened = open_err = 0;
    mk_source_folder_init(&folder, open_link);
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    mk_source_folder_release(&folder);
    return 0;
}

/* Strips a file of a folder of the test. */
static struct mk_str strip(const char *name)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s", mk_test_path(name));
    return mk_source_folder_strip(&folder, mk_str_c(path));
}

TEST(files_of_the_folder, open_fixture, close_fixture)
{
    set_link(make_folder("first"));
    assert_str_equal(strip("first/a/b"), "/a/b");
    assert_str_equal(strip("first"), "");
    assert_str_equal(strip("first/"), "/");
    assert_int_equal(n_opened, 1); /* it is not opened again for its own files */
    assert_null(strip("firstborn/a").p);
    assert_null(strip("other/a").p);
    assert_null(strip("current/a").p); /* names of files have no links in them */
}

/* The next folder is known once a file of it is asked for, and files of the one before stay known. */
TEST(replaced_folder, open_fixture, close_fixture)
{
    set_link(make_folder("one"));
    assert_str_equal(strip("one/a"), "/a");
    set_link(make_folder("two"));
    folder.checked_ms = 0; /* as after a tenth of a second */
    assert_str_equal(strip("two/a"), "/a");
    assert_str_equal(strip("one/a"), "/a");
    set_link(make_folder("three"));
    folder.checked_ms = 0;
    assert_str_equal(strip("three/a"), "/a");
    assert_str_equal(strip("two/a"), "/a");
    assert_null(strip("one/a").p);
}

/* Many files elsewhere do not open it each time. */
TEST(it_is_opened_now_and_then, open_fixture, close_fixture)
{
    set_link(make_folder("rare"));
    for (int i = 0; i < 1000; i++)
        assert_null(strip("elsewhere/a").p);
    assert_true(n_opened < 1000);
}

TEST(a_folder_that_cannot_be_opened, open_fixture, close_fixture)
{
    set_link(make_folder("good"));
    assert_str_equal(strip("good/a"), "/a");
    open_err = -EAGAIN;
    folder.checked_ms = 0;
    assert_null(strip("elsewhere/a").p);
    assert_int_equal(n_opened, 2);
    assert_str_equal(strip("good/a"), "/a"); /* what was known stays */
}

static int open_program(struct mk_source_folder *f)
{
    (void)f;
    int fd = open(link_path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool is_program(const char *name)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s", mk_test_path(name));
    return mk_source_is_program(&folder, mk_str_c(path));
}

/* The program itself, by a link, and what stands next to it. */
TEST(one_program, open_fixture, close_fixture)
{
    char target[512];
    mk_source_folder_init(&folder, open_program);
    snprintf(target, sizeof(target), "%s", mk_test_path("run-1.2"));
    close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0700));
    set_link(target);
    static const char *const programs[] = {"run-1.2",        "run-1.2~",     "run-1.2.bak",
                                           "run-1.2.old.gz", ".run-1.2.swp", "run-1.2.3"};
    static const char *const others[] = {"run",       "run-1.2.txt", "run-1",    "other/run-1.2",
                                         "run-1.2/a", ".run-1.2",    "run-1.2-3"};
    for (size_t i = 0; i < COUNT(programs); i++)
        assert_true(is_program(programs[i]));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(is_program(others[i]));
}

/* By the path below the document root, and by the name of what is elsewhere if the pattern says nothing of a place. */
TEST(files_of_a_pattern, open_fixture, close_fixture)
{
    static const struct {
        const char *match, *file; /* below the folder of the test */
        bool is_source;
    } rows[] = {
        {"/bin", "docs/bin/run", true},       {"/bin", "docs/bin/run.bak", true}, {"/bin", "docs/a.txt", false},
        {"/bin", "elsewhere/bin/run", false}, {"=/x.cgi", "docs/x.cgi", true},    {"=/x.cgi", "elsewhere/x.cgi", false},
        {"*.cgi", "docs/x.cgi", true},        {"*.cgi", "elsewhere/x.cgi", true}, {"*.cgi", "elsewhere/x.cgi~", true},
        {"*.cgi", "elsewhere/x.txt", false},  {"/x*.cgi", "docs/x.cgi", true},    {"/x*.cgi", "elsewhere/x.cgi", false},
    };
    set_link(make_folder("docs"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_pattern match;
        char path[600];
        snprintf(path, sizeof(path), "%s", mk_test_path(rows[i].file));
        assert_int_equal(mk_pattern_parse(&match, mk_str_c(rows[i].match), NULL, NULL), 0);
        const struct mk_source_query of = {.host = &host,
                                           .root = &folder,
                                           .kind = MK_SOURCE_FILE,
                                           .name = mk_str_c(path)};
        assert_int_equal(mk_source_is_taken(&of, &match, false), rows[i].is_source);
    }
}

static int open_root(struct mk_source_folder *f)
{
    (void)f;
    return open_folder("/");
}

TEST(the_root, NULL, close_fixture)
{
    mk_source_folder_init(&folder, open_root);
    assert_str_equal(mk_source_folder_strip(&folder, MK_STR("/a")), "/a");
}
