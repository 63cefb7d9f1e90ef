// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps folders open and watches them. fstatat(2) may wait for a disk, which openat2(2) with RESOLVE_CACHED
 * does not: so it is used only on local file systems, and for names that were looked at a moment ago.
 */
#include "worker.h"

#include <monkey/base/arena.h>
#include <monkey/base/hash.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    PARENTS = 16,           /* a worker keeps at most so many folders open */
    FOLDER_BYTES_MAX = 200, /* of its path */
    RECENT_MS = 10 * 1000,  /* names that were looked at since then are in memory */
    INTERVAL_SHARE = 4,     /* a folder is used for this fraction of the interval */
    MOUNT_MS = 1000,        /* a folder's mount, and whether it can be watched, is looked at once in this time */
    FOLDER_REFUSED = -1,    /* it could not be watched */
};

struct parent {
    int fd; /* O_PATH; -1: the slot is free */
    bool used;
    bool is_elsewhere; /* it is on another mount than the root: open, it would keep that from being unmounted */
    uint16_t name_len;
    uint32_t version;              /* of the root */
    void *root;                    /* the context of its functions */
    uint64_t device;               /* of the folder's file system */
    uint64_t opened_ms, looked_ms; /* the second: at its mount */
    uint64_t turn;                 /* in which it was opened */
    int folder;                    /* its number in notify.h; 0: it is not watched, or FOLDER_REFUSED */
    uint32_t all;                  /* notify_all() before it was opened */
    char name[FOLDER_BYTES_MAX + 1];
};

struct parents {
    struct parent *slots[PARENTS]; /* NULL: none yet */
};

/* ── names ── */

bool parents_split(struct mk_str path, struct split_name *ret)
{
    const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
    size_t folder = slash ? (size_t)(slash - path.p) : 0, skip = slash ? folder + 1 : 0;
    *ret = (struct split_name){mk_str(path.p, folder), mk_str_after(path, skip)};
    return ret->last.len && !mk_str_is_dots(ret->last);
}

struct name_state parents_describe(const struct stat *st)
{
    return (struct name_state){.is_folder = S_ISDIR(st->st_mode),
                               .is_file = S_ISREG(st->st_mode),
                               .id = entry_identify(st)};
}

/* ── file systems ── */

/*
 * Finds out on which file system and mount a folder is, without asking another machine or program. Whether calls for
 * the files of a file system do that is known of the root's only (mk_file_name.is_local). Returns 0 or -errno.
 */
static int describe_mount(int fd, uint64_t *ret_device, uint64_t *ret_mount)
{
    struct statx st = {0};
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &st) < 0)
        return -errno;
    *ret_device = makedev(st.stx_dev_major, st.stx_dev_minor);
    *ret_mount = st.stx_mnt_id;
    return 0;
}

static bool is_on_device(int fd, uint64_t device)
{
    uint64_t found, mount;
    return describe_mount(fd, &found, &mount) == 0 && found == device;
}

/* ── watching ── */

/* The walk from the root to a folder. */
struct walk {
    struct cache_lookup *l;
    struct mk_str folder; /* its path below the root */
    int fd;               /* of the last folder that was reached */
    int watched;          /* its number (notify.h) */
    bool is_missing;      /* the next component does not exist in it */
    uint32_t place;       /* of the next component, and its number before that was looked for */
    uint64_t number;
};

/* Opens a folder on the way and watches it. Returns 0 or -errno. */
static int watch_folder(struct walk *w, const char *path)
{
    const struct mk_file_name *name = w->l->name;
    int fd = name->root->open(name->context, path, MK_FILE_OPEN_CACHED | MK_FILE_OPEN_PATH | MK_FILE_OPEN_NO_LINKS);
    if (fd < 0)
        return fd;
    int watched =
        is_on_device(fd, name->device) ? notify_add(&w->l->cache->notify, fd, w->watched, w->l->now_ms) : -EXDEV;
    if (watched < 0) {
        close(fd);
        return watched;
    }
    if (w->fd >= 0)
        close(w->fd);
    w->fd = fd;
    w->watched = watched;
    return 0;
}

/*
 * Returns whether what is below the folder depends on the folder above alone: there is none, or it may not be searched
 * until its mode changes. A folder that may be searched, but not be read, cannot be watched.
 */
