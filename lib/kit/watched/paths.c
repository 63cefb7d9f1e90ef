// SPDX-License-Identifier: Apache-2.0
/*
 * Walks paths component by component (watched/paths.h), as the kernel does: each folder is watched before its entry is
 * read, so that no change in between is lost.
 */
#include "paths.h"

#include <monkey/base/hash.h>

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    LINKS_MAX = 40, /* as the kernel's limit */
    STEPS_MAX = 16384,
    FOLDER_MASK = IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR,
    /* No IN_MODIFY: a file that is still written would be loaded. Added, since a mask replaces the former one. */
    FILE_MASK = IN_ATTRIB | IN_CLOSE_WRITE | IN_MASK_ADD,
};

static uint32_t hash_name(const char *name, size_t len)
{
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY, name, len);
    return (uint32_t)(hash ^ hash >> 32);
}

/* ── the list ── */

int mk__paths_init(struct mk__paths *p, const struct mk_str *paths, unsigned n)
{
    *p = (struct mk__paths){.items = mk_account_alloc(NULL, n * sizeof(*p->items))};
    if (!p->items)
        return -ENOMEM;
    for (; p->n < n; p->n++) {
        struct mk_str from = paths[p->n];
        bool good = from.len && from.len < PATH_MAX && from.p[0] == '/' && !memchr(from.p, '\0', from.len);
        char *to = good ? mk_account_alloc(NULL, from.len + 1) : NULL;
        if (!to) {
            mk__paths_release(p);
            return good ? -ENOMEM : -EINVAL;
        }
        *(char *)mempcpy(to, from.p, from.len) = '\0';
        p->items[p->n] = mk_str(to, from.len);
    }
    return 0;
}

void mk__paths_release(struct mk__paths *p)
{
    for (unsigned i = 0; i < p->n; i++)
        mk_account_free(NULL, (char *)(uintptr_t)p->items[i].p, p->items[i].len + 1);
    mk_account_free(NULL, p->items, 0);
    mk_account_free(NULL, p->steps, p->steps_size * sizeof(*p->steps));
    *p = (struct mk__paths){0};
}

uint64_t mk__paths_hash(const struct mk__paths *p)
{
    uint64_t hash = MK_HASH_EMPTY;
    for (unsigned i = 0; i < p->n; i++)
        hash = mk_hash_add(hash, p->items[i].p, p->items[i].len + 1);
    return hash;
}

static bool are_same(const struct mk__paths *a, const struct mk__paths *b)
{
    bool same = a->n == b->n;
    for (unsigned i = 0; same && i < a->n; i++)
        same = mk_str_eq(a->items[i], b->items[i]);
    return same;
}

/* ── steps ── */

bool mk__paths_copy_steps(struct mk__paths *p, const struct mk__paths *from)
{
    assert(!p->steps);
    if (from->polls || !from->n_steps || !are_same(p, from))
        return false;
    p->steps = mk_account_alloc(NULL, from->n_steps * sizeof(*p->steps));
    if (!p->steps)
        return false;
    memcpy(p->steps, from->steps, from->n_steps * sizeof(*p->steps));
    p->n_steps = p->steps_size = from->n_steps;
    return true;
}

static bool grow_steps(struct mk__paths *p)
{
    unsigned size = p->steps_size ? p->steps_size * 2 : 16;
    struct mk__paths_step *steps = NULL;
    if (size <= STEPS_MAX)
        steps = mk_account_grow(NULL, p->steps, p->steps_size * sizeof(*steps), size * sizeof(*steps));
    if (!steps)
        return false;
    p->steps = steps;
    p->steps_size = size;
    return true;
}

bool mk__paths_has_step(const struct mk__paths *p, int wd, const char *name)
{
    uint32_t hash = hash_name(name, strlen(name));
    for (unsigned i = 0; i < p->n_steps; i++)
        if (p->steps[i].wd == wd && (!name[0] || p->steps[i].hash == hash))
            return true;
    return false;
}

bool mk__paths_is_watched(const struct mk__paths *p, int wd)
{
    return mk__paths_has_step(p, wd, "");
}

static bool has_exact_step(const struct mk__paths *p, struct mk__paths_step step)
{
    for (unsigned i = 0; i < p->n_steps; i++)
        if (p->steps[i].wd == step.wd && p->steps[i].hash == step.hash)
            return true;
    return false;
}

bool mk__paths_has_file(const struct mk__paths *p, int wd)
{
    return has_exact_step(p, (struct mk__paths_step){wd, hash_name("", 0)});
}

static void add_step(struct mk__paths *p, struct mk__paths_step step)
{
    if (has_exact_step(p, step)) /* several files often have the same folders */
        return;
    if (p->n_steps == p->steps_size && !grow_steps(p))
        p->polls = true;
    else
        p->steps[p->n_steps++] = step;
}

/* Watches a folder for one of its entries. */
static void watch_entry(struct mk__paths *p, int inotify, const char *folder, struct mk_str name)
{
    int wd = inotify < 0 ? -1 : inotify_add_watch(inotify, folder[0] ? folder : "/", FOLDER_MASK);
    if (wd < 0) {
        p->polls = true;
        p->limited = p->limited || (inotify >= 0 && errno == ENOSPC);
        return;
    }
    add_step(p, (struct mk__paths_step){wd, hash_name(name.p, name.len)});
}

