// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of blocks.h.
 */
#include "blocks.h"

#include <assert.h>
#include <errno.h>

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t mk__spool_blocks_size(size_t n)
{
    size_t size = sizeof(struct mk__spool_block) + min_size(n, MK__SPOOL_BLOCK_BYTES);
    return min_size((size + MK__SPOOL_BLOCK_STEP - 1) & ~(size_t)(MK__SPOOL_BLOCK_STEP - 1), MK__SPOOL_BLOCK_BYTES);
}

static size_t get_free(const struct mk__spool_blocks *q)
{
    return q->last ? q->last->size - q->last->end : 0;
}

size_t mk__spool_blocks_cost(const struct mk__spool_blocks *q, size_t n)
{
    size_t cost = 0;
    n -= min_size(n, get_free(q));
    while (n) {
        size_t size = mk__spool_blocks_size(n);
        n -= min_size(n, size - sizeof(struct mk__spool_block));
        cost += size;
    }
    return cost;
}

static void push_block(struct mk__spool_blocks *q, struct mk__spool_block *block)
{
    block->next = NULL;
    *(q->last ? &q->last->next : &q->first) = block;
    q->last = block;
    q->bytes += block->end - block->at;
    q->memory += sizeof(*block) + block->size;
}

static struct mk__spool_block *pop_block(struct mk__spool_blocks *q)
{
    struct mk__spool_block *block = q->first;
    q->first = block->next;
    if (!q->first)
        q->last = NULL;
    q->bytes -= block->end - block->at;
    q->memory -= sizeof(*block) + block->size;
    return block;
}

struct mk__spool_block *mk__spool_blocks_add(struct mk__spool_blocks *q, struct mk_account *account, size_t n)
{
    size_t size = mk__spool_blocks_size(n);
    struct mk__spool_block *block = mk_account_alloc(account, size);
    if (!block)
        return NULL;
    *block = (struct mk__spool_block){.size = (uint32_t)(size - sizeof(*block))};
    push_block(q, block);
    return block;
}

/* Returns 0 or -ENOMEM. */
static int add_blocks(struct mk__spool_blocks *q, struct mk_account *account, size_t n)
{
    while (n) {
        const struct mk__spool_block *block = mk__spool_blocks_add(q, account, n);
        if (!block) {
            mk__spool_blocks_release(q, account);
            return -ENOMEM;
        }
        n -= min_size(n, block->size);
    }
    return 0;
}

int mk__spool_blocks_append(struct mk__spool_blocks *q, struct mk_account *account, struct mk_str bytes)
{
    struct mk__spool_blocks more = {0};
    struct mk__spool_block *block = q->last;
    int err = add_blocks(&more, account, bytes.len - min_size(bytes.len, get_free(q)));
    if (err < 0)
        return err;
    mk__spool_blocks_join(q, &more);
    q->bytes += bytes.len;
    for (block = block ? block : q->first; bytes.len; block = block->next) {
        size_t n = min_size(bytes.len, block->size - block->end);
        memcpy(block->bytes + block->end, bytes.p, n);
        block->end += (uint32_t)n;
        bytes = mk_str_after(bytes, n);
    }
    return 0;
}

void mk__spool_blocks_take(struct mk__spool_blocks *q, size_t n)
{
    assert(q->first && n <= q->first->end - q->first->at);
    q->first->at += (uint32_t)n;
    q->bytes -= n;
}

void mk__spool_blocks_drop(struct mk__spool_blocks *q, struct mk_account *account)
{
    struct mk__spool_block *block = pop_block(q);
    mk_account_free(account, block, sizeof(*block) + block->size);
}

void mk__spool_blocks_shift(struct mk__spool_blocks *q, struct mk__spool_blocks *to)
{
    push_block(to, pop_block(q));
}

void mk__spool_blocks_join(struct mk__spool_blocks *to, struct mk__spool_blocks *from)
{
    if (!from->first)
        return;
    *(to->last ? &to->last->next : &to->first) = from->first;
    to->last = from->last;
    to->bytes += from->bytes;
    to->memory += from->memory;
    *from = (struct mk__spool_blocks){0};
}

void mk__spool_blocks_rewind(struct mk__spool_blocks *q)
{
    q->bytes = 0;
    for (struct mk__spool_block *block = q->first; block; block = block->next) {
        block->at = 0;
        q->bytes += block->end;
    }
}

void mk__spool_blocks_release(struct mk__spool_blocks *q, struct mk_account *account)
{
    while (q->first)
        mk__spool_blocks_drop(q, account);
    q->bytes = 0; /* blocks that a job fills are counted later */
}
