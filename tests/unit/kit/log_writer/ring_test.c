// SPDX-License-Identifier: Apache-2.0
/* The ring: whole lines in their order, none lost or seen twice, with any free space; between two threads, too. */
#include "testing.h"

#include <pthread.h>
#include <sched.h>

#include "log_writer/queue.h"

enum { SIZE = 4096, LINE = 512, LINES = 200000 };

static char data[SIZE];
static struct mk__log_ring r;

static void begin(void)
{
    memset(&r, 0, sizeof(r));
    r.data = data;
    r.size = SIZE;
}

/* A line of its number and a length that depends on it. */
static size_t length_of(uint32_t n)
{
    return 5 + (n * 2654435761u >> 8) % (LINE - 4);
}

static bool put(uint32_t n)
{
    char *room = mk__log_ring_reserve(&r, LINE);
    if (!room)
        return false;
    assert_true(room >= data && room + LINE <= data + SIZE);
    memset(room, 'x', length_of(n));
    memcpy(room, &n, sizeof(n));
    room[length_of(n) - 1] = '\n';
    mk__log_ring_commit(&r, length_of(n));
    return true;
}

/* Takes what lies there in one piece: lines from `*n` on, no part of one. */
static void take(uint32_t *n)
{
    struct mk_str s = mk__log_ring_peek(&r);
    size_t at = 0;
    while (at < s.len) {
        uint32_t number;
        memcpy(&number, s.p + at, sizeof(number));
        assert_int_equal(number, *n);
        at += length_of(number);
        assert_int_equal(s.p[at - 1], '\n');
        ++*n;
    }
    assert_int_equal(at, s.len);
    mk__log_ring_drop(&r, s.len);
}

TEST(order)
{
    uint32_t in = 0, out = 0, seed = 1;
    begin();
    while (in < LINES) {
        seed = seed * 1664525 + 1013904223;
        for (unsigned i = seed >> 28; i && put(in); i--)
            in++;
        if (seed >> 27 & 1)
            take(&out);
    }
    for (int i = 0; i < 3; i++)
        take(&out);
    assert_int_equal(out, in);
}

/* An empty ring takes a line at any position, and one with few lines stays in its first pages. */
TEST(quiet)
{
    uint32_t out = 0;
    begin();
    for (uint32_t n = 0; n < 10000; n++) {
        assert_true(put(n));
        assert_true(atomic_load(&r.head) % SIZE <= 2 * LINE);
        while (out <= n)
            take(&out);
    }
}

/* When a ring starts again, all its space is free at once, not only the part that was used before. */
TEST(room_behind_quiet)
{
    uint32_t n = 0, out = 0;
    for (uint32_t before = 1; before < 100; before++) {
        begin();
        for (n = out = 0; n < before; n++) {
            assert_true(put(n));
            take(&out);
            take(&out);
        }
        size_t bytes = 0;
        for (; mk__log_ring_reserve(&r, LINE); n++) {
            assert_true(put(n));
            bytes += length_of(n);
        }
        assert_true(bytes > SIZE - 2 * LINE);
        for (int i = 0; i < 3; i++)
            take(&out);
        assert_int_equal(out, n);
    }
}

TEST(full)
{
    uint32_t n = 0, out = 0;
    begin();
    while (put(n))
        n++;
    assert_true(n >= (SIZE - 2 * LINE) / LINE);
    assert_null(mk__log_ring_reserve(&r, LINE));
    while (out < n)
        take(&out);
    assert_true(put(n));
}

static void *write_lines(void *ctx)
{
    for (uint32_t n = 0; n < LINES;)
        if (put(n))
            n++;
        else
            sched_yield();
    return ctx;
}

TEST(two_threads)
{
    pthread_t thread;
    uint32_t out = 0;
    begin();
    assert_int_equal(pthread_create(&thread, NULL, write_lines, NULL), 0);
    while (out < LINES) {
        uint32_t before = out;
        take(&out);
        if (out == before)
            sched_yield(); /* else the writer waits for the end of a time slice, each time that the ring is empty */
    }
    pthread_join(thread, NULL);
}
