// SPDX-License-Identifier: Apache-2.0
/* Reads files of keys (key_file.h). */
#include "key_file.h"

#include <monkey/arena.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "key_set.h"

void key_file_free(struct key_file *file)
{
    if (file->data) {
        explicit_bzero(file->data, file->size);
        mk_account_free(NULL, file->data, file->size);
    }
    *file = (struct key_file){0};
}

static int report_errno(struct mk_buf *message, const char *path, int err)
{
    mk_buf_addf(key_set_report(message, path), "cannot be read: %s", strerror(-err));
    return err;
}

static int check_file(struct key_file *file, int fd, const char *path, struct mk_buf *message)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return report_errno(message, path, -errno);
    file->mode = st.st_mode & 07777;
    file->size = (size_t)st.st_size;
    if (!S_ISREG(st.st_mode))
        mk_buf_addf(key_set_report(message, path), "is not a regular file");
    else if (!st.st_size)
        mk_buf_addf(key_set_report(message, path), "is empty");
    else if (st.st_size > KEY_FILE_BYTES_MAX)
        mk_buf_addf(key_set_report(message, path), "has more than %d bytes", KEY_FILE_BYTES_MAX);
    else
        return 0;
    return -EINVAL;
}

/* Reads the bytes that the file had when it was opened, or fewer if it has shrunk. */
static int read_bytes(struct key_file *file, int fd)
{
    file->data = mk_account_alloc(NULL, file->size);
    if (!file->data)
        return -ENOMEM;
    while (file->len < file->size) {
        ssize_t n = read(fd, file->data + file->len, file->size - file->len);
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        file->len += (size_t)n;
    }
    return 0;
}

int key_file_read(struct key_file *file, const char *path, struct mk_buf *message)
{
    *file = (struct key_file){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* O_NONBLOCK: do not wait for a FIFO */
    if (fd < 0)
        return report_errno(message, path, -errno);
    int err = check_file(file, fd, path, message);
    if (err == 0) {
        err = read_bytes(file, fd);
        if (err < 0)
            report_errno(message, path, err);
    }
    close(fd);
    return err;
}

int key_file_check_private(const struct key_file *file, const char *path, struct mk_buf *message)
{
    if (!(file->mode & (S_IWGRP | S_IXGRP | S_IRWXO)))
        return 0;
    mk_buf_addf(key_set_report(message, path),
                "holds a secret, but its mode is %03o: only its owner may write it, and only its group read it too "
                "(chmod 600, or 640)",
                file->mode & 0777);
    return -EINVAL;
}
