// SPDX-License-Identifier: Apache-2.0
#ifndef MK_SPOOL_SPOOL_H
#define MK_SPOOL_SPOOL_H

#include <monkey/base/arena.h>
#include <monkey/kit/spool.h>

/* ── bytes of a spool in memory: a queue of blocks, which are no larger than what they get needs ── */

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

/* Adds an empty block for up to `n` bytes. Returns NULL without memory. */
struct mk__spool_block *mk__spool_blocks_add(struct mk__spool_blocks *q, struct mk_account *account, size_t n);
/* Returns the memory of a block for up to `n` bytes. */
size_t mk__spool_blocks_size(size_t n);
/* Moves all blocks of `from` to the end of `to`. */
void mk__spool_blocks_join(struct mk__spool_blocks *to, struct mk__spool_blocks *from);
/* Frees all blocks. */
void mk__spool_blocks_release(struct mk__spool_blocks *q, struct mk_account *account);

/*
 * What the files of the spool share:
 *
 *     blocks ◄─ file ◄─ spool (memory, what comes next) ◄► jobs (the file)
 *
 * One job at a time is under way. It sees only its own struct and the blocks in it, which the thread of the loop does
 * not touch meanwhile. Offsets in the file grow until all bytes in it were read, then begin at 0 again:
 *
 *     │ given back │ read, not yet given back │ to be read │ being written
 *     0        freed_to                    read_at     file_end
 */
enum {
    MK__SPOOL_WRITE_MEMORY = MK_SPOOL_WRITE_MAX + MK__SPOOL_BLOCK_STEP, /* what a write allocates at most */
    MK__SPOOL_READ_AHEAD = 32 * 1024,  /* a job reads if less than this was read ahead */
    MK__SPOOL_READ_MAX = 64 * 1024,    /* by one job */
    MK__SPOOL_SPILL_MIN = 32 * 1024,   /* a job writes if the tail is as long, and the file is not empty */
    MK__SPOOL_PUNCH_MAX = 1024 * 1024, /* read bytes that the file keeps until their space is given back */
    MK__SPOOL_PAGE_BYTES = 4096,
};

/* A job, for the disk thread. */
struct mk__spool_step {
    struct mk_job job;
    struct mk__spool_blocks blocks; /* to write, or to fill */
    const struct mk_spool_budget *budget;
    int fd;      /* -1: a file is made */
    uint64_t at; /* offset */
    size_t bytes;
    uint64_t punch_from, punch_to; /* equal: nothing */
    bool truncates;                /* all bytes in the file were read */
    bool is_dropped;               /* what was read is not wanted any more; for the loop only */
    bool cannot_punch;
    int err;
};

struct mk_spool {
    struct mk_spool_options o;
    struct mk__spool_blocks head, tail;
    struct mk__spool_blocks taken; /* of a kept body in memory */
    uint64_t written_bytes, taken_bytes;
    size_t reserved; /* of the budget's memory */
    int fd;          /* -1: no file yet */
    uint64_t freed_to, read_at, file_end;
    bool has_file; /* is counted in the budget's files */
    bool has_ended, is_closed;
    bool is_disk_full, cannot_punch;
    bool reader_waits, writer_waits;
    bool is_busy; /* `step` is under way */
    struct mk__spool_step step;
    int err;
    struct mk_task notify;
};

/* spool.c */
/* Returns whether `n` more bytes of memory can be had, after what a read from the file needs; reserves them. */
bool mk__spool_fits(struct mk_spool *s, size_t n);
/* Gives reserved memory back that is not needed now. */
void mk__spool_shrink(struct mk_spool *s);
/* Starts the next job if there is one to do, and has `ready` called at the end of the turn if that is due. */
void mk__spool_update(struct mk_spool *s);
/* Frees a closed spool. */
void mk__spool_free(struct mk_spool *s);
static inline int mk__spool_fail(struct mk_spool *s, int err)
{
    return s->err = err;
}
static inline uint64_t mk__spool_in_file(const struct mk_spool *s)
{
    return s->file_end - s->read_at;
}
/* Returns whether a job writes bytes, which are not in the file yet. */
static inline bool mk__spool_is_writing(const struct mk_spool *s)
{
    return s->step.blocks.bytes > 0;
}

/* Returns whether bytes may be given out: a kept body is read from one place, when it is complete. */
static inline bool mk__spool_may_read(const struct mk_spool *s)
{
    return !s->o.is_kept || (s->has_ended && !mk__spool_is_writing(s) && (!s->file_end || !s->tail.bytes));
}

/* jobs.c: start a job if one is needed now. */
void mk__spool_jobs_start(struct mk_spool *s);
/* Closes the file, and frees the spool. No job is under way. */
void mk__spool_jobs_close(struct mk_spool *s);

#endif
