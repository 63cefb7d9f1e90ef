// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the root of a site, notices that its path names another folder, and swaps the two. dup3(2) replaces
 * the folder of the same descriptor number in one step. `swap_seq` shows a thread that has made several calls
 * meanwhile that some of them may have used the other folder.
 */
#include "static.h"

#include <monkey/base/file.h>
#include <monkey/base/time.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { ROOT_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC, TRIES_MAX = 8 };

/* The folder that the root's path names now. */
struct root_snapshot {
    int fd;
    struct stat st;
    uint64_t mount;
    char *path; /* without links */
    bool in_memory, is_local;
};

/*
 * Returns the number of the mount through which the folder was opened: what is mounted below a folder, and what a link
 * to ".." finds, depends on it. 0: the kernel does not tell (before 5.8), or the build has no cache, which needs it.
 */
static uint64_t get_mount(int fd)
{
    struct statx st = {0};
    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
        return 0;
    return st.stx_mnt_id;
}

/* File systems whose calls need no other machine and no other program, and which report all changes by their names. */
static bool is_local_type(uint32_t type)
{
    static const uint32_t magics[] = {EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                      TMPFS_MAGIC,          RAMFS_MAGIC,     F2FS_SUPER_MAGIC,
                                      0x2fc12fc1 /* zfs */, SQUASHFS_MAGIC,  EROFS_SUPER_MAGIC_V1};
    for (size_t i = 0; i < MK_COUNT_OF(magics); i++)
        if (type == magics[i])
            return true;
    return false;
}

static bool is_same_inode(const struct stat *a, dev_t device, ino_t inode)
{
    return a->st_dev == device && a->st_ino == inode;
}

static void free_path(const char *path)
{
    if (path)
        mk_account_free(NULL, (void *)(uintptr_t)path, strlen(path) + 1);
}

static void free_snapshot(struct root_snapshot *snapshot)
{
    if (snapshot->fd >= 0)
        close(snapshot->fd);
    free_path(snapshot->path);
}

/* Opens the folder and finds its path. Returns 0, -EAGAIN (it was swapped meanwhile) or another -errno. */
static int take_snapshot_once(const char *configured_path, struct root_snapshot *snapshot)
{
    struct stat named;
    struct statfs fs;
    *snapshot = (struct root_snapshot){.fd = open(configured_path, ROOT_FLAGS)};
    if (snapshot->fd < 0 || fstat(snapshot->fd, &snapshot->st) < 0 || fstatfs(snapshot->fd, &fs) < 0)
        return -errno;
    snapshot->mount = get_mount(snapshot->fd);
    snapshot->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    snapshot->is_local = is_local_type((uint32_t)fs.f_type);
    snapshot->path = realpath(configured_path, NULL);
    if (!snapshot->path || stat(snapshot->path, &named) < 0)
        return -errno;
    bool swapped = !is_same_inode(&named, snapshot->st.st_dev, snapshot->st.st_ino); /* between the calls */
    return swapped ? -EAGAIN : 0;
}

static int take_snapshot(const char *configured_path, struct root_snapshot *snapshot)
{
    int err = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && err == -EAGAIN; i++) {
        err = take_snapshot_once(configured_path, snapshot);
        if (err < 0)
            free_snapshot(snapshot);
    }
    return err;
}

/* Moves the snapshot into the site, which takes `path` over. */
static void adopt_snapshot(struct static_site *site, const struct root_snapshot *snapshot)
{
    assert(snapshot->path);
    free_path(site->path.p);
    site->path = mk_str_c(snapshot->path);
    if (site->path.len == 1)
        site->path.len = 0; /* "/": every absolute link stays inside */
    site->device = snapshot->st.st_dev;
    site->inode = snapshot->st.st_ino;
    site->in_memory = snapshot->in_memory;
    site->is_local = snapshot->is_local;
    site->mount = snapshot->mount;
    site->opened_ms = mk_time_monotonic_ms();
}

/* Cached lookups end then, and those on disk threads begin with the root (disk_lookup.c). */
static int confirm_root(void *context)
{
    return mk__static_root_has_changed(context) ? -EAGAIN : 0;
}

static void init_for_cache(struct static_site *site)
{
    mk__static_open_init_root(site);
    site->root.path = site->configured_path.p;
    site->root.confirm = confirm_root;
    site->root.notes = site->root_notes;
}

