// SPDX-License-Identifier: Apache-2.0
/* The writer: what is written when, with a thread and without, and that no line is lost between starts and stops. */
#include "folder.h"

#include <monkey/kit/log_writer.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { BYTES_MAX = 64 * 1024, THREADS = 4, LINES = 5000 };

static unsigned opened, closed; /* producers */

struct lines {
    _Atomic bool wants_more; /* one line more after what is written */
};

static void init_lines(struct mk_log_producer *producer, void *owner)
{
    assert_non_null(owner);
    assert_false(((struct lines *)mk_log_producer_data(producer))->wants_more);
    opened++;
}

static void release_lines(struct mk_log_producer *producer)
{
    (void)producer;
    closed++;
}

static bool put(struct mk_log_producer *producer, const char *line)
{
    char *room = mk_log_producer_reserve(producer, 512, false);
    if (!room)
        return false;
    memcpy(room, line, strlen(line));
    mk_log_producer_send(producer, strlen(line));
    return true;
}

static bool add_line(struct mk_log_producer *producer)
{
    struct lines *lines = mk_log_producer_data(producer);
    bool adds = lines->wants_more && mk_log_producer_waiting(producer) == 0;
    if (adds)
        assert_true(put(producer, "more\n"));
    lines->wants_more &= !adds;
    return adds;
}

static const struct mk_log_writer_type type = {
    .name = "test",
    .thread_name = "test: logs",
    .data_bytes = sizeof(struct lines),
    .init = init_lines,
    .release = release_lines,
    .on_written = add_line,
};

static struct mk_log_target *get_target(struct mk_log_writer *w, const char *name)
{
    struct mk_log_dest dest = {MK_LOG_DEST_FILE, mk_str_c(mk_test_path(name))};
    struct mk_log_target *target = mk_log_target_get(w, &dest);
    assert_non_null(target);
    return target;
}

/* Returns what a file holds, which is valid until the next call. */
static struct mk_str read_file(const char *name)
{
    static char data[1024 * 1024];
    int fd = open(mk_test_path(name), O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, data, sizeof(data));
    if (fd >= 0)
        close(fd);
    assert_true(n >= 0);
    return mk_str(data, (size_t)n);
}

static void await_text(const char *name, const char *text)
{
    for (unsigned ms = 0; ms < 20000 && !mk_str_eq(read_file(name), mk_str_c(text)); ms++)
        usleep(1000);
    assert_str_equal(read_file(name), text);
}

TEST(lines_are_written_by_the_thread)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_target *target = get_target(w, "log");
    struct mk_log_producer *producer = mk_log_producer_get(target, w, BYTES_MAX);
    assert_non_null(producer);
    assert_int_equal(mk_log_producer_bytes_max(producer), BYTES_MAX);
    mk_log_writer_set_flush(w, 1);
    assert_true(put(producer, "a\n"));
    ((struct lines *)mk_log_producer_data(producer))->wants_more = true;
    assert_int_equal(mk_log_writer_start(w), 0);
    assert_int_equal(mk_log_writer_start(w), 0); /* it runs */
    await_text("log", "a\nmore\n");
    assert_true(put(producer, "b\n"));
    await_text("log", "a\nmore\nb\n");
    mk_log_producer_put(producer);
    mk_log_target_put(target);
    mk_log_writer_free(w);
}

/* A target is found by its destination, a producer by its owner; each is freed with its last reference. */
TEST(references)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_target *target = get_target(w, "shared"), *other = get_target(w, "other");
    assert_ptr_equal(get_target(w, "shared"), target);
    assert_ptr_not_equal(target, other);
    opened = closed = 0;
    struct mk_log_producer *a = mk_log_producer_get(target, &opened, BYTES_MAX);
    assert_ptr_equal(mk_log_producer_get(target, &opened, BYTES_MAX), a);
    struct mk_log_producer *b = mk_log_producer_get(target, &closed, BYTES_MAX);
    assert_ptr_not_equal(a, b);
    assert_int_equal(opened, 2);
    assert_true(put(a, "a\n"));
    assert_true(put(b, "b\n"));
    mk_log_producer_put(a);
    mk_log_producer_put(a);
    mk_log_producer_put(b);
    mk_log_target_put(target);
    assert_int_equal(read_file("shared").len, 0);
    assert_int_equal(closed, 0);
    mk_log_target_put(target); /* without a thread: writes the lines itself */
    assert_str_equal(read_file("shared"), "a\nb\n");
    assert_int_equal(closed, 2);
    mk_log_target_put(other);
    assert_int_equal(access(mk_test_path("other"), F_OK), -1); /* no line, no file */
    mk_log_writer_free(w);
}

