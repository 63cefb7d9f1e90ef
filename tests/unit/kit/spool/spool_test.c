// SPDX-License-Identifier: Apache-2.0
/*
 * Spools: a FIFO whose consumer is slow, a body that is read twice, the limits, and everything that can fail.
 */
#include "fixture.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

/* ── the FIFO ── */

TEST(what_fits_in_memory_needs_no_file, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    assert_int_equal(read_bytes(10), -EAGAIN);
    assert_int_equal(write_bytes(150 * KB), 0);
    mk_test_turn(&loop);
    assert_int_equal(readable, 1);
    assert_int_equal(mk_spool_left(spool), 150 * KB);
    assert_int_equal(read_bytes(100 * KB), 100 * KB);
    assert_int_equal(read_bytes(100 * KB), 50 * KB);
    assert_int_equal(account.bytes > 10 * KB, false); /* memory is freed as it is read */
    assert_int_equal(read_bytes(1), -EAGAIN);
    assert_int_equal(mk_spool_end(spool), 0);
    mk_test_turn(&loop);
    assert_int_equal(readable, 2);
    assert_int_equal(read_bytes(1), 0);
    assert_int_equal(mk_spool_length(spool), 150 * KB);
    assert_null(pending);
    assert_int_equal(opens.n, 0);
    close_spool();
}

TEST(small_bodies_take_little_memory, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    assert_int_equal(write_bytes(13), 0);
    assert_in_range(account.bytes, 1, 2 * KB);
    assert_int_equal(read_bytes(100), 13);
    assert_int_equal(read_bytes(100), -EAGAIN);
    assert_int_equal(account.bytes > KB, false);
    close_spool();
}

TEST(peeks_without_a_copy, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    struct mk_str next;
    open_spool(&options);
    assert_int_equal(mk_spool_write(spool, MK_STR("abcdef")), 0);
    assert_int_equal(mk_spool_peek(spool, &next), 6);
    assert_str_equal(next, "abcdef");
    mk_spool_skip(spool, 2);
    assert_int_equal(mk_spool_write(spool, MK_STR("ghi")), 0);
    assert_int_equal(mk_spool_peek(spool, &next), 4);
    assert_str_equal(next, "cdef");
    mk_spool_skip(spool, 4);
    assert_int_equal(mk_spool_peek(spool, &next), 3);
    assert_str_equal(next, "ghi");
    mk_spool_skip(spool, 3);
    assert_int_equal(mk_spool_peek(spool, &next), -EAGAIN);
    assert_int_equal(next.len, 0);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(mk_spool_peek(spool, &next), 0);
    close_spool();
}

TEST(more_goes_to_a_file_and_comes_back, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    while (mk_spool_room(spool) == 0)
        write_bytes(MK_SPOOL_WRITE_MAX);
    assert_in_range(written, 128 * KB, 256 * KB);
    assert_non_null(pending);
    assert_int_equal(writable, 0);
    run_all();
    assert_int_equal(writable, 1);
    assert_int_equal(opens.n, 1);
    assert_int_equal(write_all(2 * MB), 0);
    assert_true(account.bytes <= options.memory_max);
    assert_int_equal(mk_spool_budget_counts(budget).files, 1);
    assert_in_range(mk_spool_budget_counts(budget).disk_bytes, 3 * MB / 2, 5 * MB / 2);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    assert_int_equal(mk_spool_budget_counts(budget).disk_bytes, 0);
    close_spool();
}

/* Writes and reads in step, so that the file is never empty. Returns the largest size of the file in bytes. */
static uint64_t pass_through(uint64_t bytes, uint64_t behind)
{
    uint64_t largest = 0;
    while (written < bytes) {
        if (mk_spool_room(spool) == 0)
            write_bytes(MK_SPOOL_WRITE_MAX);
        run_all();
        while (written - taken > behind && read_bytes(MK_SPOOL_WRITE_MAX) != -EAGAIN)
            run_all();
        uint64_t now = mk_spool_budget_counts(budget).disk_bytes;
        largest = now > largest ? now : largest;
        assert_true(account.bytes <= 257 * KB);
        assert_true(mk_spool_budget_counts(budget).memory_bytes <= 256 * KB);
    }
    return largest;
}

TEST(space_of_the_file_is_given_back, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    assert_true(pass_through(24 * MB, 2 * MB) <= 4 * MB);
    assert_true(punches.n > 0);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    close_spool();
}

