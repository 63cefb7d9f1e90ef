// SPDX-License-Identifier: Apache-2.0
/*
 * Opening the document root, noticing that its path names another directory now, and swapping the two (root.h).
 * Everybody goes on with the same descriptor number: dup3(2) exchanges what it means in one step, and `swaps`
 * tells who made several calls meanwhile that they saw both.
 */
#include "root.h"

#include "beneath.h"

#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { ROOT_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC, TRIES_MAX = 8 };

/* What the root's path names at one moment. */
struct view {
    int fd;
    struct stat st;
    char *path; /* without links */
    bool in_memory;
};

static bool is_same(const struct stat *a, dev_t device, ino_t inode)
{
    return a->st_dev == device && a->st_ino == inode;
}

static void drop_path(const char *path)
{
    if (path)
        mk_account_free(NULL, (void *)(uintptr_t)path, strlen(path) + 1);
}

static void drop_view(struct view *v)
{
    if (v->fd >= 0)
        close(v->fd);
    drop_path(v->path);
}

static int view_once(const char *written, struct view *v)
{
    struct stat named;
    struct statfs fs;
    *v = (struct view){.fd = open(written, ROOT_FLAGS)};
    if (v->fd < 0 || fstat(v->fd, &v->st) < 0 || fstatfs(v->fd, &fs) < 0)
        return -errno;
    v->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    v->path = realpath(written, NULL);
    if (!v->path || stat(v->path, &named) < 0)
        return -errno;
    return is_same(&named, v->st.st_dev, v->st.st_ino) ? 0 : -EAGAIN; /* swapped between the calls */
}

static int view_root(const char *written, struct view *v)
{
    int err = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && err == -EAGAIN; i++) {
        err = view_once(written, v);
        if (err < 0)
            drop_view(v);
    }
    return err;
}

/* The site takes the path of the view. */
static void adopt(struct site *site, const struct view *v)
{
    drop_path(site->path.p);
    site->path = mk_str_c(v->path);
    if (site->path.len == 1)
        site->path.len = 0; /* the root of everything: each absolute link is inside */
    site->device = v->st.st_dev;
    site->inode = v->st.st_ino;
    site->in_memory = v->in_memory;
}

/* Does the kernel (or what confines this process) know openat2(2)? A root that may be passed but not listed is fine. */
static int probe(int root_fd)
{
    int fd = site_open_beneath(root_fd, ".", RESOLVE_BENEATH);
    if (fd >= 0)
        close(fd);
    return fd == -ENOSYS || fd == -EPERM ? fd : 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int root_open(struct site *site, struct mk_str written)
{
    struct view v;
    int err = view_root(written.p, &v);
    if (err < 0)
        return err;
    err = probe(v.fd);
    if (err < 0) {
        drop_view(&v);
        return err;
    }
    pthread_mutex_init(&site->lock, NULL);
    site->root_fd = v.fd;
    site->written = written;
    site->due_ms = now_ms() + ROOT_CHECK_MS;
    adopt(site, &v);
    return 0;
}

void root_close(struct site *site)
{
    close(site->root_fd);
    drop_path(site->path.p);
    pthread_mutex_destroy(&site->lock);
}

/* As far as the kernel can tell without waiting. A path that names nothing just now keeps the root that there is. */
static bool has_changed(const struct site *site)
{
    struct open_how how = {.flags = ROOT_FLAGS, .resolve = RESOLVE_CACHED};
    struct stat st;
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, site->written.p, &how, sizeof(how));
    if (fd < 0)
        return errno == EAGAIN;
    bool changed = fstat(fd, &st) == 0 && !is_same(&st, site->device, site->inode);
    close(fd);
    return changed;
}

bool root_take(struct site *site, uint64_t now)
{
    uint64_t due = site->due_ms;
    if (now < due || !atomic_compare_exchange_strong(&site->due_ms, &due, ROOT_TAKEN))
        return false;
    if (has_changed(site))
        return true;
    root_release(site, now);
    return false;
}

void root_release(struct site *site, uint64_t now)
{
    site->due_ms = now + ROOT_CHECK_MS;
}

static void swap(struct site *site, struct view *v)
{
    pthread_mutex_lock(&site->lock);
    site->swaps++;
    bool swapped = dup3(v->fd, site->root_fd, O_CLOEXEC) >= 0;
    if (swapped)
        adopt(site, v);
    site->swaps++;
    pthread_mutex_unlock(&site->lock);
    if (!swapped)
        return;
    mk_log_info("static: the folder %s is %s now", site->written.p, v->path);
    v->path = NULL; /* the site's */
}

void root_refresh(struct site *site, uint64_t now)
{
    struct view v;
    if (view_root(site->written.p, &v) == 0) {
        if (!is_same(&v.st, site->device, site->inode))
            swap(site, &v);
        drop_view(&v);
    }
    root_release(site, now);
}