static bool is_closed(const struct walk *w, char *path, size_t len, int err)
{
    const struct mk_file_name *name = w->l->name;
    if (err != -EACCES)
        return err == -ENOENT || err == -ENOTDIR;
    memcpy(path + len, "/.", sizeof("/."));
    int fd = name->root->open(name->context, path, MK_FILE_OPEN_CACHED | MK_FILE_OPEN_PATH | MK_FILE_OPEN_NO_LINKS);
    if (fd >= 0)
        close(fd);
    return fd == -EACCES;
}

/* The name is looked for in the last folder that was reached. */
static void expect_name(struct walk *w, struct mk_str name)
{
    w->place = notify_place(w->watched, name);
    w->number = notify_number(&w->l->cache->notify, w->place);
}

/* Watches each folder before the next one is opened. Returns 0 or -errno; `fd` is open after both. */
static int walk_folders(struct walk *w)
{
    MK_UNINITIALIZED char path[FOLDER_BYTES_MAX + sizeof("/.")];
    int err = watch_folder(w, ".");
    for (size_t at = 0; err == 0 && at < w->folder.len;) {
        const char *slash = memchr(w->folder.p + at, '/', w->folder.len - at);
        size_t end = slash ? (size_t)(slash - w->folder.p) : w->folder.len;
        memcpy(path, w->folder.p, end);
        path[end] = '\0';
        expect_name(w, mk_str(w->folder.p + at, end - at));
        err = watch_folder(w, path);
        if (err < 0 && is_closed(w, path, end, err)) {
            w->is_missing = true;
            return 0;
        }
        at = end + 1;
    }
    return err;
}

/* ── slots ── */

/* Returns NULL without memory. */
static struct parent *slot_of(struct cache_worker *w, const struct cache_lookup *l, struct mk_str folder)
{
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY ^ (uintptr_t)l->name->context >> 6, folder.p, folder.len);
    struct parent **p = &w->parents->slots[(hash ^ hash >> 32) % PARENTS];
    if (*p)
        return *p;
    *p = mk_account_alloc(mk_worker_account(w->worker), sizeof(**p));
    if (*p)
        **p = (struct parent){.fd = -1};
    return *p;
}

static bool prepare_slots(struct cache_worker *w)
{
    if (!w->parents)
        w->parents = mk_account_zalloc(mk_worker_account(w->worker), sizeof(*w->parents));
    return w->parents;
}

static bool is_slot_of(const struct parent *p, const struct cache_lookup *l, const struct split_name *name,
                       uint32_t all)
{
    return (p->fd >= 0 || p->is_elsewhere) && p->root == l->name->context && p->version == l->name->version &&
           p->all == all && p->name_len == name->folder.len && memcmp(p->name, name->folder.p, p->name_len) == 0;
}

/* Returns whether the slot shows what the path of its folder is for this request, or recently enough for the interval.
 */
static bool is_fresh(const struct parent *p, const struct cache_lookup *l)
{
    if (l->policy->mode == FILES_EACH_CYCLE)
        return p->turn == l->turn;
    return p->opened_ms + l->policy->interval_ms / INTERVAL_SHARE > l->now_ms &&
           p->opened_ms > l->name->root->opened_ms(l->name->context);
}

/* Watches the folders on the way to that of the slot, which is opened by that. Returns 0 or -errno. */
static int watch_slot(struct parent *p, struct cache_lookup *l, const struct split_name *name)
{
    struct walk walk = {.l = l, .folder = name->folder, .fd = -1};
    int err = walk_folders(&walk);
    if (err == 0 && walk.is_missing)
        err = -ENOENT;
    if (err < 0 && walk.fd >= 0)
        close(walk.fd);
    p->fd = err < 0 ? -1 : walk.fd;
    p->folder = err < 0 ? FOLDER_REFUSED : walk.watched;
    return err;
}

