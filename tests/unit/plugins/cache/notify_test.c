// SPDX-License-Identifier: Apache-2.0
/* Which changes are counted for which places, by the kernel's inotify; its failures and its overflow are made here. */
#include "folder.h"
#include "testing.h"

#include "base/arena.h"

#include "plugins/cache/notify.h"

#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct notify n;
static int add_error;          /* of inotify_add_watch(); 0: it is called */
static int open_error;         /* of inotify_init1(), likewise */
static char watched_path[512]; /* of a folder for which it does not fail */

/* The kernel needs nothing for a folder that is watched. */
static bool is_watched(const char *path)
{
    struct stat st, watched;
    return watched_path[0] && stat(path, &st) == 0 && stat(watched_path, &watched) == 0 && st.st_ino == watched.st_ino;
}

unsigned mk_test_watch_fails_at; /* the call with this number, from 1 on; 0: none */

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (mk_test_watch_fails_at && --mk_test_watch_fails_at == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (add_error && !is_watched(path)) {
        errno = add_error;
        return -1;
    }
    return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

int inotify_init1(int flags)
{
    if (open_error) {
        errno = open_error;
        return -1;
    }
    return (int)syscall(SYS_inotify_init1, flags);
}

static int set_up(void **state)
{
    add_error = open_error = 0;
    watched_path[0] = '\0';
    notify_init(&n);
    return mk_test_folder_make(state);
}

static int tear_down(void **state)
{
    notify_release(&n);
    return mk_test_folder_remove(state);
}

static int add_below(int above, const char *name, uint64_t now_ms)
{
    int fd = open(mk_test_path(name), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    int folder = notify_add(&n, fd, above, now_ms);
    close(fd);
    return folder;
}

static int add_at(const char *name, uint64_t now_ms)
{
    return add_below(0, name, now_ms);
}

static int add(const char *name)
{
    return add_at(name, 1000);
}

/* Returns a name with another counter than `than`. */
static struct mk_str other_name(const char *than)
{
    static char name[16];
    uint32_t place = notify_place(1, mk_str_c(than));
    for (int i = 0; i == 0 || notify_place(1, mk_str_c(name)) == place; i++)
        snprintf(name, sizeof(name), "n%d", i);
    return mk_str_c(name);
}

/* ── changes of files ── */

static char path[512], second[512];

static void write_some(void)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static void cut(void)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void change_mode(void)
{
    assert_int_equal(chmod(path, 0600), 0);
}

static void change_times(void)
{
    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

static void replace(void)
{
    mk_test_write("new", MK_STR("new"));
    snprintf(second, sizeof(second), "%s/new", mk_test_folder);
    assert_int_equal(rename(second, path), 0);
}

static void move_away(void)
{
    snprintf(second, sizeof(second), "%s/away", mk_test_folder);
    assert_int_equal(rename(path, second), 0);
}

static void move_back(void)
{
    assert_int_equal(rename(second, path), 0);
}

static void remove_it(void)
{
    assert_int_equal(unlink(path), 0);
}

static void make_again(void)
{
    mk_test_write("d/a.txt", MK_STR("again"));
}

static void make_link(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("b.txt", path), 0);
}

static void (*const changes[])(void) = {write_some, cut,       change_mode, change_times, replace,
                                        move_away,  move_back, remove_it,   make_again,   make_link};

TEST(changes_of_a_file, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_write("d/a.txt", MK_STR("first"));
    snprintf(path, sizeof(path), "%s/d/a.txt", mk_test_folder);
    int folder = add("d");
    assert_true(folder > 0);
    uint32_t place = notify_place(folder, MK_STR("a.txt")), other = notify_place(folder, other_name("a.txt"));
    uint64_t others = notify_number(&n, other);
    for (size_t i = 0; i < COUNT(changes); i++) {
        notify_read(&n);
        uint64_t before = notify_number(&n, place);
        changes[i]();
        assert_int_equal(notify_number(&n, place), before);
        notify_read(&n);
        if (notify_number(&n, place) == before)
            fail_msg("change %zu was not counted", i);
    }
    assert_int_equal(notify_number(&n, other), others);
}

/* Two workers may mix the place and the number of two checks of an entry: that is never valid. */
TEST(numbers_belong_to_one_place, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    uint32_t one = notify_place(add("d"), MK_STR("x")), other = notify_place(add("e"), MK_STR("x"));
    uint64_t seen[2][3];
    for (size_t i = 0; i < 3; i++) {
        mk_test_write("d/x", MK_STR("x"));
        mk_test_write("e/x", MK_STR("x"));
        notify_read(&n);
        seen[0][i] = notify_number(&n, one);
        seen[1][i] = notify_number(&n, other);
        for (size_t j = 0; j <= i; j++) {
            assert_int_not_equal(seen[0][i], seen[1][j]);
            assert_int_not_equal(seen[1][i], seen[0][j]);
        }
    }
}

TEST(names_in_folders_that_ignore_case)
{
    assert_int_equal(notify_place(1, MK_STR("Index.HTML")), notify_place(1, MK_STR("index.html")));
}

/* A folder has one number, however it is reached. */
TEST(folders_are_known_again, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    assert_int_equal(symlink("d", mk_test_path("link")), 0);
    int folder = add("d");
    assert_int_equal(add("d"), folder);
    assert_int_equal(add("link"), folder);
    assert_int_not_equal(add("e"), folder);
    assert_int_equal(n.folders, 2);
}

/* ── changes of folders ── */

static void expect_all_changed(uint32_t *all)
{
    notify_read(&n);
    assert_int_not_equal(notify_all(&n), *all);
    *all = notify_all(&n);
}

TEST(changes_of_folders_count_for_all, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("d/sub");
    mk_test_mkdir("other");
    add("d");
    uint32_t place = notify_place(add("other"), MK_STR("x")), all = notify_all(&n);
    uint64_t before = notify_number(&n, place);
    mk_test_mkdir("d/more"); /* no name that exists leads elsewhere by that */
    notify_read(&n);
    assert_int_equal(notify_all(&n), all);
    assert_int_equal(chmod(mk_test_path("d/sub"), 0700), 0);
    expect_all_changed(&all);
    snprintf(second, sizeof(second), "%s/away", mk_test_folder);
    assert_int_equal(rename(mk_test_path("d/sub"), second), 0);
    expect_all_changed(&all);
    assert_int_equal(rename(second, mk_test_path("d/sub")), 0);
    expect_all_changed(&all);
    snprintf(path, sizeof(path), "%s/d", mk_test_folder);
    assert_int_equal(rename(path, second), 0); /* the folder itself: the one above is not watched */
    expect_all_changed(&all);
    assert_int_equal(chmod(second, 0700), 0);
    expect_all_changed(&all);
    assert_int_not_equal(notify_number(&n, place), before);
}

/* The number of a folder is used again, but an entry of the former folder does not look unchanged. */
TEST(removed_folders, set_up, tear_down)
{
    mk_test_mkdir("d");
    int folder = add("d");
    uint32_t place = notify_place(folder, MK_STR("x"));
    uint64_t before = notify_number(&n, place);
    assert_int_equal(rmdir(mk_test_path("d")), 0);
    notify_read(&n);
    assert_int_equal(n.folders, 0);
    mk_test_mkdir("e");
    assert_int_equal(add("e"), folder);
    assert_int_not_equal(notify_number(&n, place), before);
    assert_int_equal(n.n, 1);
}

TEST(unused_folders, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    add("d");
    uint32_t place = notify_place(add("e"), MK_STR("x"));
    assert_true(notify_sweep(&n, 60 * 1000)); /* both were used */
    notify_touch(&n, place);
    assert_true(notify_sweep(&n, 119 * 1000));
    notify_read(&n);
    assert_int_equal(n.folders, 2);
    uint32_t all = notify_all(&n);
    assert_true(notify_sweep(&n, 120 * 1000));
    assert_int_equal(n.folders, 1);
    expect_all_changed(&all);
    assert_true(notify_sweep(&n, 180 * 1000));
    assert_false(notify_sweep(&n, 240 * 1000)); /* a server without requests reads no events */
    notify_read(&n);
    assert_true(add("d") > 0);
    assert_int_equal(n.folders, 1);
}

TEST(folders_above_one_that_is_used, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("d/sub");
    mk_test_mkdir("d/sub/e");
    int d = add("d"), sub = add_below(d, "d/sub", 1000);
    uint32_t place = notify_place(add_below(sub, "d/sub/e", 1000), MK_STR("x"));
    uint32_t all = notify_all(&n);
    for (uint64_t minute = 1; minute < 5; minute++) {
        assert_true(notify_sweep(&n, minute * 60 * 1000));
        assert_int_equal(n.folders, 3);
        notify_touch(&n, place);
    }
    assert_int_equal(notify_all(&n), all);
    assert_true(notify_sweep(&n, 300 * 1000));
    assert_true(notify_sweep(&n, 360 * 1000));
    assert_int_equal(n.folders, 0);
}

/* Numbers of folders are used again: the way to the first may be a circle then. */
TEST(a_circle_of_folders, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    int d = add("d"), e = add_below(d, "e", 1000);
    add_below(e, "d", 1000);
    notify_sweep(&n, 60 * 1000);
    notify_touch(&n, notify_place(d, MK_STR("x")));
    notify_sweep(&n, 120 * 1000);
    assert_int_equal(n.folders, 2);
}

/* Other threads wait for the lock, so that a sweep has parts. */
TEST(many_unused_folders, set_up, tear_down)
{
    enum { FOLDERS = 1200, PARTS = 3 };
    char name[16];
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        mk_test_mkdir(name);
        assert_true(add(name) > 0);
    }
    for (uint64_t at_s = 60; at_s < 60 + PARTS; at_s++)
        notify_sweep(&n, at_s * 1000);
    assert_int_equal(n.folders, FOLDERS);
    for (uint64_t at_s = 120, most = FOLDERS; at_s < 120 + PARTS; at_s++) {
        notify_sweep(&n, at_s * 1000);
        assert_true(n.folders < most && most - n.folders <= 512);
        most = n.folders;
        notify_sweep(&n, at_s * 1000 + 999);
        assert_int_equal(n.folders, most);
    }
    assert_int_equal(n.folders, 0);
}

/* The report that a watch has ended is lost with the others of an overflow. */
TEST(a_folder_whose_end_is_not_reported, set_up, tear_down)
{
    static char lost[4096];
    mk_test_mkdir("d");
    add("d");
    assert_int_equal(rmdir(mk_test_path("d")), 0);
    assert_true(read(n.fd, lost, sizeof(lost)) > 0);
    notify_sweep(&n, 60 * 1000);
    notify_sweep(&n, 120 * 1000);
    assert_int_equal(n.folders, 0);
}

/* ── what fails ── */

static unsigned warnings;

static void count_warning(enum mk_log_level level, const char *message, void *ctx)
{
    (void)ctx;
    warnings += level == MK_LOG_WARN && strstr(message, "folders are watched for changes") != NULL;
}

TEST(no_more_watches, set_up, tear_down)
{
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    mk_log_to_function(count_warning, NULL, MK_LOG_INFO);
    int folder = add("d");
    assert_true(folder > 0);
    snprintf(watched_path, sizeof(watched_path), "%s/d", mk_test_folder);
    add_error = ENOSPC;
    assert_int_equal(add_at("e", 2000), -ENOSPC);
    assert_int_equal(add_at("d", 2000), folder); /* stays watched */
    assert_int_equal(add_at("e", 2001), -ENOSPC);
    add_error = 0;
    assert_true(add_at("e", 2002) > 0);
    assert_int_equal(warnings, 1);
    mk_log_to(-1, MK_LOG_INFO);
}

TEST(no_descriptor, set_up, tear_down)
{
    mk_test_mkdir("d");
    open_error = EMFILE;
    assert_int_equal(add_at("d", 2000), -EMFILE);
    open_error = 0;
    assert_int_equal(add_at("d", 11999), -ENOSPC); /* is not tried */
    assert_true(add_at("d", 12000) > 0);
}

/* A folder that may not be read says nothing about others. */
TEST(folders_that_may_not_be_read, set_up, tear_down)
{
    mk_test_mkdir("d");
    add_error = EACCES;
    assert_int_equal(add("d"), -EACCES);
    add_error = 0;
    assert_true(add("d") > 0);
}

TEST(no_memory, set_up, tear_down)
{
    mk_test_mkdir("d");
    for (long failing = 0; failing < 2; failing++) {
        mk__alloc_countdown = failing;
        assert_int_equal(add_at("d", (uint64_t)failing * 10000), -ENOMEM);
        mk__alloc_countdown = -1;
        assert_int_equal(n.folders, 0);
    }
    assert_true(add_at("d", 20000) > 0);
}

/* The bytes that a program would read: the kernel has lost events. */
TEST(overflow, set_up, tear_down)
{
    static char limit[16];
    mk_test_mkdir("d");
    mk_test_mkdir("e");
    uint32_t place = notify_place(add("d"), MK_STR("x"));
    add("e");
    uint64_t before = notify_number(&n, place);
    int fd = open("/proc/sys/fs/inotify/max_queued_events", O_RDONLY | O_CLOEXEC);
    assert_true(fd < 0 || read(fd, limit, sizeof(limit) - 1) > 0);
    close(fd);
    for (long i = 0; i < atol(limit) + 10; i++) { /* two names by turns: equal events are merged */
        snprintf(path, sizeof(path), "%s/e/%ld", mk_test_folder, i % 2);
        assert_int_equal(symlink("x", path), 0);
        assert_int_equal(unlink(path), 0);
    }
    notify_read(&n);
    assert_true(fd < 0 || n.overflows == 1);
    assert_true(fd < 0 || notify_number(&n, place) != before);
}
