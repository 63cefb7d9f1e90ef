// SPDX-License-Identifier: Apache-2.0
/*
 * The jobs of a spool: write the tail to the file, read from it, close it.
 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ── the file ── */

/* Writes what is in the blocks to the offset `at`. Returns 0 or -errno. */
static int write_file(int fd, const struct mk__spool_block *first, uint64_t at)
{
    for (const struct mk__spool_block *block = first; block; block = block->next)
        for (uint32_t from = block->at; from < block->end;) {
            ssize_t n = pwrite(fd, block->bytes + from, block->end - from, (off_t)at);
            if (n < 0)
                return -errno;
            from += (uint32_t)n;
            at += (uint64_t)n;
        }
    return 0;
}

/* Fills the blocks with `n` bytes from the offset `at` on. Returns 0 or -errno: -EIO if the file is shorter. */
static int read_file(int fd, struct mk__spool_block *first, uint64_t at, size_t n)
{
    for (struct mk__spool_block *block = first; block && n; block = block->next)
        while (n && block->end < block->size) {
            size_t most = n < block->size - block->end ? n : block->size - block->end;
            ssize_t got = pread(fd, block->bytes + block->end, most, (off_t)at);
            if (got <= 0)
                return got < 0 ? -errno : -EIO;
            block->end += (uint32_t)got;
            at += (uint64_t)got;
            n -= (size_t)got;
        }
    return n ? -EIO : 0;
}

/*
 * Frees the space of what is between two offsets. Returns 0, or -errno: -EOPNOTSUPP if the file system cannot do that.
 */
static int punch_file(int fd, uint64_t from, uint64_t to)
{
    int result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
    return result < 0 ? -errno : 0;
}

/* ── jobs ── */

/* Returns 0 or -errno, which is final: not -EAGAIN, after which a reader would wait. */
static int submit_job(struct mk_spool *s, mk_job_fn work, mk_job_fn done)
{
    s->step.job.work = work;
    s->step.job.done = done;
    s->step.fd = s->fd;
    s->step.err = 0;
    int err = mk_job_submit(s->o.loop, &s->step.job);
    s->is_busy = err == 0;
    return err == -EAGAIN ? -ECANCELED : err;
}

/* Returns false if the spool was closed meanwhile: it ends now. */
static bool finish_job(struct mk_spool *s)
{
    s->is_busy = false;
    s->fd = s->step.fd < 0 ? -1 : s->step.fd;
    if (!s->is_closed)
        return true;
    mk__spool_jobs_close(s);
    return false;
}

/* ── to the file ── */

static void write_in_thread(struct mk_job *job)
{
    struct mk__spool_step *step = MK_CONTAINER_OF(job, struct mk__spool_step, job);
    if (step->fd < 0)
        step->fd = mk_spool_budget_make_file(step->budget);
    step->err = step->fd < 0 ? step->fd : write_file(step->fd, step->blocks.first, step->at);
}

/* A full disk. The bytes are still in memory, in their place. */
static void keep_blocks(struct mk_spool *s)
{
    mk_spool_budget_release(s->o.budget, MK_SPOOL_DISK, s->step.blocks.bytes);
    mk__spool_blocks_join(&s->step.blocks, &s->tail);
    s->tail = s->step.blocks;
    s->step.blocks = (struct mk__spool_blocks){0};
    s->is_disk_full = true;
    if (!s->o.disk_is_optional || s->o.is_kept)
        mk__spool_fail(s, s->step.err);
}

static void finish_write(struct mk_job *job)
{
    struct mk_spool *s = MK_CONTAINER_OF(job, struct mk_spool, step.job);
    struct mk__spool_blocks *blocks = &s->step.blocks;
    if (!finish_job(s))
        return;
    if (s->step.err < 0) {
        keep_blocks(s);
    } else {
        s->file_end += blocks->bytes;
        mk__spool_blocks_release(blocks, s->o.account);
    }
    mk__spool_shrink(s);
    mk__spool_update(s);
}

static bool needs_write(struct mk_spool *s)
{
    if (!s->tail.bytes || !s->o.file_max || s->is_disk_full)
        return false;
    if (s->has_ended) /* a kept body is read from one place */
        return s->o.is_kept && s->file_end;
    return (mk__spool_in_file(s) && s->tail.bytes >= MK__SPOOL_SPILL_MIN) || !mk__spool_fits(s, MK__SPOOL_WRITE_MEMORY);
}

/* Reserves space for the tail. Returns 0, MK_AGAIN (there is none until more was read) or -errno. */
static int reserve_space(struct mk_spool *s)
{
    struct mk_spool_budget *budget = s->o.budget;
    if (s->file_end - s->freed_to + s->tail.bytes > s->o.file_max)
        return s->o.is_kept ? -EFBIG : MK_AGAIN;
    s->has_file = s->has_file || mk_spool_budget_reserve(budget, MK_SPOOL_FILES, 1);
    if (s->has_file && mk_spool_budget_reserve(budget, MK_SPOOL_DISK, s->tail.bytes))
        return 0;
    return s->o.disk_is_optional && !s->o.is_kept ? MK_AGAIN : -EDQUOT;
}

static void start_write(struct mk_spool *s)
{
    struct mk__spool_step *step = &s->step;
    int err = reserve_space(s);
    if (err != 0) {
        s->err = err < 0 ? err : s->err;
        return;
    }
    step->budget = s->o.budget;
    step->at = s->file_end;
    mk__spool_blocks_join(&step->blocks, &s->tail);
    err = submit_job(s, write_in_thread, finish_write);
    if (err < 0) {
        keep_blocks(s);
        mk__spool_fail(s, err);
    }
}

