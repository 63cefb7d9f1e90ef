// SPDX-License-Identifier: Apache-2.0
/*
 * Opens one component of a path after the other (path_walk.h), each with O_NOFOLLOW: no call of the kernel follows a
 * link. A link is read, and its target is put before the rest of the path. ".." below a folder never asks the kernel,
 * which would go where the folder has been moved to: the names that led here are walked again from the start, but for
 * the last one.
 */
#include "base/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    LINKS_MAX = 40,       /* MAXSYMLINKS of the kernel */
    PROC_ROOT_INODE = 1,  /* of the root of procfs */
    NO_SYMLINKS = 0x2000, /* ST_NOSYMFOLLOW of a mount */
    STEP_FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC,
    ENTER_FLAGS = STEP_FLAGS | O_DIRECTORY,
};

struct path_walk {
    uint64_t flags, resolve;
    int start; /* the caller's folder, or AT_FDCWD */
    int at;    /* the folder that was reached; `start`, or to be closed */
    unsigned links;
    bool has_root;                /* the path, or a link, was absolute */
    uint64_t mount;               /* of where it began, with RESOLVE_NO_XDEV */
    size_t n_entered;             /* bytes in `entered` */
    char entered[PATH_MAX];       /* with RESOLVE_BENEATH: the names from `start` to `at`, a NUL after each */
    char remaining[2 * PATH_MAX]; /* what is left of the path */
};

/* ── the folder that was reached ── */

static void move_to(struct path_walk *w, int fd)
{
    if (w->at != w->start)
        close(w->at);
    w->at = fd;
}

/* Opens a name in a folder, which is no link. Returns a descriptor or -errno. */
static int open_name(int folder, const char *name, int flags)
{
    int fd = openat(folder, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Returns a number of the mount through which the folder was opened; of its device before Linux 5.8. */
static uint64_t get_mount(int fd, const char *name)
{
    struct statx st = {0};
    (void)!statx(fd, name, AT_EMPTY_PATH, STATX_MNT_ID, &st);
    return st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
}

/* Returns 0, or -EXDEV: the folder is on another mount than the start. */
static int check_mount(const struct path_walk *w, int fd)
{
    return w->resolve & RESOLVE_NO_XDEV && get_mount(fd, "") != w->mount ? -EXDEV : 0;
}

/* Goes to a folder that was opened, or closes it. Returns 0 or -errno. */
static int enter_fd(struct path_walk *w, int fd)
{
    int err = check_mount(w, fd);
    if (err < 0)
        close(fd);
    else
        move_to(w, fd);
    return err;
}

/* Enters a folder by its name, and notes the name. Returns 0, -ENOTDIR (also a link) or another -errno. */
static int enter_name(struct path_walk *w, const char *name)
{
    size_t bytes = strlen(name) + 1;
    int fd = open_name(w->at, name, ENTER_FLAGS);
    if (fd < 0)
        return fd;
    bool is_noted = w->resolve & RESOLVE_BENEATH;
    if (is_noted && w->n_entered + bytes > sizeof(w->entered)) {
        close(fd);
        return -ENAMETOOLONG;
    }
    if (is_noted) {
        memcpy(w->entered + w->n_entered, name, bytes);
        w->n_entered += bytes;
    }
    return enter_fd(w, fd);
}

/* Goes to the folder above, which is that by whose names `at` was reached. Returns 0 or -errno. */
static int leave_below(struct path_walk *w)
{
    size_t end = w->n_entered;
    if (!end)
        return -EXDEV;
    for (end--; end && w->entered[end - 1]; end--)
        ;
    w->n_entered = 0;
    move_to(w, w->start);
    while (w->n_entered < end) {
        const char *name = w->entered + w->n_entered;
        int fd = open_name(w->at, name, ENTER_FLAGS);
        if (fd < 0)
            return -EAGAIN; /* it was renamed meanwhile */
        move_to(w, fd);
        w->n_entered += strlen(name) + 1;
    }
    return 0;
}

/* Goes to the folder above. That the process may search the one below is checked as the kernel does. */
static int leave_folder(struct path_walk *w)
{
    int below = open_name(w->at, ".", ENTER_FLAGS);
    if (below < 0)
        return below;
    close(below);
    if (w->resolve & RESOLVE_BENEATH)
        return leave_below(w);
    int fd = open_name(w->at, "..", ENTER_FLAGS);
    return fd < 0 ? fd : enter_fd(w, fd);
}

/* ── links ── */

/* Refuses a link of procfs that is more than a text (/proc/self/fd/1), and one on a mount without links. */
static int check_link_type(const struct path_walk *w, int link, const struct stat *folder)
{
    struct statfs fs;
    if (fstatfs(link, &fs) < 0)
        return -errno;
    if (fs.f_flags & NO_SYMLINKS)
        return -ELOOP;
    if (fs.f_type != PROC_SUPER_MAGIC || folder->st_ino == PROC_ROOT_INODE)
        return 0;
    return w->resolve & RESOLVE_NO_MAGICLINKS ? -ELOOP : -EXDEV;
}

static bool protects_symlinks(void)
{
    char text = '1';
    int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, &text, 1);
        close(fd);
    }
    return text != '0';
}

