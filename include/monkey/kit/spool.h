// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies that wait for a slow receiver, in memory up to a size and then in a file without a name. Disk threads write
 * and read the file (jobs of <monkey/loop.h>), never the thread of the loop.
 *
 *     mk_spool_write() ─► tail ──job──► file ──job──► head ─► mk_spool_peek(), mk_spool_read()
 *                          └───── as long as the file is empty ──────┘
 *
 * There are two uses:
 *
 *   - A FIFO between a fast producer and a slow consumer, such as the response of a backend: keeps only what was
 *     written and not read. Memory is freed and space of the file is given back as it is read. The producer is asked to
 *     wait when the limits are reached.
 *   - With `is_kept` a body that is written as a whole and then read, as often as needed: mk_spool_end() ends the first
 *     part, and mk_spool_rewind() begins again, such as for a retry. A body above the limits is an error.
 *
 * All spools of a process share a budget, which any thread may use. A spool belongs to the thread of its loop. Errors
 * are final: once a function has returned one, or `ready` has been called for one, the functions of this spool return
 * it again, and the spool can only be closed. No function waits.
 *
 * In the kit: plugins link -lmonkey-kit. The budget is the server's.
 */
#ifndef MONKEY_SPOOL_H
#define MONKEY_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/arena.h"
#include "../base/str.h"
#include "../loop.h"

MK_C_BEGIN

enum {
    MK_SPOOL_WRITE_MAX = 64 * 1024,   /* bytes of one call of mk_spool_write() */
    MK_SPOOL_MEMORY_MIN = 128 * 1024, /* the smallest `memory_max` of a spool that may wait or have a file */
};

/* ── the budget of the process ── */

struct mk_spool_budget;

/* Limits of all spools of a budget together. 0: none is allowed. */
struct mk_spool_limits {
    uint64_t memory_max; /* bytes that spools have reserved, see mk_spool_open() */
    uint64_t disk_max;   /* bytes in files */
    uint64_t files_max;  /* files, which are descriptors of the process */
};

/* What the spools of a budget use now. */
struct mk_spool_counts {
    uint64_t memory_bytes, disk_bytes, files;
};

/*
 * Makes a budget, which must live longer than its spools; that of [SPOOL] is mk_generation_spools(). `folder` is where
 * files are made, NULL: none are. It is opened once, so that later changes of its path do not matter; a file is made in
 * it and removed, as a check. Use a folder that only the server may write to. `ret` gets the budget.
 *
 * Returns 0, -ENOMEM or the -errno of open(2) for the folder or the file: -ENOENT, -ENOTDIR, -EACCES, -EROFS, -ENOSPC
 * ... May block: not for workers.
 */
MK_API int mk_spool_budget_new(const char *folder, const struct mk_spool_limits *limits, struct mk_spool_budget **ret);
/*
 * Opens the folder of a budget that has one anew: another one may be there by now. Returns as mk_spool_budget_new(),
 * and after an error nothing has changed. May block.
 */
MK_API int mk_spool_budget_reopen(struct mk_spool_budget *budget, const char *folder);
/* Frees the budget, which no spool uses any more, also none whose `freed` has not been called. NULL is allowed. */
MK_API void mk_spool_budget_free(struct mk_spool_budget *budget);
/* Changes the limits, such as after a reload. Spools that use more keep what they have. Any thread. */
MK_API void mk_spool_budget_set_limits(struct mk_spool_budget *budget, const struct mk_spool_limits *limits);
/* Returns what is in use. Any thread. */
MK_API struct mk_spool_counts mk_spool_budget_counts(const struct mk_spool_budget *budget);

/*
 * For the library, of which each plugin has a copy; the server has the budget. They reserve `n` more of what is limited
 * and return whether the limit allows it, release it, and make a file without a name in the folder, which returns a
 * descriptor or -errno; -ENOENT without a folder. Any thread; the last one may block.
 */
enum mk_spool_kind { MK_SPOOL_MEMORY, MK_SPOOL_DISK, MK_SPOOL_FILES, MK_SPOOL_KINDS };
MK_API bool mk_spool_budget_reserve(struct mk_spool_budget *budget, enum mk_spool_kind kind, uint64_t n);
MK_API void mk_spool_budget_release(struct mk_spool_budget *budget, enum mk_spool_kind kind, uint64_t n);
MK_API int mk_spool_budget_make_file(const struct mk_spool_budget *budget);

/* ── spools ── */

struct mk_spool;

/* For `ready`: what can be tried again. */
enum mk_spool_ready { MK_SPOOL_READABLE = 1, MK_SPOOL_WRITABLE = 2 };

