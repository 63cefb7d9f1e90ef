// SPDX-License-Identifier: Apache-2.0
/*
 * Reads small files in one piece and expands patterns of names. Not for what a client asks for: that goes
 * through directory descriptors and never waits.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that shrinks meanwhile is shorter, one that grows is cut at the size that it had. */
static int read_all(int fd, size_t size, struct mk_arena *arena, struct mk_str *ret_bytes)
{
    char *p = mk_arena_alloc(arena, size + 1);
    size_t len = 0;

    if (!p)
        return -ENOMEM;
    while (len < size) {
        ssize_t n = read(fd, p + len, size - len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            len += (size_t)n;
    }
    p[len] = '\0';
    *ret_bytes = mk_str(p, len);
    return 0;
}

int mk__file_read(const char *path, size_t bytes_max, struct mk_arena *arena, struct mk_str *ret_bytes)
{
    struct stat st;
    int r, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    else if ((uint64_t)st.st_size > bytes_max)
        r = -EFBIG;
    else
        r = read_all(fd, (size_t)st.st_size, arena, ret_bytes);
    close(fd);
    return r;
}

bool mk__file_is_glob(struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.p[i] == '*' || path.p[i] == '?' || path.p[i] == '[')
            return true;
    return false;
}

static int copy_names(const glob_t *found, struct mk_arena *arena, struct mk_str **ret_names, size_t *ret_n)
{
    struct mk_str *names = mk_arena_alloc(arena, (found->gl_pathc + 1) * sizeof(*names));
    size_t n = 0;

    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        struct mk_str name = mk_str_c(found->gl_pathv[i]);
        if (name.p[name.len - 1] == '/') /* GLOB_MARK: a directory */
            continue;
        if (!(names[n++] = mk_arena_dup(arena, name)).p)
            return -ENOMEM;
    }
    *ret_names = names;
    *ret_n = n;
    return 0;
}

/* A directory that is not there matches nothing; one that cannot be read is an error. */
static int refuse(const char *path, int err)
{
    (void)path;
    return err != ENOENT && err != ENOTDIR;
}

int mk__file_glob(const char *pattern, struct mk_arena *arena, struct mk_str **ret_names, size_t *ret_n)
{
    glob_t found = {0};
    int r = glob(pattern, GLOB_MARK, refuse, &found);

    if (r == 0 || r == GLOB_NOMATCH)
        r = copy_names(&found, arena, ret_names, ret_n);
    else
        r = r == GLOB_NOSPACE ? -ENOMEM : -EACCES;
    globfree(&found);
    return r;
}
