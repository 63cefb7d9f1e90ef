// SPDX-License-Identifier: Apache-2.0
/*
 * A sequence of operations on a spool: two bytes each, the operation and a number. Each byte that is written is known
 * by its offset, so what is read must be the next ones. Jobs run, and calls for the file fail, when the input says so.
 * The file is in memory. What waits must be called, limits hold, and in the end nothing is left.
 */
#include <monkey/kit/spool.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "tests/unit/kit/spool/pattern.h"

enum { KB = 1024 };

static struct fixture {
    struct mk_loop loop;
    struct mk_account account;
    struct mk_spool_options options;
    struct mk_spool *spool;
    struct mk_job *job;
    bool has_worked;   /* `work` of the job was called, `done` was not */
    bool refuses_jobs; /* the next one */
    unsigned fails_in; /* so many calls for the file succeed before one fails; 0: all succeed */
    bool writes_short; /* the next write is not complete */
    bool read_waits, write_waits, has_ended;
    uint64_t written, taken;
    int err;
    unsigned freed;
} w;

static void require(bool right)
{
    if (!right)
        abort();
}

/* ── calls of the C library, in their place ── */

static bool is_failing(void)
{
    if (!w.fails_in || --w.fails_in)
        return false;
    errno = ENOSPC;
    return true;
}

int openat(int folder, const char *path, int flags, ...)
{
    if ((flags & O_TMPFILE) != O_TMPFILE) {
        va_list rest;
        va_start(rest, flags);
        int fd = (int)syscall(SYS_openat, folder, path, flags, va_arg(rest, int));
        va_end(rest);
        return fd;
    }
    return is_failing() ? -1 : memfd_create("spool", MFD_CLOEXEC);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    size = w.writes_short && size > 1 ? size / 2 : size;
    w.writes_short = false;
    return is_failing() ? -1 : syscall(SYS_pwrite64, fd, from, size, at);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
    return is_failing() ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, size);
}

/* ── jobs ── */

int mk_job_submit(struct mk_loop *loop, struct mk_job *job)
{
    require(loop == &w.loop && !w.job);
    if (w.refuses_jobs) {
        w.refuses_jobs = false;
        return -EAGAIN;
    }
    w.job = job;
    w.has_worked = false;
    return 0;
}

static void work(void)
{
    if (w.job && !w.has_worked)
        w.job->work(w.job);
    w.has_worked = w.job;
}

static void finish(void)
{
    struct mk_job *job = w.job;
    if (!job)
        return;
    work();
    w.job = NULL;
    job->done(job);
}

static void ignore_task(struct mk_task *task)
{
    (void)task;
}

static void turn(void)
{
    struct mk_task task; /* so that the turn does not wait */
    mk_task_init(&task, ignore_task);
    mk_task_schedule(&w.loop, &task);
    require(mk__loop_turn(&w.loop) == 0);
}

static void finish_all(void)
{
    while (w.job)
        finish();
    turn();
}

/* ── calls ── */

static void note_ready(struct mk_spool *spool, unsigned what, void *ctx)
{
    require(spool == w.spool && ctx == &w && what);
    require(!(what & MK_SPOOL_READABLE) || w.read_waits);
    require(!(what & MK_SPOOL_WRITABLE) || w.write_waits);
    w.read_waits &= !(what & MK_SPOOL_READABLE);
    w.write_waits &= !(what & MK_SPOOL_WRITABLE);
}

static void note_freed(void *ctx)
{
    require(ctx == &w);
    w.freed++;
}

/* An error is final, and is one that can be. */
static void check_error(ssize_t result)
{
    require(!w.err || result == w.err);
    if (result >= 0)
        return;
    require(result == -ENOSPC || result == -EFBIG || result == -EDQUOT || result == -ECANCELED);
    w.err = (int)result;
}

static void check_bytes(struct mk_str bytes)
{
    require(is_pattern(bytes.p, bytes.len, w.taken));
    w.taken += bytes.len;
    require(w.taken <= w.written);
}

static void write_some(size_t n)
{
    static char bytes[MK_SPOOL_WRITE_MAX];
    if (w.has_ended)
        return;
    fill_pattern(bytes, n, w.written);
    int room = mk_spool_room(w.spool);
    check_error(room);
    w.write_waits |= room == MK_AGAIN;
    int result = mk_spool_write(w.spool, mk_str(bytes, n));
    require(room != 0 || result != -ENOBUFS);
    if (result == -ENOBUFS)
        return;
    check_error(result);
    w.written += result < 0 ? 0 : n;
    w.write_waits |= result == MK_AGAIN;
}

static ssize_t note_read(ssize_t n)
{
    if (n == -EAGAIN) {
        require(!w.err);
        w.read_waits = true;
    } else if (n < 0 || w.err) {
        check_error(n);
    }
    require(n != 0 || (w.has_ended && w.taken == w.written));
    return n;
}