struct mk_spool_options {
    struct mk_spool_budget *budget;
    struct mk_loop *loop;
    struct mk_account *account; /* of the memory; it outlives all jobs: mk_request_account(). NULL: none */
    size_t memory_max;          /* bytes in memory, headers of blocks included */
    uint64_t file_max;          /* bytes in the file; 0: no file */
    bool is_kept;               /* see above */
    /*
     * For a FIFO: a disk that is full, and a budget without room for the file, are no errors. The producer waits for
     * the consumer instead.
     */
    bool disk_is_optional;
    /*
     * Is called once after a function has returned MK_AGAIN (MK_SPOOL_WRITABLE) or -EAGAIN (MK_SPOOL_READABLE), when a
     * new call succeeds or returns an error. In the loop, never within another function of the spool; it may close it.
     */
    void (*ready)(struct mk_spool *spool, unsigned what, void *ctx);
    /*
     * Is called once in the loop when a spool that was closed uses nothing any more, possibly within mk_spool_close().
     * A plugin holds its worker (mk_worker_get()) until then, as a job may run in its code. NULL: none.
     */
    void (*freed)(void *ctx);
    void *ctx;
};

/*
 * Opens an empty spool, and reserves memory of the budget: MK_SPOOL_MEMORY_MIN or `memory_max`, whichever is less. It
 * is not allocated before it is needed. More, up to `memory_max`, is reserved as long as the budget has it.
 * `memory_max` is at least MK_SPOOL_MEMORY_MIN, which is asserted; only a kept body without a file may have less:
 * n + n / 32 + 1024 for a body of n bytes that is written in pieces of 1 KB or more.
 *
 * Returns 0, -EDQUOT (the budget is used up) or -ENOMEM.
 */
MK_API int mk_spool_open(const struct mk_spool_options *options, struct mk_spool **ret);
/*
 * Closes the spool and drops what it holds. `ready` is not called any more. A job that is under way ends later, and the
 * file is closed by a job: `freed` is called then.
 */
MK_API void mk_spool_close(struct mk_spool *s);

/*
 * Returns 0 (MK_SPOOL_WRITE_MAX bytes can be written), MK_AGAIN (`ready` follows) or an -errno as mk_spool_write().
 */
MK_API int mk_spool_room(struct mk_spool *s);
/*
 * Copies at most MK_SPOOL_WRITE_MAX bytes into the spool, not after mk_spool_end(); both are asserted.
 *
 * Returns 0, MK_AGAIN (the bytes were taken, but write again only after `ready`: the limits are reached or a job is
 * under way), or
 *   -ENOBUFS  no room: MK_AGAIN was ignored; nothing was taken, and this error is not final
 *   -EFBIG    a kept body is longer than the limits of the spool
 *   -EDQUOT   the budget has no room for the file, or no folder
 *   -ENOSPC   the disk is full, or another -errno of open(2) or pwrite(2)
 *   -ENOMEM, -ECANCELED  no memory; no disk thread, as the loop ends
 */
MK_API int mk_spool_write(struct mk_spool *s, struct mk_str bytes);
/*
 * Writes a piece of any length of a body that may have `bytes_max` bytes. Returns as mk_spool_write(), and -EFBIG if
 * the body became longer: then nothing of the piece is taken. After another error a part of it may have been. For kept
 * bodies, or where there is room for the whole piece.
 */
MK_API int mk_spool_add(struct mk_spool *s, struct mk_str piece, uint64_t bytes_max);
/* Says that all bytes are written. Returns 0 or an -errno as mk_spool_write(). A second call does nothing. */
MK_API int mk_spool_end(struct mk_spool *s);

/*
 * Gives the next bytes without a copy. They are valid until the next call of a function of the spool, and stay the next
 * bytes until mk_spool_skip().
 *
 * Returns their number, 0 (the end, `ret` is empty), -EAGAIN (`ready` follows: nothing is written, or a job is under
 * way; a kept body is not given before mk_spool_end()), an -errno as mk_spool_write(), or -EIO and others of pread(2).
 */
MK_API ssize_t mk_spool_peek(struct mk_spool *s, struct mk_str *ret);
/* Takes `n` bytes, at most what the last mk_spool_peek() has returned, which is asserted. */
MK_API void mk_spool_skip(struct mk_spool *s, size_t n);
/* Copies the next bytes, at most `size`, and takes them. Returns their number, 0 or an -errno as mk_spool_peek(). */
MK_API ssize_t mk_spool_read(struct mk_spool *s, char *to, size_t size);
/* Reads a kept body again from its first byte, after mk_spool_end(), which is asserted. Returns 0 or -errno. */
MK_API int mk_spool_rewind(struct mk_spool *s);

/* Return the bytes written so far, after mk_spool_end() the length of the body; and those of them not yet taken. */
MK_API uint64_t mk_spool_length(const struct mk_spool *s);
MK_API uint64_t mk_spool_left(const struct mk_spool *s);

MK_C_END

#endif
