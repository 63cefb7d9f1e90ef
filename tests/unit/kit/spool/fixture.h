// SPDX-License-Identifier: Apache-2.0
/*
 * Spools over a folder of the test's own, with jobs that run when the test says so, in its own thread: each order of
 * events can be had. The calls for files can fail: the n-th open, the n-th write ...
 */
#ifndef MK_UNIT_SPOOL_FIXTURE_H
#define MK_UNIT_SPOOL_FIXTURE_H

#include "folder.h"
#include "pattern.h"
#include "turn.h"

#include <monkey/kit/spool.h>

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { KB = 1024, MB = 1024 * KB };

/* Calls for files: how many there were, and which one fails. */
struct file_calls {
    long n, fails_at; /* fails_at -1: none */
    int err;
    bool always; /* those behind it fail, too */
};

static struct file_calls opens, writes, reads, punches;
static bool has_no_tmpfile;
static struct mk_loop loop;
static struct mk_job *pending; /* of the one spool */
static bool refuses_jobs, uses_threads;
static pthread_t thread; /* with uses_threads: of the job */
static struct mk_account account;
static struct mk_spool_budget *budget;
static struct mk_spool *spool;
static unsigned readable, writable, freed;
static uint64_t written, taken; /* bytes of the pattern */

static bool fails(struct file_calls *calls)
{
    long n = calls->n++;
    if (calls->fails_at < 0 || n < calls->fails_at || (n > calls->fails_at && !calls->always))
        return false;
    errno = calls->err;
    return true;
}

/* ── calls of the C library, in their place ── */

int openat(int folder, const char *path, int flags, ...)
{
    if (has_no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return fails(&opens) ? -1 : (int)syscall(SYS_openat, folder, path, flags, 0600);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    return fails(&writes) ? -1 : syscall(SYS_pwrite64, fd, from, size, at);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    return fails(&reads) ? -1 : preadv(fd, &(struct iovec){.iov_base = to, .iov_len = size}, 1, at);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
    return fails(&punches) ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, size);
}

/* ── jobs ── */

static void *run_thread(void *ctx)
{
    struct mk_job *job = ctx;
    job->work(job);
    mk_post(&loop, &job->message);
    return NULL;
}

static void finish_thread(struct mk_message *message)
{
    struct mk_job *job = MK_CONTAINER_OF(message, struct mk_job, message);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pending = NULL;
    job->done(job);
}

int mk_job_submit(struct mk_loop *l, struct mk_job *job)
{
    assert_ptr_equal(l, &loop);
    assert_null(pending);
    if (refuses_jobs)
        return -EAGAIN;
    pending = job;
    if (!uses_threads)
        return 0;
    job->message = (struct mk_message){.fn = finish_thread};
    return -pthread_create(&thread, NULL, run_thread, job);
}

/* Runs the job that is under way, if there is one. */
static bool run_job(void)
{
    struct mk_job *job = pending;
    if (!job)
        return false;
    job->work(job);
    pending = NULL;
    job->done(job);
    return true;
}

/* Runs all jobs and callbacks. */
static void run_all(void)
{
    while (run_job())
        ;
    mk_test_turn(&loop);
}

/* ── spools ── */

static void note_ready(struct mk_spool *s, unsigned what, void *ctx)
{
    assert_ptr_equal(s, spool);
    assert_ptr_equal(ctx, &loop);
    assert_true(what);
    readable += (what & MK_SPOOL_READABLE) != 0;
    writable += (what & MK_SPOOL_WRITABLE) != 0;
}

static void note_freed(void *ctx)
{
    assert_ptr_equal(ctx, &loop);
    freed++;
}

static struct mk_spool_options make_options(void)
{
    return (struct mk_spool_options){.budget = budget,
                                     .loop = &loop,
                                     .account = &account,
                                     .memory_max = 256 * KB,
                                     .file_max = 4 * MB,
                                     .ready = note_ready,
                                     .freed = note_freed,
                                     .ctx = &loop};
}

static void open_spool(const struct mk_spool_options *options)
{
    readable = writable = freed = 0;
    written = taken = 0;
    assert_int_equal(mk_spool_open(options, &spool), 0);
}

static void close_spool(void)
{
    mk_spool_close(spool);
    spool = NULL;
    while (run_job())
        ;
    assert_int_equal(freed, 1);
    struct mk_spool_counts counts = mk_spool_budget_counts(budget);
    assert_int_equal(counts.memory_bytes + counts.disk_bytes + counts.files, 0);
    assert_int_equal(account.bytes, 0);
}

static int open_fixture(void **state)
{
    const struct mk_spool_limits limits = {.memory_max = MB, .disk_max = 64 * MB, .files_max = 4};
    (void)state;
    spool = NULL;
    opens = writes = reads = punches = (struct file_calls){.fails_at = -1};
    has_no_tmpfile = refuses_jobs = uses_threads = false;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    assert_int_equal(mk_spool_budget_new(mk_test_folder, &limits, &budget), 0);
    opens.n = 0;
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    if (spool) /* the test has failed */
        return 0;
    assert_null(pending);
    mk_spool_budget_free(budget);
    mk__loop_close(&loop);
    return 0;
}

/* ── bytes: each offset has its own ── */

/* Writes the next `n` bytes of the pattern. Returns the result of the last call. */
static int write_bytes(size_t n)
{
    static char bytes[MK_SPOOL_WRITE_MAX];
    int result = 0;
    while (n) {
        size_t part = n < sizeof(bytes) ? n : sizeof(bytes);
        fill_pattern(bytes, part, written);
        result = mk_spool_write(spool, mk_str(bytes, part));
        if (result < 0)
            return result;
        written += part;
        n -= part;
    }
    return result;
}

/* Reads at most `size` bytes, and checks that they are the next ones. Returns as mk_spool_read(). */
static ssize_t read_bytes(size_t size)
{
    static char bytes[MB];
    assert_true(size <= sizeof(bytes));
    ssize_t n = mk_spool_read(spool, bytes, size);
    if (n > 0 && !is_pattern(bytes, (size_t)n, taken))
        fail_msg("bytes from %llu on are wrong", (unsigned long long)taken);
    taken += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* Reads until the end or an error, with all jobs that this needs. Returns 0 or -errno. */
static int read_all(void)
{
    for (;;) {
        ssize_t n = read_bytes(100 * KB);
        if (n == 0 || (n < 0 && n != -EAGAIN))
            return (int)n;
        readable = 0;
        run_all();
        if (n == -EAGAIN)
            assert_int_equal(readable, 1);
    }
}

/* Writes `n` bytes with all jobs that this needs. Returns 0 or the error. */
static int write_all(size_t n)
{
    while (n) {
        size_t part = n < MK_SPOOL_WRITE_MAX ? n : MK_SPOOL_WRITE_MAX;
        int result = write_bytes(part);
        if (result < 0)
            return result;
        run_all();
        n -= part;
    }
    return mk_spool_room(spool) < 0 ? mk_spool_room(spool) : 0;
}

#endif