/* The rule of fs.protected_symlinks, which the kernel has for the last component where it follows a link itself. */
static bool is_planted(const struct stat *link, const struct stat *folder)
{
    bool is_shared = (folder->st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH);
    return is_shared && link->st_uid != geteuid() && link->st_uid != folder->st_uid && protects_symlinks();
}

/* Puts the target of a link before the rest of the path. Returns 0 or -errno. */
static int read_link(struct path_walk *w, int link)
{
    char target[PATH_MAX];
    size_t left = strlen(w->remaining);
    ssize_t n = readlinkat(link, "", target, sizeof(target));
    if (n < 0)
        return -errno;
    if (n == 0)
        return -ENOENT;
    if ((size_t)n == sizeof(target) || (size_t)n + left >= sizeof(w->remaining))
        return -ENAMETOOLONG;
    memmove(w->remaining + n, w->remaining, left + 1);
    memcpy(w->remaining, target, (size_t)n);
    return 0;
}

/* Begins at the root, for an absolute path. Returns 0 or -errno. */
static int enter_root(struct path_walk *w)
{
    if (w->resolve & RESOLVE_BENEATH)
        return -EXDEV;
    int fd = open_name(AT_FDCWD, "/", ENTER_FLAGS);
    w->has_root = true;
    return fd < 0 ? fd : enter_fd(w, fd);
}

/* Follows a link, which is open. Returns 0 or -errno. */
static int follow_link(struct path_walk *w, int link, const struct stat *st, bool is_last)
{
    struct stat folder;
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    if (fstatat(w->at, ".", &folder, 0) < 0)
        return -errno;
    if (is_last && is_planted(st, &folder))
        return -EACCES;
    if (w->resolve & RESOLVE_NO_SYMLINKS)
        return -ELOOP;
    int err = check_link_type(w, link, &folder);
    if (err == 0)
        err = read_link(w, link);
    if (err < 0 || w->remaining[0] != '/')
        return err;
    /* the kernel compares the mount with that of the root, which it knows only if a path before was absolute */
    return w->resolve & RESOLVE_NO_XDEV && !w->has_root ? -EXDEV : enter_root(w);
}

/* ── components ── */

/*
 * Takes the next component off the path. `ret_is_last`: no other one follows; slashes may, which stay. Returns its
 * length; 0: there is none; -ENAMETOOLONG.
 */
