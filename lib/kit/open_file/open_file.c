// SPDX-License-Identifier: Apache-2.0
/*
 * Describes open files, and errors of opening them (<monkey/kit/open_file.h>).
 */
#include <monkey/kit/open_file.h>

#include <errno.h>
#include <sys/stat.h>

int mk_open_file_describe(int fd, struct mk_file *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
    uint32_t changed_nanoseconds = (uint32_t)st.st_ctim.tv_nsec;
    *ret = (struct mk_file){
        .fd = fd,
        .bytes = (uint64_t)st.st_size,
        .mtime_seconds = st.st_mtim.tv_sec,
        .mtime_nanoseconds = (uint32_t)st.st_mtim.tv_nsec,
        .version = mk_file_version(st.st_dev, st.st_ino, st.st_ctim.tv_sec, changed_nanoseconds),
    };
    return 0;
}

int mk_open_file_get_status(int err)
{
    static const struct {
        int err, status;
    } rows[] = {{ENOENT, 404},       {ENOTDIR, 404}, {EISDIR, 404}, {ELOOP, 404}, {EXDEV, 404},
                {ENAMETOOLONG, 404}, {ENXIO, 404},   {EACCES, 403}, {EPERM, 403}, {EMFILE, 503},
                {ENFILE, 503},       {ENOMEM, 503},  {EAGAIN, 503}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].err == -err)
            return rows[i].status;
    return 500;
}
