// SPDX-License-Identifier: Apache-2.0
/*
 * From a path to an open file (site.h). The kernel keeps the path below the root (openat2); no string is
 * ever compared with the root to decide what may be opened.
 */
#include "site.h"

#include "tryfiles.h"
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES_MAX = 64 };

/* A FIFO or a device must not keep us waiting, and no terminal may become ours. */
enum { OPEN_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static const uint64_t resolve_modes[] = {
    [SYMLINKS_OFF] = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    [SYMLINKS_INSIDE] = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    [SYMLINKS_ON] = RESOLVE_NO_MAGICLINKS,
};

int site_open_beneath(int root_fd, const char *path, uint64_t resolve)
{
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = resolve};
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

int site_open(struct site *site, const char *name, bool cached)
{
    uint64_t resolve = resolve_modes[site->settings->symlinks];
    if (cached) {
        /* a file system in memory has no names on a disk, and does not remember those that it lacks */
        bool in_memory = site->in_memory;
        int fd = site_open_beneath(site->root_fd, name, resolve | (in_memory ? RESOLVE_NO_XDEV : RESOLVE_CACHED));
        bool perhaps = in_memory || site->settings->symlinks == SYMLINKS_INSIDE;
        return fd == -EXDEV && perhaps ? -EAGAIN : fd;
    }
    int fd = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && fd == -EAGAIN; i++) /* a rename meanwhile: openat2(2) */
        fd = site_open_beneath(site->root_fd, name, resolve);
    return fd == -EXDEV && site->settings->symlinks == SYMLINKS_INSIDE ? site_open_inside(site, name) : fd;
}

struct found site_look_at(int fd, struct mk_str name)
{
    struct found f = {.kind = FOUND_NOTHING, .fd = fd, .name = name};
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
        f.err = ENOENT; /* devices and the like are nobody's business */
    if (f.kind == FOUND_FILE) {
        f.bytes = (uint64_t)st.st_size;
        f.mtime = st.st_mtim;
    } else {
        close(fd);
        f.fd = -1;
    }
    return f;
}

bool site_is_missing(int err)
{
    static const int missing[] = {ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO};
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        if (missing[i] == err)
            return true;
    return false;
}

bool site_is_hidden(const struct site *site, struct mk_str path)
{
    struct mk_str known = MK_STR("/.well-known");
    if (mk_str_starts(path, known) && (path.len == known.len || path.p[known.len] == '/'))
        path = mk_str(path.p + known.len, path.len - known.len);
    return !site->settings->dotfiles && path.len && memmem(path.p, path.len, "/.", 2);
}

static struct found find_index(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    struct found f = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    char name[SITE_NAME_BYTES];
    const struct mk_conf_list *index = &site->settings->index;
    for (uint32_t i = 0; i < index->n; i++) {
        int n = snprintf(name, sizeof(name), "%s%.*s", path.p + 1, MK_STR_ARG(index->items[i]));
        if (n >= (int)sizeof(name))
            return f;
        f = site_look_at(site_open(site, name, cached), index->items[i]);
        variants_choose(site, name, accept, cached, &f);
        if (f.kind == FOUND_FILE || (f.kind == FOUND_NOTHING && f.err != ENOENT))
            return f;
    }
    return (struct found){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
}

struct found site_find_name(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    if (path.p[path.len - 1] == '/')
        return find_index(site, path, accept, cached);
    struct found f = site_look_at(site_open(site, path.p + 1, cached), path);
    variants_choose(site, path.p + 1, accept, cached, &f);
    return f;
}

static struct found find_once(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    return site->host->n_tries ? tryfiles_find(site, path, accept, cached) : site_find_name(site, path, accept, cached);
}

/* While a swap is under way its thread has the lock. */
static void await_swap(struct site *site)
{
    pthread_mutex_lock(&site->lock);
    pthread_mutex_unlock(&site->lock);
}

/* Names that were looked up one after the other are those of one root; who saw two begins again. */
struct found site_find(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    for (int i = 0;; i++) {
        unsigned swaps = site->swaps;
        bool in_memory = site->in_memory && cached; /* no other file system can be entered on the way then */
        struct found f = find_once(site, path, accept, cached);
        f.in_memory = in_memory;
        if ((swaps == site->swaps && swaps % 2 == 0) || i == TRIES_MAX)
            return f;
        if (f.fd >= 0)
            close(f.fd);
        if (cached)
            return (struct found){.kind = FOUND_NOTHING, .fd = -1, .err = EAGAIN};
        await_swap(site);
    }
}