static int take_component(struct path_walk *w, char name[NAME_MAX + 1], bool *ret_is_last)
{
    size_t skipped = strspn(w->remaining, "/"), n = strcspn(w->remaining + skipped, "/");
    if (n > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, w->remaining + skipped, n);
    name[n] = '\0';
    memmove(w->remaining, w->remaining + skipped + n, strlen(w->remaining + skipped + n) + 1);
    *ret_is_last = w->remaining[strspn(w->remaining, "/")] == '\0';
    return (int)n;
}

/* Follows a name that is no folder: if it is a link. Returns 0 or -errno. */
static int step_link(struct path_walk *w, const char *name)
{
    struct stat st;
    int fd = open_name(w->at, name, STEP_FLAGS);
    if (fd < 0)
        return fd;
    int err = fstat(fd, &st) < 0 ? -errno : S_ISLNK(st.st_mode) ? follow_link(w, fd, &st, false) : -ENOTDIR;
    close(fd);
    return err;
}

/* Walks a component that is a folder, or a link. Returns 0 or -errno. */
static int step_folder(struct path_walk *w, const char *name)
{
    if (strcmp(name, "..") == 0)
        return leave_folder(w);
    if (strcmp(name, ".") == 0) {
        int fd = open_name(w->at, ".", ENTER_FLAGS);
        return fd < 0 ? fd : enter_fd(w, fd);
    }
    int err = enter_name(w, name);
    return err == -ENOTDIR ? step_link(w, name) : err;
}

/* Opens the last component, in the folder that was reached, with the flags of the caller. */
static int open_last(const struct path_walk *w, const char *name, uint64_t more)
{
    int fd = open_name(w->at, name, (int)(w->flags | more | O_NOFOLLOW));
    if (fd == -ELOOP && !(w->flags & O_NOFOLLOW))
        return -EAGAIN; /* a link has taken its place */
    int err = fd < 0 ? 0 : check_mount(w, fd);
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

/* Opens the last component, or follows it if it is a link. Returns a descriptor, 0 if it was followed, or -errno. */
static int step_last(struct path_walk *w, const char *name, bool *ret_is_followed)
{
    struct stat st;
    bool has_slash = w->remaining[0] == '/'; /* only a folder has one */
    int fd = open_name(w->at, name, STEP_FLAGS);
    if (fd < 0)
        return fd;
    bool is_link = fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
    *ret_is_followed = is_link && (has_slash || !(w->flags & O_NOFOLLOW));
    int err = *ret_is_followed ? follow_link(w, fd, &st, true) : 0;
    close(fd);
    return *ret_is_followed ? err : open_last(w, name, has_slash ? O_DIRECTORY : 0);
}

/* Walks the whole path. Returns a descriptor or -errno. */
static int walk_path(struct path_walk *w)
{
    char name[NAME_MAX + 1] = "";
    bool is_last = false, is_followed = true;
    int r = 0;
    while (r == 0 && is_followed) {
        int n = take_component(w, name, &is_last);
        if (n <= 0) /* the path, or the target of a link, ends with a folder */
            return n < 0 ? n : open_last(w, ".", O_DIRECTORY);
        is_followed = !is_last || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        r = is_followed ? step_folder(w, name) : step_last(w, name, &is_followed);
    }
    return r;
}

int mk__path_walk_open(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct path_walk w;
    size_t len = strlen(path);
    if (resolve & RESOLVE_CACHED)
        return -EAGAIN;
    if (!resolve)
        return open_name(dir, path, (int)flags);
    if (len >= PATH_MAX || !len)
        return len ? -ENAMETOOLONG : -ENOENT;
    w.flags = flags;
    w.resolve = resolve;
    w.start = w.at = dir;
    w.links = 0;
    w.has_root = false;
    w.n_entered = 0;
    memcpy(w.remaining, path, len + 1);
    w.mount = resolve & RESOLVE_NO_XDEV ? get_mount(dir, path[0] == '/' ? "/" : "") : 0;
    int err = path[0] == '/' ? enter_root(&w) : 0;
    int fd = err < 0 ? err : walk_path(&w);
    move_to(&w, w.start);
    return fd;
}
