// SPDX-License-Identifier: Apache-2.0
/*
 * Background process, pid file and log file. Symbolic links are not followed when these files are opened.
 */
#include "program.h"

#include <monkey/base/file.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int ready_fd = -1;
static int pid_fd = -1; /* of the locked pid file; -1: this process does not own it */
static bool pid_taken;  /* received from the previous process, whose pid it still holds */

void daemon_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* In the parent: exits with the code that the child sends, or with 3 if the child dies without sending one. */
static void wait_for_child(int fd)
{
    unsigned char code = 3;
    if (read(fd, &code, 1) != 1)
        code = 3;
    _exit(code);
}

int daemon_fork(void)
{
    assert(ready_fd < 0);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0) {
        close(fds[1]);
        wait_for_child(fds[0]);
    }
    close(fds[0]);
    ready_fd = fds[1];
    return setsid() < 0 ? -errno : 0;
}

static void detach_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(null);
    }
    if (chdir("/") < 0)
        return; /* not fatal: the working directory stays in use */
}

void daemon_ready(int code, bool background)
{
    unsigned char byte = (unsigned char)code;
    if (background && code == 0)
        detach_terminal();
    if (ready_fd < 0)
        return;
    if (write(ready_fd, &byte, 1) != 1)
        code = 3; /* the parent has ended: no process waits for the code */
    close(ready_fd);
    ready_fd = -1;
}

int daemon_write_pid(const char *path)
{
    assert(path && pid_fd < 0);
    int fd = mk_file_open_pid(path, O_CREAT);
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    pid_fd = fd;
    return 0; /* stays open, and so locked, until this process ends */
}

static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void daemon_remove_pid(const char *path)
{
    if (pid_taken || pid_fd < 0 || !path) /* it may hold the pid of the previous process, which still runs */
        return;
    if (is_same_file(pid_fd, path) && unlink(path) < 0 && ftruncate(pid_fd, 0) < 0)
        return; /* a pid file without a lock is ignored */
}

int daemon_pid_fd(const char *path)
{
    return pid_fd >= 0 && is_same_file(pid_fd, path) ? pid_fd : -1;
}

void daemon_take_pid(int fd)
{
    assert(fd >= 0 && pid_fd < 0);
    pid_fd = fd;
    pid_taken = true;
}

void daemon_confirm_pid(void)
{
    assert(!pid_taken || pid_fd >= 0);
    if (pid_taken &&
        (ftruncate(pid_fd, 0) < 0 || lseek(pid_fd, 0, SEEK_SET) < 0 || dprintf(pid_fd, "%d\n", getpid()) < 0))
        return; /* the disk is full: the file is empty, but still locked */
    pid_taken = false;
}

void daemon_release_pid(void)
{
    if (pid_fd >= 0)
        close(pid_fd);
    pid_fd = -1;
}

int daemon_open_log(const char *path, bool *ret_made)
{
    /* O_NONBLOCK: opening a FIFO without a reader fails instead of blocking */
    return mk_file_open_output(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0640, ret_made);
}
