// SPDX-License-Identifier: Apache-2.0
/*
 * Folders that the kernel watches for the process (inotify(7)), and how often names in them have changed. Nothing waits
 * for events: a worker reads them before the first lookup of an arrival (mk_request_arrival()), so that what it serves
 * then is as new as the requests of that arrival.
 *
 *     change of a file ─► queue of the kernel ─► notify_read() ─► number of the place of a name
 *     lookup: the number is that of the last check of the entry ─► the name has not changed
 *
 * A place is a folder and one of its 16 counters, to which names belong by their hash. A change of a folder on the way
 * to a file counts for all places.
 */
#ifndef CACHE_NOTIFY_H
#define CACHE_NOTIFY_H

#include <monkey/base/str.h>
#include <monkey/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NOTIFY_COUNTERS = 16, /* of a folder */
    NOTIFY_BLOCK = 16,    /* folders of the first block; each block has twice those of the one before */
    NOTIFY_BLOCKS = 10,
    NOTIFY_FOLDERS_MAX = (NOTIFY_BLOCK << NOTIFY_BLOCKS) - NOTIFY_BLOCK - 1,
    NOTIFY_SLOTS = 256, /* of the table of folders by watch */
    NOTIFY_SWEEP_MS = 60 * 1000,
};

/* Places: of a name that was not looked for yet, and of one that the kernel does not watch. */
enum { NOTIFY_UNKNOWN = 0, NOTIFY_NONE = 1 };

struct notify_folder {
    _Atomic uint32_t changes[NOTIFY_COUNTERS]; /* the number of the last one; 0: none */
    int wd;                 /* of its watch; -1: the folder is free. This and the next under the lock */
    uint16_t next;          /* with the same slot, or free */
    _Atomic uint16_t above; /* the folder from which it was reached; 0: none */
    _Atomic bool used;      /* since notify_sweep() has looked at it */
};

struct notify {
    int fd;                     /* of inotify; -1: not opened */
    _Atomic bool reading;       /* a thread has taken events that it has not counted yet */
    _Atomic bool is_open;       /* there is a folder, or there was one */
    _Atomic uint32_t all;       /* the number of the last change that counts for all places */
    _Atomic uint32_t folders;   /* that are watched */
    _Atomic uint64_t overflows; /* of the kernel's queue */
    uint64_t sweep_ms;          /* when the next part of a sweep is due. This and the rest under the lock */
    uint64_t sweep_began_ms;
    uint16_t sweep_at; /* the folder before the next part */
    uint64_t retry_ms; /* inotify is not opened before */
    pthread_mutex_t lock;
    uint32_t changes; /* that were counted */
    bool told;        /* that there are no more watches */
    uint16_t *slots;
    uint16_t free, n; /* the first free folder, and how many were made; 0 is none */
    _Atomic(struct notify_folder *) blocks[NOTIFY_BLOCKS];
};

void notify_init(struct notify *n);
void notify_release(struct notify *n);

/*
 * Counts the changes that the kernel has seen so far; returns once those are counted, too, that another thread has
 * taken. Any thread.
 */
void notify_read(struct notify *n);

/*
 * Watches the folder of a descriptor (O_PATH), which was reached from the watched folder `above` (0: from none), or
 * only which names it has. One that is watched already keeps its number, also if no other can be watched, and what of
 * it is watched. `now_ms`: after a failure to open inotify that is not tried for ten seconds. Returns the number of the
 * folder, or -errno: -ENOSPC (the limit of the process or of the system), -EACCES and others. Changes from then on are
 * counted. Any thread.
 */
int notify_add(struct notify *n, int folder_fd, int above, uint64_t now_ms);
int notify_add_names(struct notify *n, int folder_fd, uint64_t now_ms);

/*
 * Removes the watches of folders that were not used for a minute or two; of many folders in parts, one in a second.
 * Returns whether there are any folders. Any thread.
 */
bool notify_sweep(struct notify *n, uint64_t now_ms);

/* The folder of a place is used, and so are those above it. Any thread. */
void notify_touch(struct notify *n, uint32_t place);

/* Returns the place of a name in a folder. */
uint32_t notify_place(int folder, struct mk_str name);

static inline int notify_folder_of(uint32_t place)
{
    return (int)(place / NOTIFY_COUNTERS);
}

static inline bool notify_is_place(uint32_t place)
{
    return place >= NOTIFY_COUNTERS;
}

/* Returns the number of the last change that counts for all places; it is the upper half of notify_number(). */
static inline uint32_t notify_all(const struct notify *n)
{
    return atomic_load_explicit(&n->all, memory_order_acquire);
}

static inline unsigned notify_block_of(unsigned folder)
{
    return 31u - (unsigned)__builtin_clz(folder / NOTIFY_BLOCK + 1);
}

/* Returns a folder that was made, by its number. */
static inline struct notify_folder *notify_folder_at(const struct notify *n, unsigned folder)
{
    unsigned block = notify_block_of(folder), first = ((unsigned)NOTIFY_BLOCK << block) - NOTIFY_BLOCK;
    return atomic_load_explicit(&n->blocks[block], memory_order_acquire) + (folder - first);
}

/*
 * Returns a number that has changed if a name of the place may have changed. Those of two places are equal only if
 * nothing has changed at either yet. Any thread.
 */
static inline uint64_t notify_number(const struct notify *n, uint32_t place)
{
    const struct notify_folder *f = notify_folder_at(n, place / NOTIFY_COUNTERS);
    uint32_t own = atomic_load_explicit(&f->changes[place % NOTIFY_COUNTERS], memory_order_acquire);
    return (uint64_t)notify_all(n) << 32 | own;
}

#endif
