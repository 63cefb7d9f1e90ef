// SPDX-License-Identifier: Apache-2.0
/* The last messages of a service: which are kept, how much of them, and threads that add and read at once. */
#include "testing.h"

#include <pthread.h>
#include <stdio.h>

#include "duda/core/log/recent.h"

static struct recent_line lines[RECENT_LINES_MAX];

static void add(struct recent *recent, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "line %u", i);
        recent_add(recent, i % 2 ? "warn" : "info", mk_str(text, (size_t)len));
    }
}

TEST(the_last_lines_are_kept)
{
    static const unsigned counts[] = {0, 1, 199, 200, 201, 399, 1000};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct recent *recent = recent_new();
        uint64_t all;
        add(recent, 0, counts[i]);
        unsigned n = recent_read(recent, lines, &all);
        assert_int_equal(all, counts[i]);
        assert_int_equal(n, counts[i] < RECENT_LINES_MAX ? counts[i] : RECENT_LINES_MAX);
        for (unsigned k = 0; k < n; k++) {
            char text[32];
            snprintf(text, sizeof(text), "line %u", counts[i] - n + k);
            assert_str_equal(mk_str(lines[k].text, lines[k].len), text);
            assert_string_equal(lines[k].kind, (counts[i] - n + k) % 2 ? "warn" : "info");
        }
        recent_put(recent);
    }
}

TEST(a_line_is_cut)
{
    static char text[4 * RECENT_TEXT_BYTES];
    struct recent *recent = recent_new();
    uint64_t all;
    memset(text, 'x', sizeof(text));
    recent_add(recent, "a kind that is too long", mk_str(text, sizeof(text)));
    recent_add(recent, "bug", mk_str(text, RECENT_TEXT_BYTES));
    recent_add(recent, "bug", mk_str("", 0));
    assert_int_equal(recent_read(recent, lines, &all), 3);
    assert_int_equal(lines[0].len, RECENT_TEXT_BYTES);
    assert_int_equal(lines[1].len, RECENT_TEXT_BYTES);
    assert_int_equal(lines[2].len, 0);
    assert_int_equal(strlen(lines[0].kind), RECENT_KIND_BYTES - 1);
    assert_true(lines[0].wall_ms > 1600000000000 && lines[0].wall_ms <= lines[2].wall_ms);
    recent_put(recent);
}

TEST(references)
{
    struct recent *recent = recent_new();
    uint64_t all;
    assert_null(recent_get(NULL));
    recent_put(NULL);
    assert_ptr_equal(recent_get(recent), recent);
    add(recent, 0, 1);
    recent_put(recent);
    assert_int_equal(recent_read(recent, lines, &all), 1);
    recent_put(recent);
}

TEST(without_memory)
{
    mk__alloc_countdown = 0;
    assert_null(recent_new());
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
    struct recent *recent = recent_new();
    pthread_t threads[THREADS];
    uint64_t all = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_lines, recent), 0);
    while (all < THREADS * ROUNDS) {
        unsigned n = recent_read(recent, lines, &all);
        for (unsigned k = 0; k < n; k++)
            assert_true(lines[k].len >= 6 && memcmp(lines[k].text, "line ", 5) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    recent_put(recent);
}
