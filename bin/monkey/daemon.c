// SPDX-License-Identifier: Apache-2.0
/*
 * The daemon's surroundings (daemon.h). Files are opened so that a link planted at their place leads
 * nowhere.
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int ready_fd = -1;

/* The parent: leaves with what the child says, or with 3 when it dies without a word. */
static void wait_for_child(int fd)
{
    unsigned char code = 3;
    if (read(fd, &code, 1) != 1)
        code = 3;
    _exit(code);
}

int daemon_fork(void)
{
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

void daemon_ready(int code)
{
    unsigned char byte = (unsigned char)code;
    if (ready_fd < 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(null);
    }
    if (write(ready_fd, &byte, 1) != 1)
        code = 3; /* the parent is gone; nobody else wants to know */
    close(ready_fd);
    ready_fd = -1;
    if (chdir("/") < 0)
        return; /* then some directory stays in use */
}

/* Empty, or a number and nothing else: some other file is not ours to overwrite. */
static bool is_pid_file(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text[strspn(text, "0123456789")] == '\0';
}

int daemon_write_pid(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    if (!is_pid_file(fd)) {
        close(fd);
        return -EEXIST;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return 0; /* open, and so locked, until we end */
}

void daemon_remove_pid(const char *path)
{
    unlink(path);
}

int daemon_open_log(const char *path)
{
    /* not blocking: a FIFO without a reader is an error and no reason to wait */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0640);
    return fd < 0 ? -errno : fd;
}
