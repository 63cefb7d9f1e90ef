// SPDX-License-Identifier: Apache-2.0
/*
 * Watches folders and counts changes. The kernel puts an event into the queue before the call that changes
 * something returns. So a request that a client sends after a change finds the event there; or another thread has taken
 * it and is about to count it: then `reading` is set, which was written before that thread read the queue, and the lock
 * waits for it. Numbers of folders are used again, but their counters continue: an entry that was made for the former
 * folder has another number.
 */
#include "notify.h"

#include <monkey/base/arena.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    NAMES_MASK =
        IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD,
    MASK = NAMES_MASK | IN_ATTRIB | IN_MODIFY | IN_EXCL_UNLINK,
    /* Events after which other names may lead to other files: of the folder itself, and of folders in it. */
    SELF_MASK = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED,
    SUBFOLDER_MASK = IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO,
    BUFFER_BYTES = 4096,
    RETRY_MS = 10 * 1000,
    SWEEP_PART_MS = 1000,
    SWEEP_PART = 512, /* folders, with a system call for each that is removed: requests may wait for the lock */
};

static_assert(BUFFER_BYTES >= sizeof(struct inotify_event) + NAME_MAX + 1, "an event fits");

static size_t block_bytes(unsigned block)
{
    return ((size_t)NOTIFY_BLOCK << block) * sizeof(struct notify_folder);
}

void notify_init(struct notify *n)
{
    *n = (struct notify){.fd = -1};
    pthread_mutex_init(&n->lock, NULL);
}

void notify_release(struct notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    for (unsigned i = 0; i < NOTIFY_BLOCKS; i++)
        mk_account_free(NULL, n->blocks[i], block_bytes(i));
    mk_account_free(NULL, n->slots, NOTIFY_SLOTS * sizeof(*n->slots));
    pthread_mutex_destroy(&n->lock);
}

/* ── folders ── */

/* Returns the folder of a watch; 0: there is none. */
static unsigned find_folder(struct notify *n, int wd)
{
    unsigned folder = n->slots[(unsigned)wd % NOTIFY_SLOTS];
    while (folder && notify_folder_at(n, folder)->wd != wd)
        folder = notify_folder_at(n, folder)->next;
    return folder;
}

/* Takes a free folder. Returns 0 if there is none, or no memory. */
static unsigned take_folder(struct notify *n)
{
    unsigned folder = n->free;
    if (folder) {
        n->free = notify_folder_at(n, folder)->next;
        return folder;
    }
    if (n->n == NOTIFY_FOLDERS_MAX)
        return 0;
    folder = n->n + 1u;
    unsigned at = notify_block_of(folder);
    if (!n->blocks[at]) {
        struct notify_folder *block = mk_account_zalloc(NULL, block_bytes(at));
        if (!block)
            return 0;
        atomic_store_explicit(&n->blocks[at], block, memory_order_release);
    }
    n->n++;
    return folder;
}

static void free_folder(struct notify *n, unsigned folder)
{
    struct notify_folder *f = notify_folder_at(n, folder);
    uint16_t *at = &n->slots[(unsigned)f->wd % NOTIFY_SLOTS];
    while (*at != folder)
        at = &notify_folder_at(n, *at)->next;
    *at = f->next;
    f->wd = -1;
    f->next = n->free;
    n->free = (uint16_t)folder;
    n->folders--;
}

/* ── events ── */

/* The same for letters of both cases: a folder may take them for one name, and an event has the one that was used. */
static unsigned hash_name(const char *name, size_t len)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((unsigned char)name[i] | 0x20u)) * 0x01000193u;
    return (hash ^ hash >> 16) % NOTIFY_COUNTERS;
}

uint32_t notify_place(int folder, struct mk_str name)
{
    assert(folder > 0 && folder <= NOTIFY_FOLDERS_MAX);
    return (uint32_t)folder * NOTIFY_COUNTERS + hash_name(name.p, name.len);
}

/* No two places get the same number. Under the lock. */
static void add_change(struct notify *n, _Atomic uint32_t *number)
{
    atomic_store_explicit(number, ++n->changes, memory_order_release);
}

static void count_event(struct notify *n, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) {
        n->overflows++;
        add_change(n, &n->all);
        return;
    }
    unsigned folder = find_folder(n, event->wd);
    if (!folder)
        return;
    bool is_self = !event->len;
    if (event->mask & (is_self ? SELF_MASK : event->mask & IN_ISDIR ? SUBFOLDER_MASK : 0))
        add_change(n, &n->all);
    if (!is_self)
        add_change(n, &notify_folder_at(n, folder)->changes[hash_name(event->name, strlen(event->name))]);
    if (event->mask & IN_IGNORED)
        free_folder(n, folder);
}

static void count_events(struct notify *n, const char *events, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const struct inotify_event *event = (const void *)(events + at);
        count_event(n, event);
        at += sizeof(*event) + event->len;
    }
}

/* Reads so many bytes of events, or what there is. Not part of its caller: the buffer would be in each lookup's frame.
 */
static __attribute__((noinline)) void read_events(struct notify *n, size_t wanted)
{
    MK_UNINITIALIZED _Alignas(struct inotify_event) char events[BUFFER_BYTES];
    for (size_t taken = 0; taken < wanted;) {
        ssize_t bytes = read(n->fd, events, sizeof(events));
        if (bytes <= 0)
            return;
        count_events(n, events, (size_t)bytes);
        taken += (size_t)bytes;
    }
}

void notify_read(struct notify *n)
{
    int waiting = 0;
    if (!atomic_load_explicit(&n->is_open, memory_order_acquire))
        return;
    if (ioctl(n->fd, FIONREAD, &waiting) == 0 && !waiting && !atomic_load_explicit(&n->reading, memory_order_acquire))
        return;
    pthread_mutex_lock(&n->lock);
    atomic_store(&n->reading, true);
    read_events(n, (size_t)waiting);
    atomic_store_explicit(&n->reading, false, memory_order_release);
    pthread_mutex_unlock(&n->lock);
}

