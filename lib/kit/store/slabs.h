// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of items: blocks of slabs.
 *
 *     slab: head │ block: size, size of the one before │ bytes ... │ block ... │ free block: links │ ...
 *
 * Free blocks are in bins by size, and neighbours that are free become one block: memory that small items leave is
 * used for large ones and the other way round. Slabs grow with the store, from 64 KB to 2 MB.
 */
#ifndef MK_STORE_SLABS_H
#define MK_STORE_SLABS_H

#include <pthread.h>

#include "pages.h"

enum {
    MK__SLABS_ROWS = 18, /* powers of two, from 32 bytes to 4 MB */
    MK__SLABS_COLUMNS = 16,
    MK__SLABS_BLOCK_MAX = 1 << 30,
};

struct mk__slab;
struct mk__block;

struct mk__slabs {
    struct mk__budget *budget;
    pthread_mutex_t lock; /* of what follows */
    struct mk__slab *first;
    uint64_t map_bytes;
    unsigned n_empty;               /* slabs without a used block, at most 1 */
    _Atomic uint64_t free_bytes;    /* of the blocks in bins; read without the lock */
    _Atomic uint64_t closing_bytes; /* of slabs that are emptied */
    uint32_t rows;                  /* a bit for each row with a block */
    uint16_t columns[MK__SLABS_ROWS];
    struct mk__block *bins[MK__SLABS_ROWS][MK__SLABS_COLUMNS];
};

void mk__slabs_init(struct mk__slabs *s, struct mk__budget *budget);
/* Unmaps all slabs, whatever is in them. */
void mk__slabs_release(struct mk__slabs *s);

/* Returns the bytes that a block with `bytes` bytes takes. */
size_t mk__slabs_block_bytes(size_t bytes);
/* Returns the bytes that this block takes. */
size_t mk__slabs_bytes_of(const void *p);

/*
 * Returns `bytes` bytes, at most MK__SLABS_BLOCK_MAX, that lie 8 bytes after a multiple of 16; the first `zeroed` of
 * them are 0. Returns NULL without a free block and without budget or memory for a slab. Any thread.
 */
void *mk__slabs_alloc(struct mk__slabs *s, size_t bytes, size_t zeroed);
void mk__slabs_free(struct mk__slabs *s, void *p);

/*
 * Chooses neighbouring blocks of one slab that together have room for `bytes` bytes, and of which those that are used
 * are allowed by may(). Calls hold() for each used block; up to `max` for which it returned true are stored in `held`.
 * Both are called under the lock. Returns their number.
 */
unsigned mk__slabs_window(struct mk__slabs *s, size_t bytes, bool (*may)(const void *p), bool (*hold)(void *p),
                          void **held, unsigned max);

/* Closes slabs of `bytes` bytes or more, if there are so many: their memory is not used again, but unmapped. */
void mk__slabs_close(struct mk__slabs *s, uint64_t bytes);
/* As mk__slabs_window(), for any used blocks of slabs that are closed. */
unsigned mk__slabs_closing(struct mk__slabs *s, bool (*may)(const void *p), bool (*hold)(void *p), void **held,
                           unsigned max);

#endif