/* The kernel's count of the file's blocks, in bytes: the file is the only one without a name. */
static uint64_t get_disk_blocks(void)
{
    struct stat st;
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 && st.st_size > 0)
            return (uint64_t)st.st_blocks * 512;
    return 0;
}

TEST(the_disk_has_not_more_than_is_counted, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    pass_through(16 * MB, 2 * MB);
    assert_in_range(get_disk_blocks(), 1, mk_spool_budget_counts(budget).disk_bytes + 64 * KB);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(get_disk_blocks(), 0);
    close_spool();
}

TEST(a_file_system_that_cannot_give_back_is_used_until_it_is_empty, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    punches = (struct file_calls){.fails_at = 0, .err = EOPNOTSUPP, .always = true};
    open_spool(&options);
    while (written < 20 * MB) {
        if (mk_spool_room(spool) == 0)
            write_bytes(MK_SPOOL_WRITE_MAX);
        else if (!pending)
            read_bytes(MK_SPOOL_WRITE_MAX);
        run_all();
        assert_true(mk_spool_budget_counts(budget).disk_bytes <= options.file_max);
    }
    assert_int_equal(punches.n, 1);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    close_spool();
}

TEST(a_producer_waits_at_the_limits, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    options.file_max = MB;
    open_spool(&options);
    while (mk_spool_room(spool) == 0 || pending) {
        if (mk_spool_room(spool) == 0)
            write_bytes(MK_SPOOL_WRITE_MAX);
        run_all();
    }
    assert_in_range(written, 3 * MB / 4, MB + 256 * KB);
    assert_int_equal(write_bytes(256 * KB), -ENOBUFS);
    writable = 0;
    while (!writable) {
        assert_true(read_bytes(16 * KB) != 0);
        run_all();
    }
    assert_int_equal(mk_spool_room(spool), 0);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    close_spool();
}

TEST(without_a_file_a_producer_waits_for_the_consumer, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    options.file_max = 0;
    open_spool(&options);
    while (mk_spool_room(spool) == 0)
        write_bytes(MK_SPOOL_WRITE_MAX);
    assert_null(pending);
    assert_true(account.bytes <= options.memory_max + KB);
    assert_true(read_bytes(MK_SPOOL_WRITE_MAX) > 0);
    mk_test_turn(&loop);
    assert_int_equal(writable, 1);
    close_spool();
}

TEST(a_consumer_does_not_overtake_a_write, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    open_spool(&options);
    while (mk_spool_room(spool) == 0)
        write_bytes(MK_SPOOL_WRITE_MAX);
    assert_non_null(pending); /* the bytes are on their way to the file */
    assert_int_equal(read_bytes(1), -EAGAIN);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_bytes(1), -EAGAIN);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    close_spool();
}

/* ── bodies that are kept ── */

static void check_kept(struct mk_spool_options options, size_t bytes)
{
    options.is_kept = true;
    open_spool(&options);
    assert_int_equal(write_all(bytes), 0);
    assert_int_equal(read_bytes(1), -EAGAIN); /* not before its end */
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(mk_spool_length(spool), bytes);
    for (int i = 0; i < 3; i++) {
        taken = 0;
        assert_int_equal(mk_spool_left(spool), bytes);
        assert_int_equal(read_all(), 0);
        assert_int_equal(taken, bytes);
        assert_int_equal(mk_spool_left(spool), 0);
        assert_int_equal(mk_spool_rewind(spool), 0);
    }
    taken = 0;
    run_all();
    size_t part = bytes / 3 < 10 * KB ? bytes / 3 : 10 * KB;
    assert_int_equal(read_bytes(part), part);
    assert_int_equal(mk_spool_rewind(spool), 0); /* in the midst of it, with a read under way */
    taken = 0;
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, bytes);
    close_spool();
}

TEST(a_body_is_read_again, open_fixture, close_fixture)
{
    static const size_t lengths[] = {0, 1, 1000, 16 * KB, 30 * KB};
    struct mk_spool_options options = make_options();
    for (size_t i = 0; i < COUNT(lengths); i++)
        check_kept(options, lengths[i]);
    assert_int_equal(opens.n, 0);
}

TEST(a_body_in_a_file_is_read_again, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    check_kept(options, 192 * KB); /* a file of all */
    assert_int_equal(opens.n, 1);
    check_kept(options, 3 * MB + 17);
    assert_int_equal(punches.n, 0);
}

