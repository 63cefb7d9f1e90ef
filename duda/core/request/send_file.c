// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the files that services send (send_file.h).
 */
#include "request/send_file.h"

#include "request/output.h"
#include "request/request.h"
#include "service/folder.h"

#include <monkey/base/file.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without O_NONBLOCK the open of a pipe would wait for its other end. */
enum { FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* A rename at the same time makes openat2(2) return EAGAIN. */
enum { TRIES = 8 };

static int open_below(const char *folder, const char *path)
{
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    int fd = -EAGAIN;
    for (unsigned i = 0; i < TRIES && fd == -EAGAIN; i++)
        fd = mk_file_openat2(dir, path, FLAGS, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    close(dir);
    return fd;
}

static int open_file(struct service *s, const char *path)
{
    const struct duda_string *folder = folder_get(s, FOLDER_DATA);
    if (*path != '/')
        return folder->len ? open_below(folder->data, path) : -EINVAL;
    int fd = open(path, FLAGS);
    return fd < 0 ? -errno : fd;
}

int send_file_check_range(uint64_t size, off_t offset, size_t len, uint64_t *ret_len)
{
    if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
        return -ERANGE;
    *ret_len = len ? len : size - (uint64_t)offset;
    return 0;
}

int send_file_add(struct duda_request *dr, const char *path, off_t offset, size_t len)
{
    struct stat st;
    uint64_t bytes = 0;
    int fd = open_file(dr->worker->service, path);
    if (fd < 0)
        return fd;
    int err = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (err == 0 && mk_host_is_source_fd(mk_request_host_conf(dr->req), fd))
        err = -EACCES; /* a program that another plugin runs */
    if (err == 0)
        err = send_file_check_range((uint64_t)st.st_size, offset, len, &bytes);
    if (err == 0)
        return output_add_file(dr, fd, (uint64_t)offset, bytes);
    close(fd);
    return err;
}