static void close_slot(struct parent *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static int open_folder(struct parent *p, const struct cache_lookup *l)
{
    p->fd = l->name->root->open(l->name->context, p->name_len ? p->name : ".", MK_FILE_OPEN_CACHED | MK_FILE_OPEN_PATH);
    return p->fd < 0 ? p->fd : 0;
}

/* Closes a folder that is not on the root's mount. Returns 0 or -errno. */
static int check_mount(struct parent *p, const struct cache_lookup *l)
{
    uint64_t found, mount = l->name->mount;
    int err = describe_mount(p->fd, &p->device, &found);
    if (err < 0)
        return err;
    p->looked_ms = l->now_ms;
    p->is_elsewhere = p->device != l->name->device || (mount && mount != found);
    if (p->is_elsewhere)
        close_slot(p);
    return 0;
}

/*
 * Opens the folder of the name. `folder`: its number, if it is watched; 0 otherwise: with `Files Notify` it is to be
 * watched. Returns 0 or -errno.
 */
static int open_slot(struct parent *p, struct cache_lookup *l, const struct split_name *name, uint32_t all, int folder)
{
    close_slot(p);
    *(char *)mempcpy(p->name, name->folder.p, name->folder.len) = '\0';
    p->name_len = (uint16_t)name->folder.len;
    p->root = l->name->context;
    p->version = l->name->version;
    p->opened_ms = l->now_ms;
    p->turn = l->turn;
    p->all = all;
    p->folder = folder;
    p->is_elsewhere = false;
    if (folder || l->policy->mode != FILES_NOTIFY || watch_slot(p, l, name) < 0) {
        int err = open_folder(p, l);
        if (err < 0)
            return err;
    }
    return check_mount(p, l);
}

/*
 * Opens the folder of the slot again, since it was opened too long ago. One that is elsewhere is looked at again when
 * its mount is. Returns 0 or -errno.
 */
static int reopen_slot(struct parent *p, struct cache_lookup *l)
{
    close_slot(p);
    p->opened_ms = l->now_ms;
    p->turn = l->turn;
    int err = open_folder(p, l);
    return err < 0 || p->looked_ms + MOUNT_MS > l->now_ms ? err : check_mount(p, l);
}

/* Returns the number of the folder that the entry was in, if that is still watched; 0 otherwise. */
static int folder_of_entry(const struct entry *e, uint32_t all)
{
    uint32_t place = atomic_load_explicit(&e->place, memory_order_acquire);
    bool holds = notify_is_place(place) && atomic_load_explicit(&e->number, memory_order_relaxed) >> 32 == all;
    return holds ? notify_folder_of(place) : 0;
}

/* Returns whether the slot's folder is to be watched, which is tried again after a second. */
static bool is_to_be_watched(const struct parent *p, const struct cache_lookup *l)
{
    return l->policy->mode == FILES_NOTIFY &&
           (!p->folder || (p->folder == FOLDER_REFUSED && p->looked_ms + MOUNT_MS <= l->now_ms));
}

/* Returns the slot of the name's folder, which is open; NULL: it cannot be opened. */
static struct parent *find_slot(struct cache_lookup *l, const struct entry *e, const struct split_name *name,
                                uint32_t all)
{
    if (!prepare_slots(l->worker))
        return NULL;
    struct parent *p = slot_of(l->worker, l, name->folder);
    if (!p)
        return NULL;
    bool is_same = is_slot_of(p, l, name, all);
    int err = 0;
    if (!is_same || !p->device || is_to_be_watched(p, l))
        err = open_slot(p, l, name, all, folder_of_entry(e, all));
    else if (!is_fresh(p, l) && !(p->is_elsewhere && p->looked_ms + MOUNT_MS > l->now_ms))
        err = reopen_slot(p, l);
    p->used = true;
    return err < 0 || p->is_elsewhere ? NULL : p;
}

/* ── states of names ── */

/* Sets where changes of the name are counted, and their number. */
static void set_place(const struct cache_lookup *l, uint32_t place, uint32_t all, struct name_state *ret)
{
    notify_touch(&l->cache->notify, place);
    ret->place = place;
    ret->number = (uint64_t)all << 32 | (uint32_t)notify_number(&l->cache->notify, place);
}

/*
 * A missing name may be in a folder that is missing, too: then it is the first such component that is watched, and
 * another one once something has happened to it.
 */
static void find_missing_place(struct cache_lookup *l, const struct entry *e, const struct split_name *name,
                               uint32_t all, struct name_state *ret)
{
    struct walk walk = {.l = l, .folder = name->folder, .fd = -1};
    uint64_t number = atomic_load_explicit(&e->number, memory_order_acquire); /* before the place */
    uint32_t place = atomic_load_explicit(&e->place, memory_order_acquire);
    if (notify_is_place(place) && number >> 32 == all && notify_number(&l->cache->notify, place) == number) {
        notify_touch(&l->cache->notify, place);
        ret->place = place;
        ret->number = number; /* not a later one: then the component may be there */
        return;
    }
    int err = walk_folders(&walk);
    if (err == 0 && !walk.is_missing)
        expect_name(&walk, name->last);
    if (walk.fd >= 0)
        close(walk.fd);
    ret->place = err < 0 ? NOTIFY_NONE : walk.place;
    ret->number = (uint64_t)all << 32 | (uint32_t)walk.number;
}

/* Does so for what exists. `p`: the slot of its folder, or NULL. */
static void find_place(struct cache_lookup *l, const struct entry *e, const struct parent *p,
                       const struct split_name *name, uint32_t all, struct name_state *ret)
{
    if (folder_of_entry(e, all))
        set_place(l, atomic_load_explicit(&e->place, memory_order_acquire), all, ret);
    else if (p && p->folder > 0)
        set_place(l, notify_place(p->folder, name->last), all, ret);
}

/* Returns 0 or -errno; -EAGAIN: the name is to be opened. */
static int stat_below(struct parent *p, const struct split_name *name, struct name_state *ret)
{
    struct stat st;
    if (fstatat(p->fd, name->last.p, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return errno == ENOENT ? -ENOENT : -EAGAIN;
    if (S_ISLNK(st.st_mode))
        return -EAGAIN;
    if (st.st_dev != p->device) /* something is mounted there, or a folder above it was */
        return p->device = 0, -EAGAIN;
    struct name_state now = parents_describe(&st);
    now.since_ms = p->opened_ms;
    now.place = ret->place;
    now.number = ret->number;
    *ret = now;
    return 0;
}

bool parents_stat(struct cache_lookup *l, const struct mk_item *item, struct name_state *ret)
{
    struct split_name name;
    const struct entry *e = entry_of(item);
    uint32_t all = notify_all(&l->cache->notify); /* before a folder is opened */
    bool notifies = l->policy->mode == FILES_NOTIFY, is_missing = item->kind == ENTRY_MISSING;
    bool is_recent = !is_missing && e->checked_ms + RECENT_MS >= l->now_ms;
    *ret = (struct name_state){.since_ms = l->now_ms,
                               .place = notifies ? NOTIFY_NONE : NOTIFY_UNKNOWN,
                               .number = (uint64_t)all << 32};
    if (!l->name->is_local || !parents_split(l->name->name, &name) || name.folder.len > FOLDER_BYTES_MAX ||
        (!notifies && !is_recent))
        return false;
    bool needs_folder = is_recent || (!is_missing && !folder_of_entry(e, all));
    struct parent *p = needs_folder ? find_slot(l, e, &name, all) : NULL;
    if (notifies && is_missing)
        find_missing_place(l, e, &name, all, ret);
    else if (notifies)
        find_place(l, e, p, &name, all, ret);
    if (!p || !is_recent)
        return false;
    int err = stat_below(p, &name, ret);
    ret->err = err == -ENOENT ? ENOENT : 0;
    if (err == -EAGAIN && notifies)
        ret->place = NOTIFY_NONE;
    return err != -EAGAIN;
}

/* ── life ── */

void parents_forget(struct cache_worker *w)
{
    for (unsigned i = 0; w->parents && i < PARENTS; i++)
        if (w->parents->slots[i])
            w->parents->slots[i]->turn = 0;
}

static void free_slot(struct cache_worker *w, struct parent **p)
{
    close_slot(*p);
    mk_account_free(mk_worker_account(w->worker), *p, sizeof(**p));
    *p = NULL;
}

bool parents_sweep(struct cache_worker *w)
{
    bool any = false;
    for (unsigned i = 0; w->parents && i < PARENTS; i++) {
        struct parent **p = &w->parents->slots[i];
        if (*p && !(*p)->used)
            free_slot(w, p);
        if (*p)
            (*p)->used = false;
        any |= *p != NULL;
    }
    return any;
}

void parents_release(struct cache_worker *w)
{
    for (unsigned i = 0; w->parents && i < PARENTS; i++)
        if (w->parents->slots[i])
            free_slot(w, &w->parents->slots[i]);
    mk_account_free(mk_worker_account(w->worker), w->parents, sizeof(*w->parents));
}