TEST(a_body_of_known_length_needs_no_more, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    static const size_t lengths[] = {0, 1, 5000, 16361, 300 * KB};
    options.file_max = 0;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        options.memory_max = lengths[i] + lengths[i] / 32 + 1024;
        check_kept(options, lengths[i]);
    }
    options.is_kept = true;
    options.memory_max = 5000;
    open_spool(&options);
    assert_int_equal(mk_spool_budget_counts(budget).memory_bytes, 5000);
    assert_int_equal(write_bytes(5000), -EFBIG);
    assert_int_equal(mk_spool_write(spool, MK_STR_NONE), -EFBIG);
    close_spool();
}

TEST(pieces_of_any_length_up_to_a_limit, open_fixture, close_fixture)
{
    static const char piece[MK_SPOOL_WRITE_MAX + 5];
    struct mk_spool_options options = make_options();
    options.is_kept = true;
    open_spool(&options);
    assert_int_equal(mk_spool_add(spool, mk_str(piece, sizeof(piece)), sizeof(piece) + 3), 0);
    assert_int_equal(mk_spool_add(spool, mk_str(piece, 4), sizeof(piece) + 3), -EFBIG);
    assert_int_equal(mk_spool_length(spool), sizeof(piece));
    assert_int_equal(mk_spool_add(spool, mk_str(piece, 3), sizeof(piece) + 3), 0);
    assert_int_equal(mk_spool_add(spool, MK_STR_NONE, sizeof(piece) + 3), 0);
    assert_int_equal(mk_spool_add(spool, mk_str(piece, 1), UINT64_MAX), 0);
    assert_int_equal(mk_spool_length(spool), sizeof(piece) + 4);
    close_spool();
}

TEST(a_body_above_the_limits_is_an_error, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    options.is_kept = true;
    options.file_max = MB;
    open_spool(&options);
    assert_int_equal(write_all(3 * MB), -EFBIG);
    assert_in_range(written, MB, MB + 256 * KB);
    assert_int_equal(mk_spool_end(spool), -EFBIG);
    assert_int_equal(mk_spool_rewind(spool), -EFBIG);
    assert_int_equal(read_bytes(1), -EFBIG);
    close_spool();
}

/* ── the budget ── */

TEST(a_budget_is_shared, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    struct mk_spool *others[8], *one;
    for (size_t i = 0; i < COUNT(others); i++)
        assert_int_equal(mk_spool_open(&options, &others[i]), 0);
    assert_int_equal(mk_spool_budget_counts(budget).memory_bytes, MB);
    assert_int_equal(mk_spool_open(&options, &one), -EDQUOT);
    mk_spool_close(others[7]);
    open_spool(&options);
    assert_int_equal(write_all(MB), 0); /* with its least memory */
    assert_int_equal(mk_spool_budget_counts(budget).memory_bytes, MB);
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    for (size_t i = 0; i < COUNT(others) - 1; i++)
        mk_spool_close(others[i]);
    freed = 0;
    close_spool();
}

static void limit(uint64_t memory, uint64_t disk, uint64_t files)
{
    const struct mk_spool_limits limits = {.memory_max = memory, .disk_max = disk, .files_max = files};
    mk_spool_budget_set_limits(budget, &limits);
}

TEST(a_budget_without_room_is_an_error, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    for (int i = 0; i < 4; i++) {
        limit(MB, i % 2 ? MB : 64 * MB, i % 2 ? 4 : 0);
        options.is_kept = i / 2;
        open_spool(&options);
        assert_int_equal(write_all(3 * MB), -EDQUOT);
        assert_true(written < 2 * MB);
        close_spool();
    }
}

TEST(an_optional_disk_makes_the_producer_wait, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    options.disk_is_optional = true;
    for (int i = 0; i < 3; i++) {
        limit(MB, i == 1 ? MB : 64 * MB, i == 0 ? 0 : 4);
        writes = (struct file_calls){.fails_at = i == 2 ? 20 : -1, .err = ENOSPC, .always = true};
        open_spool(&options);
        while (written < 4 * MB) {
            if (mk_spool_room(spool) == 0)
                write_bytes(MK_SPOOL_WRITE_MAX);
            else
                assert_true(read_bytes(MK_SPOOL_WRITE_MAX) != 0);
            run_all();
            assert_true(account.bytes <= 257 * KB);
        }
        assert_int_equal(mk_spool_end(spool), 0);
        assert_int_equal(read_all(), 0);
        assert_int_equal(taken, written);
        close_spool();
    }
}