static ssize_t read_some(size_t n)
{
    static char bytes[128 * KB];
    ssize_t got = note_read(mk_spool_read(w.spool, bytes, n));
    check_bytes(mk_str(bytes, got > 0 ? (size_t)got : 0));
    return got;
}

static void peek_some(size_t n)
{
    struct mk_str next;
    ssize_t got = note_read(mk_spool_peek(w.spool, &next));
    require((got > 0 ? (size_t)got : 0) == next.len);
    n = n < next.len ? n : next.len;
    check_bytes(mk_str(next.p, n));
    mk_spool_skip(w.spool, n);
}

static void end(void)
{
    w.has_ended = true;
    w.write_waits = false;
    check_error(mk_spool_end(w.spool));
}

static void rewind_body(void)
{
    if (!w.options.is_kept || !w.has_ended)
        return;
    int err = mk_spool_rewind(w.spool);
    check_error(err);
    w.taken = err == 0 ? 0 : w.taken;
}

static void check_limits(void)
{
    struct mk_spool_counts counts = mk_spool_budget_counts(w.options.budget);
    require(w.account.bytes <= w.options.memory_max + KB);
    require(counts.memory_bytes <= w.options.memory_max);
    require(counts.disk_bytes <= w.options.file_max);
    require(counts.files <= 1);
    require(w.err || mk_spool_length(w.spool) == w.written);
    require(w.err || mk_spool_left(w.spool) == w.written - w.taken);
}

static void call(unsigned operation, unsigned n)
{
    switch (operation % 16) {
    default:
        write_some((n + 1) * 256);
        break;
    case 4:
    case 5:
        read_some((n + 1) * 300);
        break;
    case 6:
        peek_some(n * 64);
        break;
    case 7:
        work();
        break;
    case 8:
    case 9:
        finish();
        break;
    case 10:
        turn();
        break;
    case 11:
        finish_all();
        break;
    case 12:
        rewind_body();
        break;
    case 13:
        w.fails_in = n % 32;
        w.refuses_jobs = n > 250;
        break;
    case 14:
        w.writes_short = true;
        break;
    case 15:
        if (n > 200)
            end();
        break;
    }
}

/* All jobs run, and all is read: whatever waits must be called. */
static void drain(void)
{
    w.fails_in = 0;
    w.refuses_jobs = false;
    finish_all();
    while (!w.options.is_kept && !w.err && w.taken < w.written) {
        if (read_some(100 * KB) != -EAGAIN)
            continue;
        finish_all();
        require(!w.read_waits);
    }
    finish_all();
    if (w.write_waits && !w.has_ended)
        check_error(mk_spool_room(w.spool));
    require(!w.write_waits || w.has_ended);
    end();
    for (ssize_t n = -EAGAIN; n == -EAGAIN || n > 0;) {
        finish_all();
        require(!w.read_waits);
        n = read_some(100 * KB);
    }
    require(w.err || w.taken == w.written);
}

static void open_fixture(unsigned mode)
{
    const struct mk_spool_limits limits = {.memory_max = mode & 8 ? 160 * KB : 1024 * KB,
                                           .disk_max = mode & 16 ? 300 * KB : 4096 * KB,
                                           .files_max = mode & 32 ? 0 : 1};
    w = (struct fixture){0};
    require(mk__loop_open(&w.loop, &mk__poller_epoll, &mk__clock_system, NULL) == 0);
    w.options = (struct mk_spool_options){.loop = &w.loop,
                                          .account = &w.account,
                                          .memory_max = mode & 64 ? 256 * KB : MK_SPOOL_MEMORY_MIN,
                                          .file_max = mode & 128 ? 0 : 512 * KB,
                                          .is_kept = mode & 1,
                                          .disk_is_optional = mode & 2,
                                          .ready = note_ready,
                                          .freed = note_freed,
                                          .ctx = &w};
    require(mk_spool_budget_new(mode & 4 ? NULL : "/", &limits, &w.options.budget) == 0);
    require(mk_spool_open(&w.options, &w.spool) == 0);
}

static void close_fixture(void)
{
    mk_spool_close(w.spool);
    while (w.job)
        finish();
    struct mk_spool_counts counts = mk_spool_budget_counts(w.options.budget);
    require(w.freed == 1 && !w.account.bytes && !counts.memory_bytes && !counts.disk_bytes && !counts.files);
    mk_spool_budget_free(w.options.budget);
    mk__loop_close(&w.loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    open_fixture(data[0]);
    for (size_t i = 2; i + 1 < size && i < 1024; i += 2) {
        call(data[i], data[i + 1]);
        check_limits();
    }
    if (data[1] % 2)
        drain();
    close_fixture();
    return 0;
}
