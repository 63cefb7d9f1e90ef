// SPDX-License-Identifier: Apache-2.0
/*
 * The folder of sessions in files (session_folder.h).
 */
#include "session/session_folder.h"

#include "common/heap.h"

#include <monkey/base/escape.h>
#include <monkey/log.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 400, LOCK_WAIT_NS = 5000000, LOG_SECONDS = 10, CLEAN_SECONDS = 60, REMNANT_SECONDS = 60 };

/* ── errors and names ── */

int session_folder_fail(struct session_store *store, int err)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t before = atomic_load(&store->logged_at);
    if (err == -ENOMEM)
        return err;
    if ((!before || now.tv_sec - before >= LOG_SECONDS) &&
        atomic_compare_exchange_strong(&store->logged_at, &before, now.tv_sec + !now.tv_sec))
        mk_log(MK_LOG_ERROR, "service %s: the sessions in %s cannot be used: %s", store->service, store->folder,
               err == -EPERM ? "the folder must belong to the server's user and have the mode 0700" : strerror(-err));
    return -EIO;
}

void session_folder_name(const struct session_key *key, char to[SESSION_NAME_BYTES])
{
    *mk_hex_write(to, key->bytes, sizeof(key->bytes)) = '\0';
}

/* Returns whether this is the name of a session's file, and its key. */
static bool parse_name(const char *name, struct session_key *ret)
{
    for (size_t i = 0; i < sizeof(ret->bytes); i++, name += 2) {
        int high = mk_hex_value(name[0]), low = high < 0 ? -1 : mk_hex_value(name[1]);
        if (low < 0)
            return false;
        ret->bytes[i] = (unsigned char)(high << 4 | low);
    }
    return !*name;
}

int session_folder_open(const struct session_store *store)
{
    static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    int fd = open(store->folder, flags);
    if (fd < 0 && errno == ENOENT && (mkdir(store->folder, 0700) == 0 || errno == EEXIST))
        fd = open(store->folder, flags);
    if (fd < 0)
        return -errno;
    int err = fstat(fd, &st) < 0 ? -errno : 0;
    if (err == 0 && (st.st_uid != geteuid() || st.st_mode & 077))
        err = -EPERM;
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

/* ── locks ── */

/* Waits up to `tries` intervals for the lock of another process. */
static int lock_file(int fd, unsigned tries)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (--tries == 0)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    return 0;
}

static int open_lock(int folder, unsigned stripe)
{
    char name[16];
    snprintf(name, sizeof(name), "lock-%x", stripe);
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int session_folder_lock(struct session_store *store, int folder, const struct session_key *key,
                        struct session_lock *ret)
{
    unsigned stripe = key->bytes[0] >> 4;
    ret->mutex = &store->stripes[stripe];
    pthread_mutex_lock(ret->mutex);
    ret->fd = open_lock(folder, stripe);
    int err = ret->fd < 0 ? ret->fd : lock_file(ret->fd, LOCK_TRIES);
    if (err < 0)
        session_folder_unlock(ret);
    return err;
}

void session_folder_unlock(struct session_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd); /* which also unlocks it: no other descriptor refers to this open file */
    pthread_mutex_unlock(lock->mutex);
}

/* ── cleaning; store->count_lock is held ── */

struct entry {
    struct session_key key;
    struct timespec used;
};

struct entries {
    struct entry *items;
    size_t n, room;
};