/* ── from the file ── */

static void read_in_thread(struct mk_job *job)
{
    struct mk__spool_step *step = MK_CONTAINER_OF(job, struct mk__spool_step, job);
    step->err = read_file(step->fd, step->blocks.first, step->at, step->bytes);
    if (step->err == 0 && step->truncates)
        step->err = ftruncate(step->fd, 0) < 0 ? -errno : 0;
    else if (step->err == 0 && step->punch_from < step->punch_to)
        step->cannot_punch = punch_file(step->fd, step->punch_from, step->punch_to) < 0;
}

/* Gives space of the file back that a job has freed. */
static void release_space(struct mk_spool *s)
{
    const struct mk__spool_step *step = &s->step;
    uint64_t freed_to = step->truncates ? s->file_end : step->cannot_punch ? s->freed_to : step->punch_to;
    s->cannot_punch |= step->cannot_punch;
    mk_spool_budget_release(s->o.budget, MK_SPOOL_DISK, freed_to - s->freed_to);
    s->freed_to = freed_to;
    if (step->truncates)
        s->freed_to = s->read_at = s->file_end = 0;
}

static void finish_read(struct mk_job *job)
{
    struct mk_spool *s = MK_CONTAINER_OF(job, struct mk_spool, step.job);
    struct mk__spool_step *step = &s->step;
    if (!finish_job(s))
        return;
    if (step->is_dropped || step->err < 0) {
        mk__spool_blocks_release(&step->blocks, s->o.account);
        s->err = step->err < 0 ? step->err : s->err;
    } else {
        step->blocks.bytes = step->bytes;
        mk__spool_blocks_join(&s->head, &step->blocks);
        s->read_at += step->bytes;
        release_space(s);
    }
    mk__spool_shrink(s);
    mk__spool_update(s);
}

/*
 * Adds blocks as far as there is memory for them and the next write. For the first there is memory if nothing was
 * read ahead. Returns 0, MK_AGAIN (there is none until more was read) or -ENOMEM.
 */
static int add_blocks(struct mk_spool *s)
{
    struct mk__spool_step *step = &s->step;
    uint64_t in_file = mk__spool_in_file(s);
    size_t spare = s->has_ended ? 0 : MK__SPOOL_WRITE_MEMORY;
    size_t most = in_file < MK__SPOOL_READ_MAX ? (size_t)in_file : MK__SPOOL_READ_MAX;
    for (step->bytes = 0; step->bytes < most;) {
        size_t left = most - step->bytes;
        if ((step->bytes || s->head.first) && !mk__spool_fits(s, mk__spool_blocks_size(left) + spare))
            break;
        const struct mk__spool_block *block = mk__spool_blocks_add(&step->blocks, s->o.account, left);
        if (!block)
            return -ENOMEM;
        step->bytes += left < block->size ? left : block->size;
    }
    return step->bytes ? 0 : MK_AGAIN;
}

/* Decides what the job gives back: the whole file when it is read, or what is read of it in large pieces. */
static void plan_release(struct mk_spool *s)
{
    struct mk__spool_step *step = &s->step;
    uint64_t end = step->at + step->bytes, quarter = s->o.file_max / 4;
    uint64_t least = quarter < MK__SPOOL_PUNCH_MAX ? quarter : MK__SPOOL_PUNCH_MAX;
    step->truncates = !s->o.is_kept && end == s->file_end;
    step->cannot_punch = false;
    step->punch_from = step->punch_to = s->freed_to;
    uint64_t page = end & ~(uint64_t)(MK__SPOOL_PAGE_BYTES - 1);
    if (!s->o.is_kept && !s->cannot_punch && page > s->freed_to && page - s->freed_to >= least)
        step->punch_to = page;
}

static void start_read(struct mk_spool *s)
{
    struct mk__spool_step *step = &s->step;
    step->at = s->read_at;
    step->is_dropped = false;
    int err = add_blocks(s);
    if (err == MK_AGAIN)
        return;
    plan_release(s);
    err = err < 0 ? err : submit_job(s, read_in_thread, finish_read);
    if (err < 0) {
        mk__spool_blocks_release(&step->blocks, s->o.account);
        mk__spool_fail(s, err);
    }
}

void mk__spool_jobs_start(struct mk_spool *s)
{
    if (s->is_busy || s->err)
        return;
    if (mk__spool_may_read(s) && mk__spool_in_file(s) && s->head.bytes < MK__SPOOL_READ_AHEAD)
        start_read(s);
    if (!s->is_busy && !s->err && needs_write(s))
        start_write(s);
}

/* ── the end ── */

static void close_in_thread(struct mk_job *job)
{
    struct mk__spool_step *step = MK_CONTAINER_OF(job, struct mk__spool_step, job);
    close(step->fd);
}

static void finish_close(struct mk_job *job)
{
    mk__spool_free(MK_CONTAINER_OF(job, struct mk_spool, step.job));
}

/* To close a long file takes time: its pages are dropped. */
void mk__spool_jobs_close(struct mk_spool *s)
{
    if (s->fd >= 0 && submit_job(s, close_in_thread, finish_close) == 0)
        return;
    if (s->fd >= 0)
        close(s->fd);
    mk__spool_free(s);
}