int mk__static_root_open(struct static_site *site, struct mk_str configured_path)
{
    assert(configured_path.len > 0 && configured_path.p[configured_path.len] == '\0');
    struct root_snapshot snapshot;
    int err = take_snapshot(configured_path.p, &snapshot);
    if (err < 0)
        return err;
    pthread_mutex_init(&site->lock, NULL);
    site->root_fd = snapshot.fd;
    site->configured_path = configured_path;
    init_for_cache(site);
    site->next_check_ms = mk_time_monotonic_ms() + ROOT_CHECK_MS;
    adopt_snapshot(site, &snapshot);
    return 0;
}

void mk__static_root_close(struct static_site *site)
{
    assert(site->root_fd >= 0);
    close(site->root_fd);
    free_path(site->path.p);
    pthread_mutex_destroy(&site->lock);
}

bool mk__static_root_has_changed(const struct static_site *site)
{
    struct stat st;
    int fd = mk_file_openat2(AT_FDCWD, site->configured_path.p, ROOT_FLAGS, RESOLVE_CACHED);
    if (fd < 0)
        return fd == -EAGAIN;
    bool changed =
        fstat(fd, &st) == 0 && (!is_same_inode(&st, site->device, site->inode) || get_mount(fd) != site->mount);
    close(fd);
    return changed;
}

MK_HOT bool mk__static_root_begin_check(struct static_site *site, uint64_t now)
{
    uint64_t due = site->next_check_ms;
    if (now < due || !atomic_compare_exchange_strong(&site->next_check_ms, &due, ROOT_CHECKING))
        return false;
    bool changed = mk__static_root_has_changed(site);
    if (!changed)
        mk__static_root_end_check(site, now);
    else
        site->may_be_replaced = true;
    return changed;
}

void mk__static_root_end_check(struct static_site *site, uint64_t now)
{
    assert(site->next_check_ms == ROOT_CHECKING);
    site->may_be_replaced = false;
    site->next_check_ms = now + ROOT_CHECK_MS;
}

/* Swaps the root. Returns false if the descriptor cannot be replaced. Under the lock, as the next two. */
static bool swap_root(struct static_site *site, struct root_snapshot *snapshot)
{
    assert(site->swap_seq % 2 == 0);
    site->swap_seq++;
    bool swapped = dup3(snapshot->fd, site->root_fd, O_CLOEXEC) >= 0;
    if (swapped)
        adopt_snapshot(site, snapshot);
    site->swap_seq++;
    return swapped;
}

/* Does so with a snapshot taken at `seq`. Returns -EAGAIN if another thread has swapped the root since then. */
static int apply_snapshot(struct static_site *site, struct root_snapshot *snapshot, unsigned seq)
{
    bool is_other = !is_same_inode(&snapshot->st, site->device, site->inode) || snapshot->mount != site->mount;
    if (site->swap_seq != seq)
        return -EAGAIN;
    if (is_other && swap_root(site, snapshot)) {
        mk_host_log_all(site->owner, MK_LOG_INFO, "static: %s was replaced and is now the folder %s",
                        site->configured_path.p, site->path.p);
        snapshot->path = NULL; /* the site owns it */
    }
    return 0;
}

void mk__static_root_update(struct static_site *site)
{
    struct root_snapshot snapshot;
    int err = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && err == -EAGAIN; i++) {
        unsigned seq = site->swap_seq;
        err = take_snapshot(site->configured_path.p, &snapshot);
        if (err < 0)
            return;
        pthread_mutex_lock(&site->lock);
        err = apply_snapshot(site, &snapshot, seq);
        pthread_mutex_unlock(&site->lock);
        free_snapshot(&snapshot);
    }
}

void mk__static_root_check(struct static_site *site, uint64_t now)
{
    assert(site->next_check_ms == ROOT_CHECKING); /* no other thread checks the root */
    mk__static_root_update(site);
    mk__static_root_end_check(site, now);
}

void mk__static_root_refresh(struct static_site *site)
{
    uint64_t now = mk_time_monotonic_ms();
    if (site->root_fd >= 0 && mk__static_root_begin_check(site, now))
        mk__static_root_check(site, now);
}
