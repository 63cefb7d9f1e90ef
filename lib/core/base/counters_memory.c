// SPDX-License-Identifier: Apache-2.0
/*
 * Makes, inherits and maps the memory of the counters (base/counters_memory.h), and gives each thread a block of it.
 */
#include "base/counters_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAYOUT = 4 }; /* changes with the structs of the memory */

static_assert(sizeof(struct mk__counter_block) % 4096 == 0, "blocks are mapped one by one");

static const char MAGIC[8] = "mkcount";

struct mk__counters_head *mk__counters_head;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t labels_lock = PTHREAD_RWLOCK_INITIALIZER;
_Atomic bool mk__counters_memory_has_reusable;
static int memory_fd = -1;
static struct mk__counter_block *_Atomic blocks[MK__COUNTER_BLOCKS_MAX]; /* those that are mapped */
static unsigned users;
static _Atomic bool serves;
static mk__cell *shared_cells; /* of the threads without a block */

/* ── the memory ── */

static bool is_valid(const struct mk__counters_head *h)
{
    return memcmp(h->magic, MAGIC, sizeof(MAGIC)) == 0 && h->layout == LAYOUT && h->bytes >= sizeof(*h) &&
           h->bytes <= MK__COUNTER_HEAD_BYTES && h->n_cells <= MK__COUNTER_SPARE_SLOT &&
           h->n_blocks <= MK__COUNTER_BLOCKS_MAX;
}

/*
 * Lets the file have this size at least, and keeps it from shrinking, which would end the processes that read it.
 * Another process may let it grow meanwhile: a smaller size is refused then. Returns 0 or -errno.
 */
static int grow_file(int fd, off_t bytes)
{
    struct stat st;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size >= bytes || ftruncate(fd, bytes) == 0)
        return 0;
    int err = -errno;
    return fstat(fd, &st) == 0 && st.st_size >= bytes ? 0 : err;
}

/* Maps a part of the file. NULL: errno says why. */
static void *map_part(int fd, off_t at, size_t bytes)
{
    int err = grow_file(fd, at + (off_t)bytes);
    if (err < 0) {
        errno = -err;
        return NULL;
    }
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    return p == MAP_FAILED ? NULL : p;
}

/* Maps a descriptor; an empty one becomes the memory of new counters. Returns 0 or -errno. */
static int map_memory(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    struct mk__counters_head *h = map_part(fd, 0, MK__COUNTER_HEAD_BYTES);
    if (!h)
        return -errno;
    if (st.st_size == 0) {
        memcpy(h->magic, MAGIC, sizeof(MAGIC));
        h->layout = LAYOUT;
        h->bytes = sizeof(*h);
    }
    if (!is_valid(h)) {
        munmap(h, MK__COUNTER_HEAD_BYTES);
        return -EINVAL;
    }
    mk__counters_head = h;
    memory_fd = fd;
    return 0;
}

static int make_memory(void)
{
    int fd = memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err = fd < 0 ? -errno : map_memory(fd);
    if (err < 0 && fd >= 0)
        close(fd);
    return err;
}

static void release_memory(void)
{
    for (unsigned i = 0; i < MK__COUNTER_BLOCKS_MAX; i++) {
        struct mk__counter_block *block = atomic_exchange(&blocks[i], NULL);
        if (block)
            munmap(block, sizeof(*block));
    }
    munmap(mk__counters_head, MK__COUNTER_HEAD_BYTES);
    close(memory_fd);
    mk__counters_head = NULL;
    memory_fd = -1;
    shared_cells = NULL;
    serves = false;
}

/* ── records ── */

void mk__counters_memory_lock_labels(bool to_change)
{
    if (to_change)
        pthread_rwlock_wrlock(&labels_lock);
    else
        pthread_rwlock_rdlock(&labels_lock);
}

void mk__counters_memory_unlock_labels(void)
{
    pthread_rwlock_unlock(&labels_lock);
}

int mk__counters_memory_visit(int (*visit)(const struct mk__counter_family *f, const struct mk__counter_series *s,
                                           void *ctx),
                              void *ctx)
{
    const struct mk__counter_family *f = NULL;
    unsigned n_families = 0, n = 0;
    int r = 0;
    while (r == 0 && (f = mk__counters_memory_next_family(f)) && n_families++ < MK_COUNTER_FAMILIES_MAX) {
        const struct mk__counter_series *s = NULL;
        while (r == 0 && (s = mk__counters_memory_next_series(f, s)) && n++ < MK_COUNTERS_MAX)
            r = visit(f, s, ctx);
    }
    return r;
}

/* ── blocks ── */

struct mk__counter_block *mk__counters_memory_get_block(unsigned i)
{
    struct mk__counter_block *mapped = NULL, *block = atomic_load_explicit(&blocks[i], memory_order_acquire);
    if (block)
        return block;
    block = map_part(memory_fd, MK__COUNTER_HEAD_BYTES + (off_t)i * (off_t)sizeof(*block), sizeof(*block));
    if (!block || atomic_compare_exchange_strong(&blocks[i], &mapped, block))
        return block;
    munmap(block, sizeof(*block)); /* another thread was first */
    return mapped;
}

