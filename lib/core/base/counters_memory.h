// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of the counters (<monkey/counters.h>): one file in memory (memfd), which the next process can continue
 * with.
 *
 *     head ─► family ─► counter ─► counter ...      records in the order in which they were added, close together, so
 *                └────► family ─► counter ...       that few counters take few pages
 *     block 0   the cells of one thread
 *     block 1   those of another one ...
 *
 * A counter has the same slot in all blocks: one cell, or for a histogram one for the sum and one for each bucket. Only
 * the thread that has claimed a block writes to it; each process has one block more, which its other threads share with
 * atomic additions. A block that its thread gives back keeps its values, and the next thread continues adding to them,
 * so that the sum over all blocks is exact at all times. Pages that nothing has touched take no memory.
 *
 * Records never change, except for the place of the next one, whether a counter is hidden, and the labels of a hidden
 * one that is used again (mk__counters_memory_lock_labels()). They are found by their place, in bytes from the head; 0:
 * none. The memory is shared with other processes, one of which may be broken: places, lengths and slots that are read
 * from it are checked wherever they are used.
 */
#ifndef MK_BASE_COUNTERS_MEMORY_H
#define MK_BASE_COUNTERS_MEMORY_H

#include <monkey/base/buf.h>
#include <monkey/counters.h>

#include <assert.h>
#include <stdatomic.h>

struct mk_counter {
    uint32_t slot;
};

/* The cells of one thread, by slot. */
typedef _Atomic uint64_t mk__cell;

enum {
    MK__COUNTER_HISTOGRAM_CELLS = 1 + MK_COUNTER_BUCKETS,
    MK__COUNTER_CELLS_MAX = 524287, /* 4 MB with the owner */
    /* The last cells take what is not shown. */
    MK__COUNTER_SPARE_SLOT = MK__COUNTER_CELLS_MAX - MK__COUNTER_HISTOGRAM_CELLS,
    MK__COUNTER_BLOCKS_MAX = 1024,
    MK__COUNTER_HEAD_BYTES = 4 << 20,
};

struct mk__counter_family {
    _Atomic uint32_t next, first; /* the next family, and the first counter of this one */
    uint32_t last;                /* counter; of the process that adds one */
    uint16_t plugin_len, name_len, help_len;
    uint8_t kind;
    _Atomic uint8_t is_held; /* its counters are those of mk_counter_hold() */
    char text[];             /* plugin, name and help, each with a NUL */
};

struct mk__counter_series {
    _Atomic uint32_t next; /* counter of the family */
    uint32_t slot, number; /* the number counts all counters */
    uint32_t hash;         /* of the labels */
    uint16_t labels_len, labels_max;
    _Atomic uint8_t state; /* enum mk__counter_state */
    char labels[];         /* with a NUL */
};

enum mk__counter_state {
    MK__COUNTER_SHOWN,
    MK__COUNTER_HIDDEN,
    MK__COUNTER_UNUSED, /* shown: its place is used for others once there is no room, and its sum goes to a total */
};

struct mk__counters_head {
    char magic[8];
    uint32_t layout, bytes; /* `bytes` are in use */
    uint32_t n_families, n_series, n_cells;
    _Atomic uint32_t n_blocks; /* those that were claimed at any time */
    _Atomic uint32_t first;    /* family */
    uint32_t last;
    _Atomic int32_t latest; /* the process that has opened the memory last */
    char records[];
};

struct mk__counter_block {
    _Atomic int32_t owner; /* the process of the thread that has claimed it; 0: none */
    mk__cell cells[MK__COUNTER_CELLS_MAX];
};

/* Value of the label of what was removed and whose places are used again. */
#define MK__COUNTER_REMOVED "(removed)"

/* counter_labels.c: copies labels, of which `name` gets the value MK__COUNTER_REMOVED. */
void mk__counter_labels_remove(struct mk_str labels, struct mk_str name, struct mk_buf *out);

/* The memory; NULL: there is no server, or no memory. */
extern struct mk__counters_head *mk__counters_head;

/* Returns a block, which is mapped when it is first needed. NULL: no memory. Any thread. */
struct mk__counter_block *mk__counters_memory_get_block(unsigned i);

static inline unsigned mk__counters_memory_count_blocks(void)
{
    unsigned n = atomic_load(&mk__counters_head->n_blocks);
    return n < MK__COUNTER_BLOCKS_MAX ? n : MK__COUNTER_BLOCKS_MAX;
}

/* Returns `bytes` of the head that begin at a place; NULL: there is nothing. */
static inline void *mk__counters_memory_at(uint32_t at, size_t bytes)
{
    bool good = at >= sizeof(struct mk__counters_head) && at % _Alignof(struct mk__counter_family) == 0 &&
                at < MK__COUNTER_HEAD_BYTES && bytes <= MK__COUNTER_HEAD_BYTES - at;
    return good ? (char *)mk__counters_head + at : NULL;
}

