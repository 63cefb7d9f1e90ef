// SPDX-License-Identifier: Apache-2.0
/* Keeps descriptors 0 to 2 (server/listen/standard_fds.h). */
#include "server/listen/standard_fds.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STANDARD_FDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned servers;
static struct stat opened[STANDARD_FDS]; /* st_ino 0: not by this file */

void mk__standard_fds_fill(void)
{
    pthread_mutex_lock(&lock);
    for (int fd = 0; fd < STANDARD_FDS; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC); /* gets the lowest number */
        if (null == fd && fstat(fd, &opened[fd]) == 0)
            continue;
        if (null >= 0)
            close(null);
    }
    pthread_mutex_unlock(&lock);
}

void mk__standard_fds_get(void)
{
    pthread_mutex_lock(&lock);
    servers++;
    pthread_mutex_unlock(&lock);
    mk__standard_fds_fill();
}

/* A program that has opened another file, or /dev/null for its own programs, keeps it. */
static bool is_ours(int fd)
{
    struct stat now;
    int flags = fcntl(fd, F_GETFD);
    return opened[fd].st_ino && flags >= 0 && flags & FD_CLOEXEC && fstat(fd, &now) == 0 &&
           now.st_ino == opened[fd].st_ino && now.st_dev == opened[fd].st_dev;
}

void mk__standard_fds_put(void)
{
    pthread_mutex_lock(&lock);
    servers--;
    for (int fd = 0; fd < STANDARD_FDS && !servers; fd++) {
        if (is_ours(fd))
            close(fd);
        opened[fd].st_ino = 0;
    }
    pthread_mutex_unlock(&lock);
}