static int clear_level(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    mk__cell *cells = ctx;
    if (f->kind == MK_COUNTER_LEVEL)
        atomic_store_explicit(&cells[mk__counters_memory_get_slot(s)], 0, memory_order_relaxed);
    return 0;
}

/* Takes the levels of a block to 0, since what its thread held is gone, and lets another thread claim it. */
static void free_block(struct mk__counter_block *block)
{
    mk__counters_memory_visit(clear_level, block->cells);
    atomic_store(&block->owner, 0);
}

static bool is_dead(int32_t owner, bool starts)
{
    return owner == getpid() ? starts : owner != 0 && kill(owner, 0) < 0 && errno == ESRCH;
}

void mk__counters_memory_free_dead(bool starts)
{
    for (unsigned i = 0, n = mk__counters_memory_count_blocks(); i < n; i++) {
        struct mk__counter_block *block = mk__counters_memory_get_block(i);
        int32_t owner = block ? atomic_load(&block->owner) : 0;
        if (is_dead(owner, starts) && atomic_compare_exchange_strong(&block->owner, &owner, getpid()))
            free_block(block); /* other processes and threads may be doing the same */
    }
}

bool mk__counters_memory_is_own(void)
{
    for (unsigned i = 0, n = mk__counters_memory_count_blocks(); i < n; i++) {
        const struct mk__counter_block *block = mk__counters_memory_get_block(i);
        int32_t owner = block ? atomic_load(&block->owner) : 0;
        if (owner != 0 && owner != getpid() && !is_dead(owner, false))
            return false;
    }
    return true;
}

void mk__counters_memory_clear(uint32_t slot, uint32_t cells)
{
    for (unsigned i = 0, n = mk__counters_memory_count_blocks(); i < n; i++) {
        struct mk__counter_block *block = mk__counters_memory_get_block(i);
        for (uint32_t cell = slot; block && cell < slot + cells; cell++)
            atomic_store_explicit(&block->cells[cell], 0, memory_order_relaxed);
    }
}

mk__cell *mk__counters_memory_claim(void)
{
    for (unsigned i = 0; mk__counters_head && i < MK__COUNTER_BLOCKS_MAX; i++) {
        struct mk__counter_block *block = mk__counters_memory_get_block(i);
        int32_t none = 0;
        if (!block)
            return NULL;
        if (!atomic_compare_exchange_strong(&block->owner, &none, getpid()))
            continue;
        uint32_t before = atomic_load(&mk__counters_head->n_blocks);
        while (before <= i && !atomic_compare_exchange_weak(&mk__counters_head->n_blocks, &before, i + 1))
            ;
        return block->cells;
    }
    return NULL;
}

void mk__counters_memory_give_back(mk__cell *cells)
{
    if (cells)
        free_block(MK_CONTAINER_OF((uintptr_t)cells, struct mk__counter_block, cells));
}

void mk__counters_memory_add_shared(uint32_t slot, int64_t n)
{
    if (shared_cells)
        atomic_fetch_add_explicit(&shared_cells[slot], (uint64_t)n, memory_order_relaxed);
}

/* ── users ── */

int mk__counters_memory_open(void)
{
    pthread_mutex_lock(&mutex);
    int err = mk__counters_head ? 0 : make_memory();
    if (err == 0 && users++ == 0) {
        atomic_store(&mk__counters_head->latest, getpid());
        mk__counters_memory_free_dead(true);
        shared_cells = mk__counters_memory_claim();
    }
    pthread_mutex_unlock(&mutex);
    return err;
}

void mk__counters_memory_close(void)
{
    pthread_mutex_lock(&mutex);
    assert(mk__counters_head || !users);
    if (users > 0 && --users == 0) {
        mk__counters_memory_give_back(shared_cells);
        release_memory();
    }
    pthread_mutex_unlock(&mutex);
}

void mk__counters_memory_serve(void)
{
    if (!mk__counters_head)
        return;
    atomic_store(&mk__counters_head->latest, getpid());
    serves = true;
}

bool mk__counters_memory_may_hide(void)
{
    int32_t latest = mk__counters_head ? atomic_load(&mk__counters_head->latest) : 0;
    return serves && (latest == getpid() || is_dead(latest, false));
}

int mk_counters_fd(void)
{
    return memory_fd >= 0 ? memory_fd : -ENOENT;
}

int mk_counters_inherit(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || seals & F_SEAL_SEAL)
        return -EINVAL;
    pthread_mutex_lock(&mutex);
    int err = mk__counters_head ? -EBUSY : map_memory(fd);
    pthread_mutex_unlock(&mutex);
    if (err < 0)
        close(fd);
    else
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return err;
}