/* Return the record at a place; NULL: there is none. */
static inline struct mk__counter_family *mk__counters_memory_get_family(uint32_t at)
{
    struct mk__counter_family *f = mk__counters_memory_at(at, sizeof(*f));
    return f && mk__counters_memory_at(at, sizeof(*f) + f->plugin_len + f->name_len + f->help_len + 3u) ? f : NULL;
}
static inline struct mk__counter_series *mk__counters_memory_get_series(uint32_t at)
{
    struct mk__counter_series *s = mk__counters_memory_at(at, sizeof(*s));
    return s && mk__counters_memory_at(at, sizeof(*s) + s->labels_len + 1u) ? s : NULL;
}

/* Return the record that follows; NULL: none. */
static inline struct mk__counter_family *mk__counters_memory_next_family(const struct mk__counter_family *f)
{
    const _Atomic uint32_t *next = f ? &f->next : &mk__counters_head->first;
    return mk__counters_memory_get_family(atomic_load_explicit(next, memory_order_acquire));
}
static inline struct mk__counter_series *mk__counters_memory_next_series(const struct mk__counter_family *f,
                                                                         const struct mk__counter_series *s)
{
    return mk__counters_memory_get_series(atomic_load_explicit(s ? &s->next : &f->first, memory_order_acquire));
}

static inline uint32_t mk__counters_memory_get_slot(const struct mk__counter_series *s)
{
    uint32_t slot = s->slot;
    return slot < MK__COUNTER_SPARE_SLOT ? slot : MK__COUNTER_SPARE_SLOT;
}

static inline struct mk_str mk__counters_memory_get_plugin(const struct mk__counter_family *f)
{
    return mk_str(f->text, f->plugin_len);
}

/* Any thread. */
static inline void mk__counters_memory_set_state(const struct mk__counter_series *s, enum mk__counter_state state)
{
    struct mk__counter_series *record = (struct mk__counter_series *)(uintptr_t)s;
    atomic_store_explicit(&record->state, (uint8_t)state, memory_order_relaxed);
}

static inline enum mk__counter_state mk__counters_memory_get_state(const struct mk__counter_series *s)
{
    return (enum mk__counter_state)atomic_load_explicit(&s->state, memory_order_relaxed);
}

/* Calls `visit` for each counter, family by family; ends with the first value other than 0, which it returns. */
int mk__counters_memory_visit(int (*visit)(const struct mk__counter_family *f, const struct mk__counter_series *s,
                                           void *ctx),
                              void *ctx);

/* Whether any counter may be hidden or unused: then one without room looks for it. */
extern _Atomic bool mk__counters_memory_has_reusable;

/*
 * Lock the labels of all counters, for reading them or for changing those of a hidden or unused one. A reader takes no
 * other lock meanwhile. Any thread.
 */
void mk__counters_memory_lock_labels(bool to_change);
void mk__counters_memory_unlock_labels(void);

/* Returns whether no other process that lives counts in the memory. */
bool mk__counters_memory_is_own(void);

/* Takes some cells to 0 in all blocks. Nothing adds to them meanwhile. */
void mk__counters_memory_clear(uint32_t slot, uint32_t cells);

/*
 * Opens the memory for a server, or counts one more user of it. Returns 0 or -errno: counters then count nothing.
 * mk__counters_memory_close() releases it with the last user, when no thread counts any more.
 */
int mk__counters_memory_open(void);
void mk__counters_memory_close(void);

/* Claims a block for a thread. NULL: none is free, or there is no memory; count with NULL then. Any thread. */
mk__cell *mk__counters_memory_claim(void);
/* Gives the block back, with its values; levels become 0. Does nothing with NULL. In the thread that wrote to it. */
void mk__counters_memory_give_back(mk__cell *cells);

/*
 * Frees the blocks of processes that have ended without giving them back; those of this process, too, if it `starts`:
 * they are of the program that it has replaced. Any thread.
 */
void mk__counters_memory_free_dead(bool starts);

/*
 * This process begins to serve: from now on it may hide counters, unless a later process has opened the memory. Any
 * thread.
 */
void mk__counters_memory_serve(void);
/*
 * Returns whether this process may hide counters: the former process of an upgrade does not know what the next one
 * uses, and a process that has not served yet may end while the former one serves on. Any thread.
 */
bool mk__counters_memory_may_hide(void);

/* Adds with an atomic operation, in a thread that has no block. */
void mk__counters_memory_add_shared(uint32_t slot, int64_t n);

#endif
