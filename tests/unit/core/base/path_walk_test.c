// SPDX-License-Identifier: Apache-2.0
/* Paths that are walked have the results of openat2(2): the same file, or the same errno. */
#include "folder.h"
#include "testing.h"

#include "base/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    PATH_FLAGS = O_PATH | O_CLOEXEC,
    DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
    LINK_FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC,
};

static int call_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

static int root;
static unsigned n_different;
static char real_root[256];

static void add_link(const char *target, const char *name)
{
    assert_int_equal(symlinkat(target, root, name), 0);
}

static void add_file(const char *name)
{
    int fd = openat(root, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

/* A folder "root" with files, links of all kinds, and a chain of 45 links. */
static int open_site(void **state)
{
    static const char *const links[][2] = {
        {"a/f", "to-file"},         {"a", "to-folder"},     {"a/", "to-folder-slash"},
        {"none", "dangling"},       {"loop", "loop"},       {"../outside", "escape"},
        {"a/../a/f", "winding"},    {"..", "up"},           {".", "here"},
        {"/etc/passwd", "passwd"},  {"/", "top"},           {"a/b/../../a/f", "deep-winding"},
        {"a/../..", "up-twice"},    {"/proc/self", "proc"}, {"f/x", "below-a-file"},
        {"../root/a/f", "back-in"},
    };
    assert_int_equal(mk_test_folder_make(state), 0);
    snprintf(real_root, sizeof(real_root), "%s", mk_test_path("root"));
    assert_int_equal(mkdir(real_root, 0755), 0);
    assert_int_equal(mkdir(mk_test_path("outside"), 0755), 0);
    root = open(real_root, DIR_FLAGS);
    assert_true(root >= 0);
    assert_int_equal(mkdirat(root, "a", 0755), 0);
    assert_int_equal(mkdirat(root, "a/b", 0755), 0);
    assert_int_equal(mkdirat(root, "shared", 0755), 0);
    assert_int_equal(fchmodat(root, "shared", 01777, 0), 0);
    assert_int_equal(mkfifoat(root, "fifo", 0644), 0);
    add_file("f");
    add_file("a/f");
    add_file("a/b/f");
    for (size_t i = 0; i < COUNT(links); i++)
        add_link(links[i][0], links[i][1]);
    add_link("../f", "shared/own");
    add_link("../up", "a/up-by-link");
    for (int i = 0; i < 45; i++) {
        char name[16], target[16];
        snprintf(name, sizeof(name), "l%d", i);
        snprintf(target, sizeof(target), i ? "l%d" : "f", i - 1);
        add_link(target, name);
    }
    return 0;
}

static int close_site(void **state)
{
    close(root);
    return mk_test_folder_remove(state);
}

TEST_FILE(open_site, close_site)

static bool is_same_file(int a, int b)
{
    struct stat st[2];
    return fstat(a, &st[0]) == 0 && fstat(b, &st[1]) == 0 && st[0].st_ino == st[1].st_ino &&
           st[0].st_dev == st[1].st_dev &&
           ((fcntl(a, F_GETFL) ^ fcntl(b, F_GETFL)) & ~(O_NOFOLLOW | O_DIRECTORY)) == 0 &&
           fcntl(a, F_GETFD) == fcntl(b, F_GETFD);
}

/* Compares both ways of opening a path. */
static void compare(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    int kernel = call_openat2(dir, path, flags, resolve), walk = mk__path_walk_open(dir, path, flags, resolve);
    bool is_same = kernel < 0 || walk < 0 ? kernel == walk : is_same_file(kernel, walk);
    if (!is_same)
        fprintf(stderr, "%.80s, flags %#llx, resolve %#llx: %d, not %d\n", path, (unsigned long long)flags,
                (unsigned long long)resolve, walk, kernel);
    n_different += !is_same;
    if (kernel >= 0)
        close(kernel);
    if (walk >= 0)
        close(walk);
}

static const uint64_t modes[] = {
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    RESOLVE_BENEATH,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS,
    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    0,
};
static const uint64_t flag_rows[] = {
    FILE_FLAGS, PATH_FLAGS, DIR_FLAGS, LINK_FLAGS, LINK_FLAGS | O_DIRECTORY, FILE_FLAGS | O_NOFOLLOW};

static void compare_all(int dir, const char *path)
{
    for (size_t m = 0; m < COUNT(modes); m++)
        for (size_t i = 0; i < COUNT(flag_rows); i++)
            compare(dir, path, flag_rows[i], modes[m]);
}

static const char *const paths[] = {
    "",
    ".",
    "./",
    "..",
    "../",
    "../root",
    "../root/f",
    "/",
    "//",
    "/etc/passwd",
    "/none",
    "f",
    "f/",
    "f/.",
    "f/..",
    "f/x",
    "./f",
    "a/./f",
    "a//f",
    "a///f",
    "none",
    "none/x",
    "none/",
    "a",
    "a/",
    "a/.",
    "a/..",
    "a/../",
    "a/../f",
    "a/b/../f",
    "a/b/../../f",
    "a/b/../../..",
    "a/../../root/f",
    "fifo",
    "to-file",
    "to-file/",
    "to-folder",
    "to-folder/",
    "to-folder/f",
    "to-folder/..",
    "to-folder/../f",
    "to-folder-slash",
    "to-folder-slash/f",
    "dangling",
    "dangling/",
    "loop",
    "loop/x",
    "escape",
    "escape/",
    "winding",
    "deep-winding",
    "up",
    "up/root/f",
    "here",
    "here/f",
    "here/here/here/f",
    "passwd",
    "top",
    "top/etc/passwd",
    "up-twice",
    "below-a-file",
    "back-in",
    "a/up-by-link",
    "a/up-by-link/root/f",
    "proc",
    "proc/fd",
    "proc/fd/0",
    "proc/exe",
    "proc/cwd",
    "proc/cwd/.",
    "proc/root/etc/passwd",
    "proc/status",
    "l38",
    "l39",
    "l40",
    "l41",
    "l44",
    "shared/own",
    "shared/..",
};

TEST(results_of_paths)
{
    for (size_t i = 0; i < COUNT(paths); i++)
        compare_all(root, paths[i]);
    assert_int_equal(n_different, 0);
}

TEST(results_from_the_working_directory)
{
    static const char *const absolute[] = {"/",
                                           "/.",
                                           "/..",
                                           "/../etc/passwd",
                                           "/proc/self",
                                           "/proc/self/exe",
                                           "/proc/mounts",
                                           "/proc/self/fd/0",
                                           "/dev/null",
                                           "/dev/null/"};
    assert_int_equal(fchdir(root), 0);
    for (size_t i = 0; i < COUNT(absolute); i++)
        compare_all(AT_FDCWD, absolute[i]);
    compare_all(AT_FDCWD, "a/f");
    compare_all(AT_FDCWD, "..");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(n_different, 0);
}

TEST(long_names)
{
    static char path[3 * PATH_MAX];
    static const size_t sizes[] = {NAME_MAX, NAME_MAX + 1, PATH_MAX - 1, PATH_MAX, PATH_MAX + 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        memset(path, 'x', sizes[i]);
        path[sizes[i]] = '\0';
        compare_all(root, path);
        for (size_t at = 0; at + 2 < sizes[i]; at += 2)
            memcpy(path + at, "./", 2);
        compare_all(root, path);
    }
    assert_int_equal(n_different, 0);
}

TEST(folders_that_are_no_folders)
{
    int file = openat(root, "f", PATH_FLAGS);
    static const char *const names[] = {"", ".", "..", "x", "/"};
    for (size_t i = 0; i < COUNT(names); i++) {
        compare_all(file, names[i]);
        compare_all(-1, names[i]);
    }
    close(file);
    assert_int_equal(n_different, 0);
}

/* Runs a function as another user, and in another mount namespace. */
static void run_child(void (*fn)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        fn();
        _exit(n_different > 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void compare_as_nobody(void)
{
    static const char *const names[] = {"closed", "closed/",    "closed/.",       "closed/..",       "closed/x",
                                        "listed", "listed/",    "listed/.",       "listed/..",       "listed/f",
                                        "secret", "shared/own", "shared/planted", "shared/planted/", "a/f"};
    assert_int_equal(setgid(65534) | setuid(65534), 0);
    for (size_t i = 0; i < COUNT(names); i++)
        compare_all(root, names[i]);
}

TEST(permissions)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdirat(root, "closed", 0700) | mkdirat(root, "listed", 0744), 0);
    add_file("listed/f");
    add_file("secret");
    assert_int_equal(fchmodat(root, "secret", 0600, 0), 0);
    add_link("../f", "shared/planted");
    assert_int_equal(fchownat(root, "shared/planted", 1234, 1234, AT_SYMLINK_NOFOLLOW), 0);
    run_child(compare_as_nobody);
}

static void compare_mounts(void)
{
    static const char *const names[] = {"a/b",   "a/b/",          "a/b/.", "a/b/..",    "a/b/../f",
                                        "a/b/m", "to-folder/b/m", "top",   "a/b/to-up", "a/b/to-up/f"};
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        _exit(0); /* the machine does not allow it */
    char place[300];
    snprintf(place, sizeof(place), "%s/a/b", real_root);
    assert_int_equal(mount("tmpfs", place, "tmpfs", 0, NULL), 0);
    add_file("a/b/m");
    add_link("..", "a/b/to-up");
    for (size_t i = 0; i < COUNT(names); i++)
        compare_all(root, names[i]);
    int below = openat(root, "a/b", DIR_FLAGS);
    compare_all(below, "..");
    compare_all(below, "../f");
    compare_all(below, "m");
    assert_int_equal(mount(real_root, place, NULL, MS_BIND, NULL), 0); /* of the same device */
    for (size_t i = 0; i < COUNT(names); i++)
        compare_all(root, names[i]);
}

TEST(mounts)
{
    if (geteuid() != 0)
        skip();
    run_child(compare_mounts);
}

TEST(nothing_is_cached)
{
    assert_int_equal(mk__path_walk_open(root, "f", FILE_FLAGS, RESOLVE_CACHED), -EAGAIN);
}

/* ── names that change in the midst ── */

static _Atomic bool ended;

static void exchange(const char *a, const char *b)
{
    (void)!renameat2(root, a, root, b, RENAME_EXCHANGE);
}

static void *swap_names(void *arg)
{
    (void)arg;
    while (!ended) {
        exchange("a", "swap");      /* a folder, and a link to what is outside */
        exchange("f", "swap-file"); /* a file, and such a link */
        (void)!renameat(root, "moved/deep", root, "../outside/deep");
        (void)!renameat(root, "../outside/deep", root, "moved/deep");
    }
    return NULL;
}

static bool is_secret(int fd)
{
    char text[8] = "";
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    return n > 0 && text[0] == 's';
}

/* No order of events leads out of the folder, whose files are empty. */
TEST(races)
{
    static const char *const names[] = {
        "a/f", "a/b/f", "a/b/../f", "f", "winding", "moved/deep/../../secret", "moved/deep/../secret", "deep-winding"};
    static const uint64_t beneath[] = {RESOLVE_BENEATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    pthread_t thread;
    unsigned opened = 0;
    int fd = open(mk_test_path("secret"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "secret", 6), 6);
    close(fd);
    assert_int_equal(linkat(root, "../secret", root, "../outside/f", 0), 0);
    assert_int_equal(linkat(root, "../secret", root, "../outside/secret", 0), 0);
    assert_int_equal(mkdirat(root, "moved", 0755) | mkdirat(root, "moved/deep", 0755), 0);
    add_link("../outside", "swap");
    add_link("../secret", "swap-file");
    ended = false;
    assert_int_equal(pthread_create(&thread, NULL, swap_names, NULL), 0);
    for (unsigned i = 0; i < 20000 || !opened; i++) {
        fd = mk__path_walk_open(root, names[i % COUNT(names)], FILE_FLAGS, beneath[i / COUNT(names) % 2]);
        opened += fd >= 0;
        assert_false(fd >= 0 && is_secret(fd));
    }
    ended = true;
    pthread_join(thread, NULL);
}
