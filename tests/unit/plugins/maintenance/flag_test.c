// SPDX-License-Identifier: Apache-2.0
/* A file that says something by being there: when it is looked at, what is noticed, and what is not logged. */
#include "folder.h"

#include <errno.h>
#include <sys/resource.h>

#include "plugins/maintenance/flag.h"

static struct flag_file flag;
static char path[600];

static void start(const char *name)
{
    snprintf(path, sizeof(path), "%s", mk_test_path(name));
    flag = (struct flag_file){.path = path};
}

/* As a request does. The kernel may say at any time that it would have to wait: then a disk thread looks. */
static void look(uint64_t now)
{
    if (flag_begin_check(&flag, now)) {
        assert_true(flag.next_check_ms == FLAG_CHECKING);
        assert_false(flag_begin_check(&flag, now + 60000)); /* one looker is enough */
        flag_check(&flag);
        flag_end_check(&flag, now);
    }
    assert_int_equal(flag.next_check_ms, now + FLAG_CHECK_MS);
}

TEST(comes_and_goes)
{
    unsigned before = mk_test_descriptors();
    start("flag");
    look(5000); /* the first request looks at once */
    assert_false(flag.exists);
    mk_test_write("flag", MK_STR(""));
    assert_false(flag_begin_check(&flag, 5999));
    assert_false(flag.exists);
    look(6000);
    assert_true(flag.exists);
    unlink(path);
    assert_false(flag_begin_check(&flag, 6999));
    assert_true(flag.exists);
    look(7000);
    assert_false(flag.exists);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(any_kind_of_file)
{
    start("folder");
    mk_test_mkdir("folder");
    look(1);
    assert_true(flag.exists);
    start("pipe");
    assert_int_equal(mkfifo(path, 0), 0);
    look(1);
    assert_true(flag.exists);
    start("dangling");
    mk_test_link("nowhere", "dangling");
    look(1);
    assert_false(flag.exists);
    start("pipe/below"); /* no directory: nothing is there */
    look(1);
    assert_false(flag.exists);
    start("nowhere/below");
    look(1);
    assert_false(flag.exists);
}

/* Before the first request. */
TEST(is_known_from_the_start)
{
    static const struct {
        const char *name;
        int result;
        bool exists;
    } cases[] = {
        {"there", 0, true},          {"missing", 0, false},          {"there/below", 0, false},
        {"missing/below", 0, false}, {"circle/flag", -ELOOP, false},
    };
    mk_test_write("there", MK_STR(""));
    mk_test_link("circle", "circle");
    for (size_t i = 0; i < COUNT(cases); i++) {
        start(cases[i].name);
        assert_int_equal(flag_init(&flag), cases[i].result);
        assert_int_equal(flag.exists, cases[i].exists);
        assert_int_equal(flag.next_check_ms, 0); /* the first request checks and logs all the same */
    }
    unlink(mk_test_path("there"));
    unlink(mk_test_path("circle"));
}

/* Its path leads in a circle: whatever was known stays. */
TEST(what_cannot_be_posted_changes_nothing)
{
    start("way/flag");
    mk_test_mkdir("way");
    mk_test_write("way/flag", MK_STR(""));
    look(1000);
    assert_true(flag.exists);
    unlink(path);
    assert_int_equal(rmdir(mk_test_path("way")), 0);
    mk_test_link("way", "way");
    look(2000);
    assert_true(flag.exists);
    assert_int_equal(flag.logged_err, ELOOP);
    look(3000);
    assert_true(flag.exists);
    unlink(mk_test_path("way"));
    look(4000);
    assert_false(flag.exists);
    mk_test_link("way", "way");
    look(5000);
    assert_false(flag.exists);
}

/* Without descriptors the cached look cannot be made; the other one can. */
TEST(without_descriptors)
{
    struct rlimit limit, none;
    start("flag");
    mk_test_write("flag", MK_STR(""));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool taken = flag_begin_check(&flag, 1);
    flag_check(&flag);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(taken);
    assert_true(flag.exists);
    flag_end_check(&flag, 1);
    unlink(path);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