/* Without a thread lines wait for the next one, or for the end of the log. */
TEST(a_writer_that_is_stopped)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_target *target = get_target(w, "stopped");
    struct mk_log_producer *producer = mk_log_producer_get(target, w, BYTES_MAX);
    mk_log_writer_stop(w); /* it does not run */
    assert_true(put(producer, "1\n"));
    assert_int_equal(read_file("stopped").len, 0);
    assert_int_equal(mk_log_writer_start(w), 0);
    await_text("stopped", "1\n");
    assert_true(put(producer, "2\n"));
    mk_log_writer_stop(w);
    assert_str_equal(read_file("stopped"), "1\n2\n");
    assert_true(put(producer, "3\n"));
    assert_str_equal(read_file("stopped"), "1\n2\n");
    assert_int_equal(mk_log_writer_start(w), 0);
    await_text("stopped", "1\n2\n3\n");
    mk_log_writer_stop(w);
    ((struct lines *)mk_log_producer_data(producer))->wants_more = true;
    assert_true(put(producer, "4\n"));
    mk_log_producer_put(producer);
    mk_log_target_put(target);
    assert_str_equal(read_file("stopped"), "1\n2\n3\n4\nmore\n");
    mk_log_writer_free(w);
}

TEST(opened_again)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_target *target = get_target(w, "log");
    struct mk_log_producer *producer = mk_log_producer_get(target, w, BYTES_MAX);
    char old[512];
    snprintf(old, sizeof(old), "%s", mk_test_path("log.old"));
    unlink(mk_test_path("log"));
    assert_int_equal(mk_log_writer_start(w), 0);
    assert_true(put(producer, "before\n"));
    await_text("log", "before\n");
    assert_int_equal(rename(mk_test_path("log"), old), 0);
    mk_log_writer_reopen(w);
    for (unsigned ms = 0; ms < 20000 && access(mk_test_path("log"), F_OK) < 0; ms++)
        usleep(1000);
    assert_true(put(producer, "behind\n"));
    await_text("log", "behind\n");
    assert_str_equal(read_file("log.old"), "before\n");
    mk_log_producer_put(producer);
    mk_log_target_put(target);
    mk_log_writer_free(w);
}

TEST(what_has_no_room_is_lost)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_target *target = get_target(w, "full");
    struct mk_log_producer *producer = mk_log_producer_get(target, w, BYTES_MAX);
    size_t n = 0;
    while (put(producer, "a line\n"))
        n++;
    assert_true(n * 7 > BYTES_MAX - 1024 && n * 7 <= BYTES_MAX);
    assert_int_equal(mk_log_producer_waiting(producer), n * 7);
    mk_log_producer_put(producer);
    mk_log_target_put(target);
    assert_int_equal(read_file("full").len, n * 7);
    mk_log_writer_free(w);
}

static struct mk_log_target *shared;
static struct mk_log_producer *producers[THREADS];

static void *write_lines(void *ctx)
{
    struct mk_log_producer **own = ctx;
    for (unsigned i = 0; i < LINES; i++)
        while (!put(*own, "a line of a thread\n"))
            sched_yield();
    return NULL;
}

/* Threads that add lines meanwhile neither lose one nor keep a stopped writer from its start. */
TEST(starts_and_stops_under_load)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    pthread_t threads[THREADS];
    shared = get_target(w, "load");
    for (unsigned i = 0; i < THREADS; i++) {
        producers[i] = mk_log_producer_get(shared, &producers[i], BYTES_MAX);
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &producers[i]), 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(mk_log_writer_start(w), 0);
        mk_log_writer_stop(w);
    }
    assert_int_equal(mk_log_writer_start(w), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        mk_log_producer_put(producers[i]);
    }
    mk_log_target_put(shared);
    mk_log_writer_free(w);
    assert_int_equal(read_file("load").len, (size_t)THREADS * LINES * strlen("a line of a thread\n"));
}

static int make_and_put(void *ctx)
{
    struct mk_log_writer *w = mk_log_writer_new(&type);
    struct mk_log_dest dest = {MK_LOG_DEST_FILE, mk_str_c(ctx)};
    struct mk_log_target *target = w ? mk_log_target_get(w, &dest) : NULL;
    struct mk_log_producer *producer = target ? mk_log_producer_get(target, ctx, BYTES_MAX) : NULL;
    if (producer)
        mk_log_producer_put(producer);
    if (target)
        mk_log_target_put(target);
    if (w)
        mk_log_writer_free(w);
    return producer ? 0 : -1;
}

TEST(without_memory)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", mk_test_path("memory"));
    assert_true(mk_test_failing_allocs(make_and_put, path) >= 5);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
