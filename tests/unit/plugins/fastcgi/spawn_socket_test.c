// SPDX-License-Identifier: Apache-2.0
/* Sockets of Spawn, and the folders that killed servers leave. */
#include "folder.h"
#include "testing.h"

#include "plugins/fastcgi/fastcgi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

enum { OLD_SECONDS = 3600 };

/* Returns the path of a folder of the test, whose name is that of another process unless it is a whole one. */
static const char *get_path(const char *name)
{
    static char paths[8][512];
    static unsigned n;
    char *path = paths[n++ % 8];
    snprintf(path, sizeof(paths[0]), "%s", mk_test_path(name));
    return path;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Makes a folder as if it had been there for an hour. */
static void make_old(const char *path)
{
    const struct timespec old[2] = {{.tv_sec = time(NULL) - OLD_SECONDS}, {.tv_sec = time(NULL) - OLD_SECONDS}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

/* Listens in a folder, and leaves it as a server that is killed does. */
static void leave_folder(const char *path)
{
    int fd = spawn_socket_open(path);
    assert_true(fd >= 0);
    close(fd);
}

static int connect_to(const char *folder)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s%s", folder, SPAWN_SOCKET_NAME);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int err = connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ? -errno : 0;
    close(fd);
    return err;
}

TEST(a_socket_is_made_and_removed)
{
    const char *path = get_path(SPAWN_SOCKET_PREFIX "1-made");
    struct stat st;
    int fd = spawn_socket_open(path);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(connect_to(path), 0);
    assert_int_equal(spawn_socket_open(path), -EEXIST);
    spawn_socket_close(path, fd);
    assert_false(exists(path));
}

TEST(a_path_that_is_too_long)
{
    char name[200];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(spawn_socket_open(get_path(name)), -ENAMETOOLONG);
    assert_int_equal(spawn_socket_open("/nowhere/at/all"), -ENOENT);
}

/* What nothing listens in is removed once it is old. */
TEST(folders_that_are_left)
{
    const char *left = get_path(SPAWN_SOCKET_PREFIX "1-left"), *empty = get_path(SPAWN_SOCKET_PREFIX "1-empty");
    leave_folder(left);
    assert_int_equal(mkdir(empty, 0700), 0);
    spawn_socket_sweep(get_path(""));
    assert_true(exists(left) && exists(empty)); /* young: another server may be about to listen there */
    make_old(left);
    make_old(empty);
    leave_folder(get_path(SPAWN_SOCKET_PREFIX "1-next")); /* opening one sweeps, too */
    assert_false(exists(left) || exists(empty));
}

TEST(folders_that_stay)
{
    char own[64];
    snprintf(own, sizeof(own), "%s%d-own", SPAWN_SOCKET_PREFIX, (int)getpid());
    const char *used = get_path(SPAWN_SOCKET_PREFIX "1-used"), *other = get_path("other-1-x");
    const char *open = get_path(SPAWN_SOCKET_PREFIX "1-open"), *mine = get_path(own);
    int fd = spawn_socket_open(used);
    assert_true(fd >= 0);
    leave_folder(other);
    leave_folder(mine);
    leave_folder(open);
    assert_int_equal(chmod(open, 0755), 0);
    make_old(used);
    make_old(other);
    make_old(mine);
    make_old(open);
    spawn_socket_sweep(get_path(""));
    assert_true(exists(used) && exists(other) && exists(mine) && exists(open));
    assert_int_equal(connect_to(used), 0);
    spawn_socket_close(used, fd);
}