static int add_entry(struct entries *all, const struct session_key *key, struct timespec used)
{
    assert(all->n <= all->room);
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 256;
        struct entry *items = heap_grow(all->items, all->room * sizeof(*items), room * sizeof(*items));
        if (!items)
            return -ENOMEM;
        all->items = items;
        all->room = room;
    }
    all->items[all->n++] = (struct entry){*key, used};
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Removes a session unless it was used since it was seen. Returns whether it is gone. */
static bool remove_entry(struct session_store *store, int folder, const struct entry *e)
{
    char name[SESSION_NAME_BYTES];
    struct session_lock lock;
    struct stat st;
    session_folder_name(&e->key, name);
    if (session_folder_lock(store, folder, &e->key, &lock) < 0)
        return false;
    bool is_gone = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0;
    if (!is_gone && st.st_mtim.tv_sec == e->used.tv_sec && st.st_mtim.tv_nsec == e->used.tv_nsec)
        is_gone = unlinkat(folder, name, 0) == 0;
    session_folder_unlock(&lock);
    return is_gone;
}

/* Looks at one file: removes it if it has expired, or was left by a write that has ended; remembers other sessions. */
static int look_at(struct session_store *store, int folder, const char *name, int64_t now, int64_t idle_s,
                   struct entries *all)
{
    struct session_key key = {0};
    struct stat st;
    bool is_session = parse_name(name, &key);
    bool is_remnant = !is_session && strlen(name) > 4 && strcmp(name + strlen(name) - 4, ".new") == 0;
    if ((!is_session && !is_remnant) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int64_t age = now - st.st_mtim.tv_sec;
    struct entry e = {key, st.st_mtim};
    if (is_remnant && age > REMNANT_SECONDS)
        unlinkat(folder, name, 0);
    bool stays = is_session && (age < idle_s || !remove_entry(store, folder, &e));
    return stays ? add_entry(all, &key, st.st_mtim) : 0;
}

static int read_entries(struct session_store *store, int folder, int64_t now, struct entries *all)
{
    struct session_limits limits = session_store_limits(store);
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    for (struct dirent *d; err == 0 && (errno = 0, d = readdir(dir));)
        err = look_at(store, folder, d->d_name, now, limits.idle_s, all);
    if (err == 0)
        err = -errno;
    closedir(dir);
    return err;
}

/* Removes the sessions whose last use is the longest ago until `n_max` are left. */
static void evict_entries(struct session_store *store, int folder, struct entries *all, size_t n_max)
{
    size_t left = all->n;
    if (left <= n_max)
        return;
    qsort(all->items, all->n, sizeof(*all->items), compare_entries);
    for (size_t i = 0; i < all->n && left > n_max; i++)
        left -= remove_entry(store, folder, &all->items[i]);
    all->n = left;
}

static int clean_folder(struct session_store *store, int folder, int64_t now, size_t n_max)
{
    struct entries all = {0};
    int err = read_entries(store, folder, now, &all);
    if (err == 0) {
        evict_entries(store, folder, &all, n_max);
        atomic_store(&store->files, (int64_t)all.n);
        atomic_store(&store->clean_at, now + CLEAN_SECONDS);
    }
    heap_free(all.items, all.room * sizeof(*all.items));
    return err < 0 ? session_folder_fail(store, err) : 0;
}

int session_folder_clean(struct session_store *store, int folder, int64_t now)
{
    struct session_limits limits = session_store_limits(store);
    pthread_mutex_lock(&store->count_lock);
    int err = clean_folder(store, folder, now, limits.sessions_max);
    pthread_mutex_unlock(&store->count_lock);
    return err;
}

int session_folder_reserve(struct session_store *store, int folder, int64_t now)
{
    int err = 0;
    struct session_limits limits = session_store_limits(store);
    pthread_mutex_lock(&store->count_lock);
    int64_t files = atomic_load(&store->files);
    if (files < 0 || files >= limits.sessions_max) /* a sixteenth more, or each session would do this */
        err = clean_folder(store, folder, now, limits.sessions_max - 1 - limits.sessions_max / 16);
    if (err == 0)
        atomic_fetch_add(&store->files, 1);
    pthread_mutex_unlock(&store->count_lock);
    return err;
}

void session_folder_forget(struct session_store *store)
{
    if (atomic_load(&store->files) > 0)
        atomic_fetch_sub(&store->files, 1);
}