TEST(folders_are_checked, open_fixture, close_fixture)
{
    const struct mk_spool_limits limits = {.memory_max = MB};
    struct mk_spool_budget *other = NULL;
    mk_test_write("file", MK_STR("x"));
    assert_int_equal(mk_spool_budget_new(mk_test_path("none"), &limits, &other), -ENOENT);
    assert_int_equal(mk_spool_budget_new(mk_test_path("file"), &limits, &other), -ENOTDIR);
    assert_int_equal(mk_spool_budget_new("/proc", &limits, &other) < 0, true);
    unsigned before = mk_test_descriptors();
    opens = (struct file_calls){.fails_at = 0, .err = EACCES};
    assert_int_equal(mk_spool_budget_new(mk_test_folder, &limits, &other), -EACCES);
    assert_int_equal(mk_test_descriptors(), before);
    mk__alloc_countdown = 0;
    assert_int_equal(mk_spool_budget_new(mk_test_folder, &limits, &other), -ENOMEM);
    mk__alloc_countdown = -1;
    assert_null(other);
    assert_int_equal(mk_spool_budget_new(NULL, &limits, &other), 0); /* without files */
    mk_spool_budget_free(other);
    mk_spool_budget_free(NULL);
}

TEST(a_folder_that_is_opened_anew, open_fixture, close_fixture)
{
    const struct mk_spool_limits limits = {.memory_max = MB};
    struct mk_spool_budget *other = NULL;
    mk_test_mkdir("gone");
    assert_int_equal(mk_spool_budget_new(mk_test_path("gone"), &limits, &other), 0);
    unsigned before = mk_test_descriptors();
    assert_int_equal(mk_spool_budget_reopen(other, mk_test_path("gone")), 0);
    mk_test_remove(mk_test_path("gone"));
    assert_int_equal(mk_spool_budget_reopen(other, mk_test_path("gone")), -ENOENT);
    assert_true(mk_spool_budget_make_file(other) < 0);
    mk_test_mkdir("gone");
    assert_int_equal(mk_spool_budget_reopen(other, mk_test_path("gone")), 0);
    assert_int_equal(mk_test_descriptors(), before);
    int fd = mk_spool_budget_make_file(other);
    assert_true(fd >= 0);
    close(fd);
    mk_spool_budget_free(other);
}

TEST(file_systems_without_nameless_files, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    has_no_tmpfile = true;
    mk_test_mkdir("empty");
    mk_spool_budget_free(budget);
    const struct mk_spool_limits limits = {.memory_max = MB, .disk_max = 64 * MB, .files_max = 4};
    assert_int_equal(mk_spool_budget_new(mk_test_path("empty"), &limits, &budget), 0);
    options.budget = budget;
    open_spool(&options);
    assert_int_equal(write_all(MB), 0);
    assert_int_equal(mk_spool_budget_counts(budget).files, 1);
    assert_int_equal(rmdir(mk_test_path("empty")), 0); /* the name is gone */
    assert_int_equal(mk_spool_end(spool), 0);
    assert_int_equal(read_all(), 0);
    assert_int_equal(taken, written);
    close_spool();
}

/* ── disk threads ── */

TEST(jobs_run_while_the_loop_writes_and_reads, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    uses_threads = true;
    open_spool(&options);
    while (taken < 4 * MB) {
        if (written < 4 * MB && mk_spool_room(spool) == 0)
            write_bytes(MK_SPOOL_WRITE_MAX / 2);
        else if (written == 4 * MB)
            assert_int_equal(mk_spool_end(spool), 0);
        if (written > taken + 300 * KB || written == 4 * MB)
            read_bytes(20 * KB);
        mk_test_turn(&loop);
    }
    assert_int_equal(read_bytes(1), 0);
    mk_spool_close(spool);
    spool = NULL;
    while (!freed)
        assert_int_equal(mk__loop_turn(&loop), 0); /* waits for the job that closes the file */
}

/* ── a full disk ── */

/* A body that does not get onto the disk. Returns the error. */
static int overfill(struct mk_spool_budget *small)
{
    struct mk_spool_options options = make_options();
    options.budget = small;
    options.is_kept = true;
    open_spool(&options);
    int err = write_all(2 * MB);
    mk_spool_close(spool);
    spool = NULL;
    while (run_job())
        ;
    assert_int_equal(mk_spool_budget_counts(small).disk_bytes, 0);
    return err;
}

