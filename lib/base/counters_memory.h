// SPDX-License-Identifier: Apache-2.0
/*
 * The layout of the memory of the counters (base/counters.h), its mapping, and the blocks of threads. Names are added
 * to it in base/counters.c.
 */
#ifndef MK_BASE_COUNTERS_MEMORY_H
#define MK_BASE_COUNTERS_MEMORY_H

#include "base/counters.h"

enum {
    MK__COUNTER_HISTOGRAM_CELLS = 1 + MK_COUNTER_BUCKETS,
    MK__COUNTER_SPARE_CELLS = MK__COUNTER_HISTOGRAM_CELLS, /* the first cells take what is not shown */
    MK__COUNTER_CELLS_MAX = 131072,                        /* 1 MB */
    MK__COUNTER_BLOCKS_MAX = 1024,
    MK__COUNTER_HEAP_BYTES = 1 << 20,
};

struct mk__counter_family {
    uint32_t strings; /* in the heap: plugin, name and help, each with a NUL */
    uint16_t plugin_len, name_len, help_len;
    uint16_t kind;
};

struct mk__counter_series {
    uint32_t slot, labels; /* where the labels are in the heap */
    uint16_t labels_len, family;
    uint32_t hash; /* of family and labels */
};

struct mk__counters_head {
    char magic[8];
    uint32_t layout, bytes;
    _Atomic uint32_t n_families, n_series;
    uint32_t heap_bytes, n_cells;
    _Atomic uint32_t n_blocks;                      /* those that were claimed at any time */
    _Atomic int32_t owners[MK__COUNTER_BLOCKS_MAX]; /* the pid of each block's process; 0: free */
    struct mk__counter_family families[MK_COUNTER_FAMILIES_MAX];
    struct mk__counter_series series[MK_COUNTERS_MAX];
    char heap[MK__COUNTER_HEAP_BYTES];
};

/* The memory; NULL: there is no server, or no memory. */
extern struct mk__counters_head *mk__counters_head;

/* Returns the cells of a block, which are mapped when they are first needed. NULL: no memory. Any thread. */
mk__cell *mk__counters_get_block(unsigned i);

/*
 * The memory is shared with other processes, one of which may be broken: numbers, indexes and places that are read from
 * it are bounded wherever they are used.
 */
static inline unsigned mk__counters_count_families(void)
{
    unsigned n = atomic_load_explicit(&mk__counters_head->n_families, memory_order_acquire);
    return n < MK_COUNTER_FAMILIES_MAX ? n : MK_COUNTER_FAMILIES_MAX;
}

static inline unsigned mk__counters_count_series(void)
{
    unsigned n = atomic_load_explicit(&mk__counters_head->n_series, memory_order_acquire);
    return n < MK_COUNTERS_MAX ? n : MK_COUNTERS_MAX;
}

static inline unsigned mk__counters_count_blocks(void)
{
    unsigned n = atomic_load(&mk__counters_head->n_blocks);
    return n < MK__COUNTER_BLOCKS_MAX ? n : MK__COUNTER_BLOCKS_MAX;
}

static inline uint32_t mk__counters_get_slot(const struct mk__counter_series *s)
{
    uint32_t slot = s->slot;
    return slot <= MK__COUNTER_CELLS_MAX - MK__COUNTER_HISTOGRAM_CELLS ? slot : 0;
}

static inline const struct mk__counter_family *mk__counters_get_family(const struct mk__counter_series *s)
{
    return &mk__counters_head->families[s->family % MK_COUNTER_FAMILIES_MAX];
}

#endif