/* ── watching ── */

/* Opens what the first folder needs; after a failure not for a while. Returns 0 or -errno. */
static int prepare_read(struct notify *n, uint64_t now_ms)
{
    if (n->fd >= 0)
        return 0;
    if (now_ms < n->retry_ms)
        return -ENOSPC;
    n->retry_ms = now_ms + RETRY_MS;
    if (!n->slots)
        n->slots = mk_account_alloc(NULL, NOTIFY_SLOTS * sizeof(*n->slots));
    if (!n->slots)
        return -ENOMEM;
    memset(n->slots, 0, NOTIFY_SLOTS * sizeof(*n->slots));
    n->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (n->fd < 0)
        return -errno;
    atomic_store_explicit(&n->is_open, true, memory_order_release);
    return 0;
}

/* Returns the folder of a new watch, or -errno. */
static int add_folder(struct notify *n, int wd)
{
    unsigned folder = take_folder(n);
    if (!folder) {
        inotify_rm_watch(n->fd, wd);
        return n->n == NOTIFY_FOLDERS_MAX ? -ENOSPC : -ENOMEM;
    }
    uint16_t *slot = &n->slots[(unsigned)wd % NOTIFY_SLOTS];
    struct notify_folder *f = notify_folder_at(n, folder);
    f->wd = wd;
    f->next = *slot;
    *slot = (uint16_t)folder;
    n->folders++;
    return (int)folder;
}

static int add_watch(struct notify *n, int folder_fd, uint32_t mask, uint64_t now_ms)
{
    char path[32];
    int err = prepare_read(n, now_ms);
    if (err < 0)
        return err;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", folder_fd);
    int wd = inotify_add_watch(n->fd, path, mask);
    if (wd < 0)
        return -errno;
    unsigned folder = find_folder(n, wd);
    return folder ? (int)folder : add_folder(n, wd);
}

/* A failure that concerns other folders as well, but none that is watched: it is found by adding its watch again. */
static void log_failure(struct notify *n, int err)
{
    if (n->told)
        return;
    n->told = true;
    mk_log(MK_LOG_WARN,
           "cache: %u folders are watched for changes, and no more can be (%s): in others changes are seen as with "
           "\"Files Revalidate\"%s",
           n->folders, strerror(-err),
           err == -ENOSPC ? "; fs.inotify.max_user_watches of sysctl(8) may be raised" : "");
}

/* The folder may be another one already, or may have been moved above itself: the first that is used ends the way. */
static void touch_folders(struct notify *n, unsigned folder)
{
    while (folder) {
        struct notify_folder *f = notify_folder_at(n, folder);
        if (f->used)
            return;
        f->used = true;
        folder = f->above;
    }
}

void notify_touch(struct notify *n, uint32_t place)
{
    touch_folders(n, (unsigned)notify_folder_of(place));
}

static int add_folder_of(struct notify *n, int folder_fd, uint32_t mask, int above, uint64_t now_ms)
{
    assert(above >= 0 && above <= NOTIFY_FOLDERS_MAX);
    pthread_mutex_lock(&n->lock);
    int folder = add_watch(n, folder_fd, mask, now_ms);
    if (folder >= 0) {
        if (above)
            notify_folder_at(n, (unsigned)folder)->above = (uint16_t)above;
        touch_folders(n, (unsigned)folder);
    } else if (folder != -EACCES && folder != -ENOTDIR) {
        log_failure(n, folder);
    }
    pthread_mutex_unlock(&n->lock);
    return folder;
}

int notify_add(struct notify *n, int folder_fd, int above, uint64_t now_ms)
{
    return add_folder_of(n, folder_fd, MASK, above, now_ms);
}

int notify_add_names(struct notify *n, int folder_fd, uint64_t now_ms)
{
    return add_folder_of(n, folder_fd, NAMES_MASK, 0, now_ms);
}

/*
 * Ends the watch of a folder. It may have ended already: then the report of that waits in the queue, which nothing
 * reads while there are no requests, or was lost by an overflow.
 */
static void end_watch(struct notify *n, unsigned folder)
{
    inotify_rm_watch(n->fd, notify_folder_at(n, folder)->wd);
    add_change(n, &n->all);
    free_folder(n, folder);
}

/* Looks at some more folders; at the end waits for the next sweep. */
static void sweep_part(struct notify *n, uint64_t now_ms)
{
    unsigned end = n->n - n->sweep_at < SWEEP_PART ? n->n : n->sweep_at + SWEEP_PART;
    if (n->sweep_at == 0)
        n->sweep_began_ms = now_ms;
    for (unsigned folder = n->sweep_at + 1u; folder <= end; folder++) {
        struct notify_folder *f = notify_folder_at(n, folder);
        if (f->wd >= 0 && !f->used)
            end_watch(n, folder);
        f->used = false;
    }
    bool is_last = end == n->n;
    uint64_t next_ms = is_last ? n->sweep_began_ms + NOTIFY_SWEEP_MS : 0;
    n->sweep_at = is_last ? 0 : (uint16_t)end;
    n->sweep_ms = next_ms > now_ms + SWEEP_PART_MS ? next_ms : now_ms + SWEEP_PART_MS;
}

bool notify_sweep(struct notify *n, uint64_t now_ms)
{
    if (!n->folders)
        return false;
    pthread_mutex_lock(&n->lock);
    if (now_ms >= n->sweep_ms)
        sweep_part(n, now_ms);
    pthread_mutex_unlock(&n->lock);
    return true;
}