TEST(a_full_disk_is_an_error_at_once, open_fixture, close_fixture)
{
    const struct mk_spool_limits limits = {.memory_max = MB, .disk_max = 64 * MB, .files_max = 4};
    struct mk_spool_budget *small;
    struct statvfs before, after;
    mk_test_mkdir("small");
    if (mount("none", mk_test_path("small"), "tmpfs", 0, "size=1m") < 0)
        skip(); /* not root */
    int err = mk_spool_budget_new(mk_test_path("small"), &limits, &small);
    statvfs(mk_test_path("small"), &before);
    int result = err == 0 ? overfill(small) : err;
    statvfs(mk_test_path("small"), &after);
    if (err == 0)
        mk_spool_budget_free(small);
    umount(mk_test_path("small"));
    assert_int_equal(result, -ENOSPC);
    assert_int_equal(after.f_bfree, before.f_bfree);
}

TEST(a_limit_for_files_of_the_process_is_an_error, open_fixture, close_fixture)
{
    struct rlimit own;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &own), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = MB, .rlim_max = own.rlim_max}), 0);
    int result = overfill(budget);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &own), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(result, -EFBIG);
}

/* ── failures ── */

/* 400 KB to the file and back. Returns 0 or the error. */
static int run_once(const struct mk_spool_options *options)
{
    readable = writable = freed = 0;
    written = taken = 0;
    int err = mk_spool_open(options, &spool);
    if (err < 0)
        return err;
    err = write_all(400 * KB);
    err = err < 0 ? err : mk_spool_end(spool);
    err = err < 0 ? err : read_all();
    if (err == 0)
        assert_int_equal(taken, 400 * KB);
    else
        assert_int_equal(mk_spool_room(spool), err); /* it is final */
    close_spool();
    return err;
}

static int run_in_memory(void *ctx)
{
    return run_once(ctx);
}

TEST(each_allocation_may_fail, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    unsigned before = mk_test_descriptors();
    for (int i = 0; i < 2; i++) {
        options.is_kept = i;
        assert_true(mk_test_failing_allocs(run_in_memory, &options) > 30);
        assert_int_equal(mk_test_descriptors(), before);
    }
}

static void fail_each(struct file_calls *calls, int err, bool is_kept)
{
    struct mk_spool_options options = make_options();
    unsigned before = mk_test_descriptors();
    options.is_kept = is_kept;
    for (long n = 0;; n++) {
        *calls = (struct file_calls){.fails_at = n, .err = err};
        int result = run_once(&options);
        assert_int_equal(mk_test_descriptors(), before);
        if (calls->n <= n) {
            assert_int_equal(result, 0);
            assert_true(n > 0);
            break;
        }
        assert_int_equal(result, -err);
    }
    calls->fails_at = -1;
}

TEST(each_call_for_the_file_may_fail, open_fixture, close_fixture)
{
    for (int i = 0; i < 2; i++) {
        fail_each(&opens, EMFILE, i);
        fail_each(&writes, ENOSPC, i);
        fail_each(&reads, EIO, i);
    }
}

TEST(jobs_may_be_refused, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    for (int i = 0; i < 2; i++) {
        options.is_kept = i;
        open_spool(&options);
        refuses_jobs = true;
        assert_int_equal(write_all(MB), -ECANCELED);
        close_spool();
        refuses_jobs = false;
        open_spool(&options);
        assert_int_equal(write_all(MB), 0);
        mk_spool_end(spool);
        run_all();
        refuses_jobs = true;
        assert_int_equal(read_all(), -ECANCELED);
        close_spool();
        refuses_jobs = false;
    }
}

TEST(may_be_closed_at_any_time, open_fixture, close_fixture)
{
    struct mk_spool_options options = make_options();
    unsigned before = mk_test_descriptors();
    for (unsigned i = 0; i < 40; i++) {
        options.is_kept = i % 2;
        open_spool(&options);
        while (mk_spool_room(spool) == 0)
            write_bytes(MK_SPOOL_WRITE_MAX);
        for (unsigned jobs = 0; jobs < i / 2; jobs++) {
            if (!run_job())
                mk_spool_end(spool);
            if (!options.is_kept || jobs > 4)
                read_bytes(16 * KB);
            if (!pending && !mk_spool_room(spool) && jobs < 5)
                write_bytes(MK_SPOOL_WRITE_MAX);
        }
        bool is_busy = pending;
        mk_spool_close(spool);
        assert_int_equal(freed, !pending);
        assert_true(pending || !is_busy);
        while (run_job())
            ;
        assert_int_equal(freed, 1);
        assert_int_equal(account.bytes, 0);
        assert_int_equal(mk_test_descriptors(), before);
        mk_test_turn(&loop);
        spool = NULL;
    }
}
