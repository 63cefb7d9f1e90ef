// SPDX-License-Identifier: Apache-2.0
/*
 * From a path to an open file (site.h). The kernel keeps the path below the root (openat2); no string is
 * ever compared with the root to decide what may be opened.
 */
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NAME_BYTES = 4096, TRIES_MAX = 64 };

/* A FIFO or a device must not keep us waiting, and no terminal may become ours. */
enum { OPEN_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static const uint64_t resolve_modes[] = {
    [SYMLINKS_OFF] = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    [SYMLINKS_INSIDE] = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    [SYMLINKS_ON] = RESOLVE_NO_MAGICLINKS,
};

static int open_beneath(int root_fd, const char *path, uint64_t resolve)
{
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = resolve};
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

int site_probe(struct site *site)
{
    struct statfs fs;
    if (fstatfs(site->root_fd, &fs) == 0)
        site->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    int fd = open_beneath(site->root_fd, ".", RESOLVE_BENEATH);
    if (fd == -ENOSYS || fd == -EPERM) {
        errno = -fd;
        return -1;
    }
    if (fd >= 0)
        close(fd);
    return 0; /* a root that may be passed but not listed is fine */
}

static int open_name(const struct site *site, const char *name, bool cached)
{
    uint64_t resolve = resolve_modes[site->settings->symlinks];
    if (cached) {
        /* a file system in memory has no names on a disk, and does not remember those that it lacks */
        int fd = open_beneath(site->root_fd, name, resolve | (site->in_memory ? RESOLVE_NO_XDEV : RESOLVE_CACHED));
        bool perhaps = site->in_memory || site->settings->symlinks == SYMLINKS_INSIDE;
        return fd == -EXDEV && perhaps ? -EAGAIN : fd;
    }
    int fd = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && fd == -EAGAIN; i++) /* a rename meanwhile: openat2(2) */
        fd = open_beneath(site->root_fd, name, resolve);
    return fd == -EXDEV && site->settings->symlinks == SYMLINKS_INSIDE ? site_open_inside(site, name) : fd;
}

static struct found look_at(int fd, struct mk_str name)
{
    struct found f = {.kind = FOUND_NOTHING, .fd = fd, .name = name};
    if (fd < 0) {
        f.err = -fd;
        return f;
    }
    if (fstat(fd, &f.st) < 0)
        f.err = errno;
    else if (S_ISREG(f.st.st_mode))
        f.kind = FOUND_FILE;
    else if (S_ISDIR(f.st.st_mode))
        f.kind = FOUND_DIRECTORY;
    else
        f.err = ENOENT; /* devices and the like are nobody's business */
    if (f.kind != FOUND_FILE) {
        close(fd);
        f.fd = -1;
    }
    return f;
}

static struct found find_index(const struct site *site, struct mk_str path, bool cached)
{
    struct found f = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    char name[NAME_BYTES];
    const struct mk_conf_list *index = &site->settings->index;
    for (uint32_t i = 0; i < index->n; i++) {
        int n = snprintf(name, sizeof(name), "%s%.*s", path.p + 1, MK_STR_ARG(index->items[i]));
        if (n >= (int)sizeof(name))
            return f;
        f = look_at(open_name(site, name, cached), index->items[i]);
        if (f.kind == FOUND_FILE || (f.kind == FOUND_NOTHING && f.err != ENOENT))
            return f;
    }
    return (struct found){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
}

struct found site_find(const struct site *site, struct mk_str path, bool cached)
{
    struct found f = path.p[path.len - 1] == '/' ? find_index(site, path, cached)
                                                 : look_at(open_name(site, path.p + 1, cached), path);
    f.in_memory = site->in_memory && cached; /* no other file system was entered on the way */
    return f;
}

/* ── links by hand ── */

/* A path that is being resolved: what is done holds no links any more. */
struct walk {
    char done[NAME_BYTES], rest[NAME_BYTES];
    unsigned links;
};

enum { LINKS_MAX = 40 };

static int put_before_rest(struct walk *w, const char *target)
{
    char joined[NAME_BYTES];
    int n = snprintf(joined, sizeof(joined), "%s/%s", target, w->rest);
    if (n >= (int)sizeof(joined))
        return -ENAMETOOLONG;
    memcpy(w->rest, joined, (size_t)n + 1);
    return 0;
}

/* What an absolute link means below the root; NULL when it leads out. */
static const char *strip_root(const struct site *site, const char *target)
{
    const struct mk_str roots[] = {site->path, site->written};
    for (size_t i = 0; i < 2; i++) {
        size_t n = roots[i].len;
        if (roots[i].p && strncmp(target, roots[i].p, n) == 0 && (target[n] == '/' || target[n] == '\0'))
            return target + n;
    }
    return NULL;
}

static int follow(const struct site *site, struct walk *w, char *target)
{
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    const char *inside = target;
    if (target[0] == '/') {
        inside = strip_root(site, target);
        w->done[0] = '\0';
    }
    return inside ? put_before_rest(w, inside) : -ENOENT;
}

static int go_up(struct walk *w)
{
    if (w->done[0] == '\0')
        return -ENOENT; /* above the root */
    char *slash = strrchr(w->done, '/');
    *(slash ? slash : w->done) = '\0';
    return 0;
}

/* Takes one component further: follows it if it is a link, appends it otherwise. */
static int go_down(const struct site *site, struct walk *w, const char *component)
{
    char next[NAME_BYTES], target[NAME_BYTES];
    int n = snprintf(next, sizeof(next), "%s%s%s", w->done, w->done[0] ? "/" : "", component);
    if (n >= (int)sizeof(next))
        return -ENAMETOOLONG;
    ssize_t len = readlinkat(site->root_fd, next, target, sizeof(target) - 1);
    if (len >= 0) {
        target[len] = '\0';
        return follow(site, w, target);
    }
    if (errno != EINVAL)
        return -errno;
    memcpy(w->done, next, (size_t)n + 1);
    return 0;
}

static int next_component(struct walk *w, char *component)
{
    size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
    if (n >= NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(component, w->rest + skip, n);
    component[n] = '\0';
    memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
    return n > 0;
}

int site_open_inside(const struct site *site, const char *path)
{
    struct walk w = {.links = 0};
    char component[NAME_BYTES];
    int r = snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest) ? -ENAMETOOLONG : 1;
    while (r >= 0 && (r = next_component(&w, component)) > 0) {
        if (strcmp(component, ".") == 0)
            continue;
        r = strcmp(component, "..") == 0 ? go_up(&w) : go_down(site, &w, component);
    }
    /* should somebody have put a link there meanwhile, the kernel refuses */
    return r < 0 ? r : open_beneath(site->root_fd, w.done[0] ? w.done : ".", RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}
