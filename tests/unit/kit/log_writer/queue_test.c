// SPDX-License-Identifier: Apache-2.0
/* A queue that grows while no lines are taken, up to its limit; and goes back to its first size. */
#include "testing.h"

#include <pthread.h>
#include <sched.h>

#include "log_writer/queue.h"

enum { LINE = 1000, MAX = 8 * 1024 * 1024, LINES = 200000 };

static bool put(struct mk__log_queue *q, uint32_t n, bool may_exceed)
{
    char *room = mk__log_queue_reserve(q, LINE, may_exceed);
    if (!room)
        return false;
    memset(room, (int)(n & 0xff), LINE);
    memcpy(room, &n, sizeof(n));
    mk__log_queue_commit(q, LINE);
    return true;
}

static uint32_t take(struct mk__log_queue *q)
{
    uint32_t n;
    struct mk_str data = mk__log_queue_peek(q);
    assert_true(data.len >= LINE);
    memcpy(&n, data.p, sizeof(n));
    assert_int_equal((unsigned char)data.p[LINE - 1], n & 0xff);
    mk__log_queue_drop(q, LINE);
    return n;
}

TEST(grows_and_shrinks)
{
    struct mk__log_queue q;
    uint32_t n = 0;
    assert_int_equal(mk__log_queue_init(&q, MAX), 0);
    assert_int_equal(q.bytes, MK__LOG_QUEUE_FIRST_BYTES);
    while (put(&q, n, false))
        n++;
    assert_true(n > 7 * MAX / 8 / LINE && q.bytes <= MAX);
    assert_int_equal(mk__log_queue_waiting(&q), (uint64_t)n * LINE);
    while (put(&q, n, true))
        n++;
    assert_true(n > 15 * MAX / 8 / LINE && q.bytes <= 2 * MAX);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(take(&q), i);
    assert_int_equal(mk__log_queue_peek(&q).len, 0);
    assert_int_equal(mk__log_queue_waiting(&q), 0);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(put(&q, i, false));
        assert_int_equal(take(&q), i);
    }
    assert_int_equal(mk__log_queue_peek(&q).len, 0);
    assert_int_equal(q.bytes, MK__LOG_QUEUE_FIRST_BYTES);
    mk__log_queue_release(&q);
}

TEST(small)
{
    struct mk__log_queue q;
    uint32_t n = 0;
    assert_int_equal(mk__log_queue_init(&q, 32 * 1024), 0);
    while (put(&q, n, false))
        n++;
    assert_int_equal(n, 32);
    while (put(&q, n, true))
        n++;
    assert_true(n > 60 && q.bytes <= 64 * 1024);
    mk__log_queue_release(&q);
}

static void *take_all(void *ctx)
{
    struct mk__log_queue *q = ctx;
    for (uint32_t n = 0; n < LINES;) {
        for (struct mk_str data; (data = mk__log_queue_peek(q)).len;)
            for (size_t i = 0; i < data.len; i += LINE)
                assert_int_equal(take(q), n++);
        if (n % 7 == 0)
            sched_yield();
    }
    return NULL;
}

/* With a limit that it meets again and again. */
TEST(two_threads)
{
    struct mk__log_queue q;
    pthread_t thread;
    assert_int_equal(mk__log_queue_init(&q, 1024 * 1024), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_all, &q), 0);
    for (uint32_t n = 0; n < LINES; n++)
        while (!put(&q, n, false))
            sched_yield();
    pthread_join(thread, NULL);
    assert_int_equal(mk__log_queue_waiting(&q), 0);
    mk__log_queue_release(&q);
}
