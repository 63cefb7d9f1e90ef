// SPDX-License-Identifier: Apache-2.0
/* A log that takes only part of what it is given: lines continue where they ended, whatever came meanwhile. */
#include "folder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "log_writer/log_target.h"

enum { RING_BYTES = 4096, LATER_MS = 100000 };

static struct mk_log_target s;
static struct mk_log_producer a, b;
static char rings[2][RING_BYTES];

static struct mk__log_queue_ring queue_rings[2];

static void open_channel(struct mk_log_producer *c, unsigned n)
{
    queue_rings[n] = (struct mk__log_queue_ring){.ring = {.data = rings[n], .size = RING_BYTES}};
    *c = (struct mk_log_producer){.target = &s, .users = 1};
    c->queue = (struct mk__log_queue){.in = &queue_rings[n], .out = &queue_rings[n], .first = RING_BYTES};
    mk_list_add(&s.producers, &c->node);
}

static void open_log_target(void)
{
    static char path[512]; /* mk_test_path() has one of its own for all */
    snprintf(path, sizeof(path), "%s", mk_test_path("log"));
    static const struct mk_log_writer_type type = {.name = "test"};
    s = (struct mk_log_target){.type = &type, .dest = {MK_LOG_DEST_FILE, mk_str_c(path)}, .fd = -1};
    mk_list_init(&s.producers);
    open_channel(&a, 0);
    open_channel(&b, 1);
}

static void put(struct mk_log_producer *c, const char *line)
{
    char *room = mk__log_queue_reserve(&c->queue, 512, false);
    assert_non_null(room);
    memcpy(room, line, strlen(line));
    mk__log_queue_commit(&c->queue, strlen(line));
}

static void limit_file(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void expect_file(const char *name, const char *text)
{
    char data[256];
    int fd = open(mk_test_path(name), O_RDONLY);
    ssize_t n = read(fd, data, sizeof(data));
    close(fd);
    assert_true(n >= 0);
    assert_str_equal(mk_str(data, (size_t)n), text);
}

TEST(the_rest_comes_first)
{
    open_log_target();
    put(&a, "a1\n");
    put(&b, "b1 long\n");
    limit_file(6);
    assert_int_equal(mk__log_target_write(&s, LATER_MS, false), MK_DECLINED);
    expect_file("log", "a1\nb1 ");
    put(&a, "a2\n");
    limit_file(0);
    assert_int_equal(mk__log_target_write(&s, LATER_MS + 1, false), MK_DECLINED); /* not so soon */
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS, false), 0);
    expect_file("log", "a1\nb1 long\na2\n");
    mk__log_target_close(&s);
}

/* The rest of a line goes to the file that has its beginning; if it does not take it, it is lost as a whole. */
TEST(not_in_another_file)
{
    for (int full = 0; full < 2; full++) {
        open_log_target();
        unlink(mk_test_path("log"));
        put(&a, "a1 long\n");
        limit_file(3);
        assert_int_equal(mk__log_target_write(&s, LATER_MS, false), MK_DECLINED);
        put(&a, "a2\n");
        char old[512];
        snprintf(old, sizeof(old), "%s.old", s.dest.path.p);
        assert_int_equal(rename(s.dest.path.p, old), 0);
        limit_file(full ? 3 : 0);
        mk__log_target_write(&s, 2 * LATER_MS, true);
        limit_file(0);
        assert_int_equal(mk__log_target_write(&s, 3 * LATER_MS, false), 0);
        expect_file("log.old", full ? "a1 " : "a1 long\na2\n");
        expect_file("log", full ? "a2\n" : "");
        assert_int_equal(a.lost, full);
        mk__log_target_close(&s);
    }
}

TEST(a_file_that_was_left_is_closed)
{
    open_log_target();
    assert_int_equal(mk__log_target_write(&s, LATER_MS, false), 0);
    int left = s.fd;
    assert_int_equal(unlink(mk_test_path("log")), 0);
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS, true), 0);
    assert_int_not_equal(s.fd, left);
    assert_int_equal(fcntl(left, F_GETFD), -1);
    mk__log_target_close(&s);
}

/* Where no other can be opened the file that was renamed takes lines all the time, not only when that is tried. */
TEST(meanwhile_the_old_file)
{
    char old[512];
    open_log_target();
    unlink(mk_test_path("log"));
    assert_int_equal(mk__log_target_write(&s, LATER_MS, false), 0);
    snprintf(old, sizeof(old), "%s.moved", s.dest.path.p);
    assert_int_equal(rename(s.dest.path.p, old), 0);
    assert_int_equal(mkdir(s.dest.path.p, 0700), 0);
    put(&a, "a1\n");
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS, false), 0);
    put(&a, "a2\n");
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS + 1, false), 0);
    expect_file("log.moved", "a1\na2\n");
    limit_file(3);
    put(&a, "a3\n");
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS + 2, false), MK_DECLINED);
    limit_file(0);
    assert_int_equal(mk__log_target_write(&s, 2 * LATER_MS + 3, false), MK_DECLINED); /* it did not take them either */
    assert_int_equal(mk__log_target_write(&s, 3 * LATER_MS, false), 0);
    unlink(old);
    put(&a, "a4\n");
    assert_int_equal(mk__log_target_write(&s, 3 * LATER_MS + 1, false), MK_DECLINED); /* nowhere */
    assert_int_equal(rmdir(s.dest.path.p), 0);
    assert_int_equal(mk__log_target_write(&s, 4 * LATER_MS, false), 0);
    expect_file("log", "a4\n");
    mk__log_target_close(&s);
}

/* A target that is discarded counts the lines that are left. */
TEST(giving_up)
{
    open_log_target();
    put(&a, "a1\n");
    put(&a, "a2\n");
    put(&b, "b1\n");
    mk__log_target_discard(&s);
    assert_int_equal(a.lost + b.lost, 3);
    assert_int_equal(mk__log_target_write(&s, LATER_MS, false), 0);
    mk__log_target_close(&s);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    return mk_test_folder_make(state);
}

TEST_FILE(set_up, mk_test_folder_remove)
