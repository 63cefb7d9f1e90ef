// SPDX-License-Identifier: Apache-2.0
/* The last messages of a service: which are kept, how much of them, and threads that add and read at once. */
#include "testing.h"

#include <pthread.h>
#include <stdio.h>

#include "duda/core/log/last_lines.h"

static struct last_line lines[LAST_LINES_MAX];

static void add(struct last_lines *last, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "line %u", i);
        last_lines_add(last, i % 2 ? "warn" : "info", mk_str(text, (size_t)len));
    }
}

TEST(the_last_lines_are_kept)
{
    static const unsigned counts[] = {0, 1, 199, 200, 201, 399, 1000};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct last_lines *last = last_lines_new();
        uint64_t all;
        add(last, 0, counts[i]);
        unsigned n = last_lines_read(last, lines, &all);
        assert_int_equal(all, counts[i]);
        assert_int_equal(n, counts[i] < LAST_LINES_MAX ? counts[i] : LAST_LINES_MAX);
        for (unsigned k = 0; k < n; k++) {
            char text[32];
            snprintf(text, sizeof(text), "line %u", counts[i] - n + k);
            assert_str_equal(mk_str(lines[k].text, lines[k].len), text);
            assert_string_equal(lines[k].kind, (counts[i] - n + k) % 2 ? "warn" : "info");
        }
        last_lines_put(last);
    }
}

TEST(a_line_is_cut)
{
    static char text[4 * LAST_LINE_BYTES];
    struct last_lines *last = last_lines_new();
    uint64_t all;
    memset(text, 'x', sizeof(text));
    last_lines_add(last, "a kind that is too long", mk_str(text, sizeof(text)));
    last_lines_add(last, "bug", mk_str(text, LAST_LINE_BYTES));
    last_lines_add(last, "bug", mk_str("", 0));
    assert_int_equal(last_lines_read(last, lines, &all), 3);
    assert_int_equal(lines[0].len, LAST_LINE_BYTES);
    assert_int_equal(lines[1].len, LAST_LINE_BYTES);
    assert_int_equal(lines[2].len, 0);
    assert_int_equal(strlen(lines[0].kind), LAST_LINE_KIND_BYTES - 1);
    assert_true(lines[0].wall_ms > 1600000000000 && lines[0].wall_ms <= lines[2].wall_ms);
    last_lines_put(last);
}

TEST(references)
{
    struct last_lines *last = last_lines_new();
    uint64_t all;
    assert_null(last_lines_get(NULL));
    last_lines_put(NULL);
    assert_ptr_equal(last_lines_get(last), last);
    add(last, 0, 1);
    last_lines_put(last);
    assert_int_equal(last_lines_read(last, lines, &all), 1);
    last_lines_put(last);
}

TEST(without_memory)
{
    mk__alloc_countdown = 0;
    assert_null(last_lines_new());
    mk__alloc_countdown = -1;
}

/* ── threads ── */

enum { THREADS = 3, ROUNDS = 20000 };

static void *add_lines(void *ctx)
{
    add(ctx, 0, ROUNDS);
    return NULL;
}

TEST(threads_add_and_read_at_once)
{
    struct last_lines *last = last_lines_new();
    pthread_t threads[THREADS];
    uint64_t all = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_lines, last), 0);
    while (all < THREADS * ROUNDS) {
        unsigned n = last_lines_read(last, lines, &all);
        for (unsigned k = 0; k < n; k++)
            assert_true(lines[k].len >= 6 && memcmp(lines[k].text, "line ", 5) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    last_lines_put(last);
}
