// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel keeps paths below the root (openat2(2)). No code compares strings to decide what may be opened.
 */
#include "openat2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/* O_NONBLOCK: do not wait for a FIFO or device. O_NOCTTY: do not get a controlling terminal. */
enum { FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

static int call_openat2(int root_fd, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

int openat2_open_file(int root_fd, const char *path, uint64_t resolve)
{
    return call_openat2(root_fd, path, FILE_FLAGS, resolve);
}

int openat2_open_dir(int root_fd, const char *path, uint64_t resolve)
{
    return call_openat2(root_fd, path, DIR_FLAGS, resolve);
}
