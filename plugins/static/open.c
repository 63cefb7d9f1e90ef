// SPDX-License-Identifier: Apache-2.0
/*
 * Opens names below a root (open.h), as SymLink says, and with or without waiting for a disk.
 */
#include "open.h"

#include "openat2.h"
#include "symlinks.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

enum { TRIES_MAX = 64 };

static const uint64_t resolve_modes[] = {
    [SYMLINKS_OFF] = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    [SYMLINKS_INSIDE] = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    [SYMLINKS_ON] = RESOLVE_NO_MAGICLINKS,
};

int open_name(struct static_site *site, const char *name, bool cached)
{
    uint64_t resolve = resolve_modes[site->settings->symlinks];
    if (cached) {
        /* RESOLVE_CACHED fails on tmpfs for names that do not exist, because it does not cache them; nor does it wait
         */
        bool in_memory = site->in_memory;
        int fd = openat2_open_file(site->root_fd, name, resolve | (in_memory ? RESOLVE_NO_XDEV : RESOLVE_CACHED));
        bool perhaps = in_memory || site->settings->symlinks == SYMLINKS_INSIDE;
        return fd == -EXDEV && perhaps ? -EAGAIN : fd;
    }
    int fd = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && fd == -EAGAIN; i++) /* after a rename at the same time: see openat2(2) */
        fd = openat2_open_file(site->root_fd, name, resolve);
    return fd == -EXDEV && site->settings->symlinks == SYMLINKS_INSIDE ? symlinks_open_file(site, name) : fd;
}

int open_dir(const struct static_site *site, int fd, const char *name)
{
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES];
    int n = snprintf(path, sizeof(path), "%s/.", name),
        dir_fd = -EAGAIN; /* "/." fails if the process may not search it */
    if (n >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (int i = 0; i < TRIES_MAX && dir_fd == -EAGAIN; i++)
        dir_fd = openat2_open_dir(fd, path, resolve_modes[site->settings->symlinks]);
    return dir_fd;
}

struct find_result open_stat(int fd, struct mk_str name)
{
    struct find_result f = {.kind = FOUND_NOTHING, .fd = fd, .name = name};
    struct stat st;
    if (fd < 0) {
        f.err = -fd;
        return f;
    }
    if (fstat(fd, &st) < 0)
        f.err = errno;
    else if (S_ISREG(st.st_mode))
        f.kind = FOUND_FILE;
    else if (S_ISDIR(st.st_mode))
        f.kind = FOUND_DIRECTORY;
    else
        f.err = ENOENT; /* devices and the like are not served */
    if (f.kind == FOUND_FILE) {
        f.bytes = (uint64_t)st.st_size;
        f.mtime = st.st_mtim;
    } else {
        close(fd);
        f.fd = -1;
    }
    return f;
}

bool open_is_missing(int err)
{
    static const int missing[] = {ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO};
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        if (missing[i] == err)
            return true;
    return false;
}

bool open_is_hidden(const struct static_site *site, struct mk_str path)
{
    struct mk_str known = MK_STR("/.well-known");
    if (mk_str_starts(path, known) && (path.len == known.len || path.p[known.len] == '/'))
        path = mk_str(path.p + known.len, path.len - known.len);
    return !site->settings->dotfiles && path.len && memmem(path.p, path.len, "/.", 2);
}
