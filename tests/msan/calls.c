// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the C library that write to memory and that the MemorySanitizer of clang 14 does not know: the linker takes
 * these functions in their place, which mark what the kernel has written.
 */
#include <fcntl.h>
#include <malloc.h>
#include <sanitizer/msan_interface.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int mark_stat(long result, struct stat *st)
{
    if (result == 0)
        __msan_unpoison(st, sizeof(*st));
    return (int)result;
}

int fstat(int fd, struct stat *st)
{
    return mark_stat(syscall(SYS_fstat, fd, st), st);
}

int fstatat(int fd, const char *path, struct stat *st, int flags)
{
    return mark_stat(syscall(SYS_newfstatat, fd, path, st, flags), st);
}

int stat(const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, 0);
}

int lstat(const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

/* The allocator is the sanitizer's. */
struct mallinfo2 mallinfo2(void)
{
    return (struct mallinfo2){0};
}

/* Tests that decide themselves what the page cache holds have another one. */
__attribute__((weak)) ssize_t preadv2(int fd, const struct iovec *parts, int n_parts, off_t at, int flags)
{
    ssize_t n = syscall(SYS_preadv2, fd, parts, n_parts, at, 0L, flags);
    for (ssize_t i = 0, left = n; left > 0; i++) {
        size_t part = (size_t)left < parts[i].iov_len ? (size_t)left : parts[i].iov_len;
        __msan_unpoison(parts[i].iov_base, part);
        left -= (ssize_t)part;
    }
    return n;
}
