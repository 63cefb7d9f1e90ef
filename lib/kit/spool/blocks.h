// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of a spool in memory: a queue of blocks, which are no larger than what they get needs.
 */
#ifndef MK_SPOOL_BLOCKS_H
#define MK_SPOOL_BLOCKS_H

#include <monkey/base/arena.h>

enum {
    MK__SPOOL_BLOCK_BYTES = 16 * 1024, /* the largest, with its head */
    MK__SPOOL_BLOCK_STEP = 1024,       /* sizes are multiples of it */
};

struct mk__spool_block {
    struct mk__spool_block *next;
    uint32_t size;    /* of `bytes` */
    uint32_t at, end; /* what is in it and not taken */
    char bytes[];
};

/* Zeros: empty. */
struct mk__spool_blocks {
    struct mk__spool_block *first, *last;
    size_t bytes;  /* that are not taken */
    size_t memory; /* of the blocks */
};

/* Returns how much memory an append of `n` bytes allocates. */
size_t mk__spool_blocks_cost(const struct mk__spool_blocks *q, size_t n);
/* Copies bytes to the end. Returns 0, or -ENOMEM: nothing has changed. */
int mk__spool_blocks_append(struct mk__spool_blocks *q, struct mk_account *account, struct mk_str bytes);
/* Adds an empty block for up to `n` bytes. Returns NULL without memory. */
struct mk__spool_block *mk__spool_blocks_add(struct mk__spool_blocks *q, struct mk_account *account, size_t n);
/* Returns the memory of a block for up to `n` bytes. */
size_t mk__spool_blocks_size(size_t n);
/* Takes `n` bytes of the first block, but does not remove it. */
void mk__spool_blocks_take(struct mk__spool_blocks *q, size_t n);
/* Removes the first block and frees it. */
void mk__spool_blocks_drop(struct mk__spool_blocks *q, struct mk_account *account);
/* Moves the first block to the end of `to`. */
void mk__spool_blocks_shift(struct mk__spool_blocks *q, struct mk__spool_blocks *to);
/* Moves all blocks of `from` to the end of `to`. */
void mk__spool_blocks_join(struct mk__spool_blocks *to, struct mk__spool_blocks *from);
/* Makes all bytes of the blocks untaken again. */
void mk__spool_blocks_rewind(struct mk__spool_blocks *q);
/* Frees all blocks. */
void mk__spool_blocks_release(struct mk__spool_blocks *q, struct mk_account *account);

#endif
