// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of <monkey/kit/spool.h>: what is in memory, and what is ready.
 */
#include "spool.h"

#include <assert.h>
#include <errno.h>

/* ── blocks ── */

static size_t min_bytes(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t mk__spool_blocks_size(size_t n)
{
    size_t size = sizeof(struct mk__spool_block) + min_bytes(n, MK__SPOOL_BLOCK_BYTES);
    return min_bytes((size + MK__SPOOL_BLOCK_STEP - 1) & ~(size_t)(MK__SPOOL_BLOCK_STEP - 1), MK__SPOOL_BLOCK_BYTES);
}

static size_t get_free(const struct mk__spool_blocks *q)
{
    return q->last ? q->last->size - q->last->end : 0;
}

/* Returns how much memory an append of `n` bytes allocates. */
static size_t get_cost(const struct mk__spool_blocks *q, size_t n)
{
    size_t cost = 0;
    n -= min_bytes(n, get_free(q));
    while (n) {
        size_t size = mk__spool_blocks_size(n);
        n -= min_bytes(n, size - sizeof(struct mk__spool_block));
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
        n -= min_bytes(n, block->size);
    }
    return 0;
}

/* Copies bytes to the end. Returns 0, or -ENOMEM: nothing has changed. */
static int append_bytes(struct mk__spool_blocks *q, struct mk_account *account, struct mk_str bytes)
{
    struct mk__spool_blocks more = {0};
    struct mk__spool_block *block = q->last;
    int err = add_blocks(&more, account, bytes.len - min_bytes(bytes.len, get_free(q)));
    if (err < 0)
        return err;
    mk__spool_blocks_join(q, &more);
    q->bytes += bytes.len;
    for (block = block ? block : q->first; bytes.len; block = block->next) {
        size_t n = min_bytes(bytes.len, block->size - block->end);
        memcpy(block->bytes + block->end, bytes.p, n);
        block->end += (uint32_t)n;
        bytes = mk_str_after(bytes, n);
    }
    return 0;
}

/* Removes the first block and frees it. */
static void drop_first(struct mk__spool_blocks *q, struct mk_account *account)
{
    struct mk__spool_block *block = pop_block(q);
    mk_account_free(account, block, sizeof(*block) + block->size);
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

/* Makes all bytes of the blocks untaken again. */
static void rewind_blocks(struct mk__spool_blocks *q)
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
        drop_first(q, account);
    q->bytes = 0; /* blocks that a job fills are counted later */
}

/* ── spools ── */

/* ── memory ── */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t get_memory(const struct mk_spool *s)
{
    return s->head.memory + s->tail.memory + s->taken.memory + s->step.blocks.memory;
}

/* Returns the memory that a read from the file needs at least. Writes leave it, so that each file can be read. */
static size_t get_read_memory(const struct mk_spool *s)
{
    return s->o.file_max ? MK__SPOOL_BLOCK_BYTES : 0;
}

bool mk__spool_fits(struct mk_spool *s, size_t n)
{
    size_t need = get_memory(s) + n + get_read_memory(s);
    if (need <= s->reserved)
        return true;
    if (need > s->o.memory_max || !mk_spool_budget_reserve(s->o.budget, MK_SPOOL_MEMORY, need - s->reserved))
        return false;
    s->reserved = need;
    return true;
}

void mk__spool_shrink(struct mk_spool *s)
{
    size_t need = get_memory(s) + MK__SPOOL_WRITE_MEMORY + get_read_memory(s);
    size_t least = min_size(MK_SPOOL_MEMORY_MIN, s->o.memory_max);
    need = need < least ? least : need;
    if (need >= s->reserved)
        return;
    mk_spool_budget_release(s->o.budget, MK_SPOOL_MEMORY, s->reserved - need);
    s->reserved = need;
}

/* ── what is ready ── */

/* Returns whether the tail comes after the head. */
static bool is_tail_next(const struct mk_spool *s)
{
    return !mk__spool_in_file(s) && !mk__spool_is_writing(s);
}

static bool is_at_end(const struct mk_spool *s)
{
    return s->has_ended && s->taken_bytes == s->written_bytes;
}

static bool is_readable(const struct mk_spool *s)
{
    if (s->err)
        return true;
    return mk__spool_may_read(s) && (s->head.bytes || (is_tail_next(s) && s->tail.bytes) || is_at_end(s));
}

static bool is_writable(struct mk_spool *s)
{
    return s->err || (s->o.is_kept && !s->o.file_max) || mk__spool_fits(s, MK__SPOOL_WRITE_MEMORY);
}

void mk__spool_update(struct mk_spool *s)
{
    mk__spool_jobs_start(s);
    if ((s->reader_waits && is_readable(s)) || (s->writer_waits && is_writable(s)))
        mk_task_schedule(s->o.loop, &s->notify);
}

/* The callback may close the spool. */
static void notify_owner(struct mk_task *task)
{
    struct mk_spool *s = MK_CONTAINER_OF(task, struct mk_spool, notify);
    unsigned what = 0;
    if (s->reader_waits && is_readable(s))
        what |= MK_SPOOL_READABLE;
    if (s->writer_waits && is_writable(s))
        what |= MK_SPOOL_WRITABLE;
    s->reader_waits = s->reader_waits && !(what & MK_SPOOL_READABLE);
    s->writer_waits = s->writer_waits && !(what & MK_SPOOL_WRITABLE);
    if (what)
        s->o.ready(s, what, s->o.ctx);
}

/* ── life ── */

int mk_spool_open(const struct mk_spool_options *options, struct mk_spool **ret)
{
    size_t least = min_size(MK_SPOOL_MEMORY_MIN, options->memory_max);
    assert(least == MK_SPOOL_MEMORY_MIN || (options->is_kept && !options->file_max));
    if (!mk_spool_budget_reserve(options->budget, MK_SPOOL_MEMORY, least))
        return -EDQUOT;
    struct mk_spool *s = mk_account_alloc(options->account, sizeof(*s));
    if (!s) {
        mk_spool_budget_release(options->budget, MK_SPOOL_MEMORY, least);
        return -ENOMEM;
    }
    *s = (struct mk_spool){.o = *options, .reserved = least, .fd = -1};
    mk_task_init(&s->notify, notify_owner);
    *ret = s;
    return 0;
}

void mk__spool_free(struct mk_spool *s)
{
    struct mk_spool_options o = s->o;
    mk_spool_budget_release(o.budget, MK_SPOOL_DISK, s->file_end - s->freed_to + s->step.blocks.bytes);
    mk_spool_budget_release(o.budget, MK_SPOOL_FILES, s->has_file);
    mk__spool_blocks_release(&s->step.blocks, o.account);
    mk_spool_budget_release(o.budget, MK_SPOOL_MEMORY, s->reserved);
    mk_account_free(o.account, s, sizeof(*s));
    if (o.freed)
        o.freed(o.ctx);
}

void mk_spool_close(struct mk_spool *s)
{
    mk_task_cancel(&s->notify);
    mk__spool_blocks_release(&s->head, s->o.account);
    mk__spool_blocks_release(&s->tail, s->o.account);
    mk__spool_blocks_release(&s->taken, s->o.account);
    s->is_closed = true;
    if (!s->is_busy)
        mk__spool_jobs_close(s);
}

/* ── writing ── */

int mk_spool_room(struct mk_spool *s)
{
    mk__spool_update(s);
    if (s->err || is_writable(s))
        return s->err;
    s->writer_waits = true;
    return MK_AGAIN;
}

int mk_spool_write(struct mk_spool *s, struct mk_str bytes)
{
    assert(bytes.len <= MK_SPOOL_WRITE_MAX && !s->has_ended);
    size_t cost = get_cost(&s->tail, bytes.len);
    if (s->err)
        return s->err;
    if (!mk__spool_fits(s, cost)) {
        if (!s->o.is_kept || s->o.file_max)
            return -ENOBUFS;
        return mk__spool_fail(s, get_memory(s) + cost > s->o.memory_max ? -EFBIG : -EDQUOT);
    }
    if (append_bytes(&s->tail, s->o.account, bytes) < 0)
        return mk__spool_fail(s, -ENOMEM);
    s->written_bytes += bytes.len;
    return mk_spool_room(s);
}

int mk_spool_add(struct mk_spool *s, struct mk_str piece, uint64_t bytes_max)
{
    int err = 0;
    assert(s->written_bytes <= bytes_max);
    if (piece.len > bytes_max - s->written_bytes)
        return -EFBIG;
    while (piece.len && err >= 0) {
        size_t n = piece.len < MK_SPOOL_WRITE_MAX ? piece.len : MK_SPOOL_WRITE_MAX;
        err = mk_spool_write(s, mk_str(piece.p, n));
        piece = mk_str_after(piece, n);
    }
    return err;
}

int mk_spool_end(struct mk_spool *s)
{
    s->has_ended = true;
    s->writer_waits = false;
    mk__spool_update(s);
    return s->err;
}

/* ── reading ── */

ssize_t mk_spool_peek(struct mk_spool *s, struct mk_str *ret)
{
    *ret = MK_STR_NONE;
    if (s->err)
        return s->err;
    if (!is_readable(s)) {
        s->reader_waits = true;
        mk__spool_update(s);
        return s->err ? s->err : -EAGAIN;
    }
    if (!s->head.bytes)
        mk__spool_blocks_join(&s->head, &s->tail);
    const struct mk__spool_block *block = s->head.first;
    if (block)
        *ret = mk_str(block->bytes + block->at, block->end - block->at);
    return (ssize_t)ret->len;
}

void mk_spool_skip(struct mk_spool *s, size_t n)
{
    if (!n)
        return;
    assert(s->head.first && n <= s->head.first->end - s->head.first->at);
    s->head.first->at += (uint32_t)n;
    s->head.bytes -= n;
    s->taken_bytes += n;
    if (s->head.first->at < s->head.first->end)
        return;
    if (s->o.is_kept && !s->file_end)
        push_block(&s->taken, pop_block(&s->head)); /* a kept body may be read again */
    else
        drop_first(&s->head, s->o.account);
    mk__spool_shrink(s);
    mk__spool_update(s);
}

ssize_t mk_spool_read(struct mk_spool *s, char *to, size_t size)
{
    struct mk_str next;
    size_t got = 0;
    while (got < size && (!got || (!s->err && is_readable(s)))) {
        ssize_t n = mk_spool_peek(s, &next);
        if (n <= 0)
            return got ? (ssize_t)got : n;
        size_t part = min_size((size_t)n, size - got);
        memcpy(to + got, next.p, part);
        mk_spool_skip(s, part);
        got += part;
    }
    return (ssize_t)got;
}

int mk_spool_rewind(struct mk_spool *s)
{
    assert(s->o.is_kept && s->has_ended);
    if (s->err)
        return s->err;
    if (s->file_end)
        mk__spool_blocks_release(&s->head, s->o.account);
    mk__spool_blocks_join(&s->taken, &s->head);
    rewind_blocks(&s->taken);
    mk__spool_blocks_join(&s->head, &s->taken);
    s->step.is_dropped = true; /* a read that is under way */
    s->read_at = 0;
    s->taken_bytes = 0;
    mk__spool_update(s);
    return 0;
}

uint64_t mk_spool_length(const struct mk_spool *s)
{
    return s->written_bytes;
}

uint64_t mk_spool_left(const struct mk_spool *s)
{
    return s->written_bytes - s->taken_bytes;
}