/*
 * Watches the file itself, which can be changed by another name: a hard link, or a mount of the file. If that is not
 * permitted, it cannot be loaded either, until its mode changes, which the folder reports.
 */
static void watch_file(struct mk__paths *p, int inotify, const char *path)
{
    int wd = inotify < 0 ? -1 : inotify_add_watch(inotify, path, FILE_MASK);
    if (wd >= 0)
        add_step(p, (struct mk__paths_step){wd, hash_name("", 0)});
    else if (inotify >= 0 && (errno == ENOSPC || errno == ENOMEM)) {
        p->limited = p->limited || errno == ENOSPC;
        p->polls = true;
    }
}

/* ── the way to a file ── */

struct walk {
    char done[PATH_MAX]; /* a folder without links in its path, and without a slash at its end */
    char left[PATH_MAX]; /* what is left to walk, seen from there */
    unsigned links;
};

/* Puts the target of a link before what is left. Returns false if it is too long, or there are too many. */
static bool follow_link(struct walk *walk, const char *target, const char *rest)
{
    char left[PATH_MAX];
    int n = snprintf(left, sizeof(left), "%s/%s", target, rest);
    if (n < 0 || n >= (int)sizeof(left) || ++walk->links > LINKS_MAX)
        return false;
    if (target[0] == '/')
        walk->done[0] = '\0';
    memcpy(walk->left, left, (size_t)n + 1);
    return true;
}

/*
 * Walks one component. Returns false at the end: nothing is left, the entry is missing (its folder reports when it
 * appears), or it cannot be walked (the load will fail, too).
 */
static bool walk_component(struct mk__paths *p, int inotify, struct walk *walk)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *name = walk->left + strspn(walk->left, "/");
    size_t len = strcspn(name, "/");
    const char *rest = name + len;
    bool parent = len == 2 && memcmp(name, "..", 2) == 0;
    if (!len)
        return false;
    if (parent || (len == 1 && name[0] == '.')) {
        if (parent) {
            char *slash = strrchr(walk->done, '/');
            if (slash)
                *slash = '\0';
        }
        memmove(walk->left, rest, strlen(rest) + 1);
        return true;
    }
    watch_entry(p, inotify, walk->done, mk_str(name, len));
    int n = snprintf(path, sizeof(path), "%s/%.*s", walk->done, (int)len, name);
    if (n < 0 || n >= (int)sizeof(path))
        return false;
    ssize_t got = readlink(path, target, sizeof(target) - 1);
    if (got >= 0) {
        target[got] = '\0';
        return follow_link(walk, target, rest);
    }
    if (errno != EINVAL) /* EINVAL: it is no link */
        return false;
    memcpy(walk->done, path, (size_t)n + 1);
    memmove(walk->left, rest, strlen(rest) + 1);
    return true;
}

/* File systems whose files change without an event: on other machines, or in another process. */
static bool is_remote(const char *path)
{
    static const uint32_t remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                      CEPH_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC,       AFS_SUPER_MAGIC};
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return false;
    for (size_t i = 0; i < MK_COUNT_OF(remote); i++)
        if ((uint32_t)fs.f_type == remote[i])
            return true;
    return false;
}

void mk__paths_watch(struct mk__paths *p, int inotify)
{
    struct walk walk;
    p->n_steps = 0;
    p->polls = p->limited = false;
    for (unsigned i = 0; i < p->n; i++) {
        walk.links = 0;
        walk.done[0] = '\0';
        memcpy(walk.left, p->items[i].p, p->items[i].len + 1);
        while (walk_component(p, inotify, &walk))
            ;
        if (!walk.left[strspn(walk.left, "/")])
            watch_file(p, inotify, walk.done);
        p->polls = p->polls || is_remote(p->items[i].p);
    }
}

/* ── the files ── */

uint64_t mk__paths_signature(const struct mk__paths *p, const char **ret_denied)
{
    uint64_t hash = MK_HASH_EMPTY;
    *ret_denied = NULL;
    for (unsigned i = 0; i < p->n; i++) {
        struct stat st;
        int64_t parts[9] = {0};
        if (stat(p->items[i].p, &st) < 0) {
            parts[0] = errno;
            if (errno == EACCES && !*ret_denied)
                *ret_denied = p->items[i].p;
        } else {
            parts[1] = (int64_t)st.st_dev;
            parts[2] = (int64_t)st.st_ino;
            parts[3] = (int64_t)st.st_size;
            parts[4] = (int64_t)st.st_mode;
            parts[5] = st.st_mtim.tv_sec;
            parts[6] = st.st_mtim.tv_nsec;
            parts[7] = st.st_ctim.tv_sec;
            parts[8] = st.st_ctim.tv_nsec;
        }
        hash = mk_hash_add(hash, parts, sizeof(parts));
    }
    return hash;
}

const char *mk__paths_unreadable(const struct mk__paths *p)
{
    for (unsigned i = 0; i < p->n; i++)
        if (faccessat(AT_FDCWD, p->items[i].p, R_OK, AT_EACCESS) < 0 && errno == EACCES)
            return p->items[i].p;
    return NULL;
}
