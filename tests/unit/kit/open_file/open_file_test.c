// SPDX-License-Identifier: Apache-2.0
/* What a response with an open file takes, and the statuses of errors. */
#include "folder.h"
#include "testing.h"

#include <monkey/kit/open_file.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

TEST(describes_files)
{
    struct mk_file file;
    struct stat st;
    mk_test_write("file", MK_STR("hello"));
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(mk_open_file_describe(fd, &file), 0);
    assert_int_equal(file.fd, fd);
    assert_int_equal(file.bytes, 5);
    assert_int_equal(file.mtime_seconds, st.st_mtim.tv_sec);
    assert_int_equal(file.mtime_nanoseconds, st.st_mtim.tv_nsec);
    assert_int_equal(file.version,
                     mk_file_version(st.st_dev, st.st_ino, st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec));
    assert_null(file.type.p);
    close(fd);
}

TEST(refuses_what_is_no_file)
{
    static const struct {
        const char *path;
        int result;
    } rows[] = {{"/", -EISDIR}, {"/dev/null", -ENXIO}};
    struct mk_file file;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int fd = open(rows[i].path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(mk_open_file_describe(fd, &file), rows[i].result);
        close(fd);
    }
    assert_int_equal(mk_open_file_describe(-1, &file), -EBADF);
}

TEST(statuses)
{
    static const struct {
        int err, status;
    } rows[] = {
        {-ENOENT, 404},       {-ENOTDIR, 404}, {-EISDIR, 404}, {-ELOOP, 404}, {-EXDEV, 404},
        {-ENAMETOOLONG, 404}, {-ENXIO, 404},   {-EACCES, 403}, {-EPERM, 403}, {-EMFILE, 503},
        {-ENFILE, 503},       {-ENOMEM, 503},  {-EAGAIN, 503}, {-EIO, 500},   {-EBADF, 500},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk_open_file_get_status(rows[i].err), rows[i].status);
}
