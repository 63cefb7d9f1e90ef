// SPDX-License-Identifier: Apache-2.0
/* The table of streams: what is known of a number, also of those that were skipped, reset or closed. */
#include "testing.h"

#include "http/h2/streams.h"

enum { NODES = 200 };

static struct mk__h2_streams_node nodes[NODES];

static void open_stream(struct mk__h2_streams *t, int32_t id)
{
    mk__h2_streams_open(t, id);
    mk__h2_streams_add(t, &nodes[id / 2 % NODES], id);
}

static void close_stream(struct mk__h2_streams *t, int32_t id)
{
    mk__h2_streams_remove(t, mk__h2_streams_find(t, id));
}

TEST(what_is_known)
{
    struct mk__h2_streams t = {.n = 0};
    assert_int_equal(mk__h2_streams_classify(&t, 1), MK__H2_STREAMS_IDLE);
    open_stream(&t, 1);
    open_stream(&t, 3);
    open_stream(&t, 9);
    assert_int_equal(mk__h2_streams_classify(&t, 1), MK__H2_STREAMS_OPEN);
    assert_int_equal(mk__h2_streams_classify(&t, 3), MK__H2_STREAMS_OPEN);
    assert_int_equal(mk__h2_streams_classify(&t, 5), MK__H2_STREAMS_SKIPPED);
    assert_int_equal(mk__h2_streams_classify(&t, 7), MK__H2_STREAMS_SKIPPED);
    assert_int_equal(mk__h2_streams_classify(&t, 9), MK__H2_STREAMS_OPEN);
    assert_int_equal(mk__h2_streams_classify(&t, 11), MK__H2_STREAMS_IDLE);
    assert_int_equal(mk__h2_streams_classify(&t, 2), MK__H2_STREAMS_IDLE);
    close_stream(&t, 3);
    assert_int_equal(mk__h2_streams_classify(&t, 3), MK__H2_STREAMS_CLOSED);
    mk__h2_streams_note_reset(&t, 1);
    assert_int_equal(mk__h2_streams_classify(&t, 1), MK__H2_STREAMS_OPEN); /* until it is removed */
    close_stream(&t, 1);
    assert_int_equal(mk__h2_streams_classify(&t, 1), MK__H2_STREAMS_RESET);
    assert_int_equal(t.n, 1);
}

/* Pushed by a server. */
TEST(even_numbers)
{
    struct mk__h2_streams t = {.is_even = true};
    open_stream(&t, 6);
    assert_int_equal(mk__h2_streams_classify(&t, 2), MK__H2_STREAMS_SKIPPED);
    assert_int_equal(mk__h2_streams_classify(&t, 4), MK__H2_STREAMS_SKIPPED);
    assert_int_equal(mk__h2_streams_classify(&t, 6), MK__H2_STREAMS_OPEN);
    assert_int_equal(mk__h2_streams_classify(&t, 8), MK__H2_STREAMS_IDLE);
    assert_int_equal(mk__h2_streams_classify(&t, 5), MK__H2_STREAMS_IDLE);
    open_stream(&t, 8);
    close_stream(&t, 6);
    assert_int_equal(mk__h2_streams_classify(&t, 6), MK__H2_STREAMS_CLOSED);
}

TEST(the_first_numbers_are_skipped)
{
    struct mk__h2_streams t = {.n = 0};
    open_stream(&t, 5);
    assert_int_equal(mk__h2_streams_classify(&t, 1), MK__H2_STREAMS_SKIPPED);
    assert_int_equal(mk__h2_streams_classify(&t, 3), MK__H2_STREAMS_SKIPPED);
}

/* Which ones were reset is remembered for a while; of older ones it is not known. */
TEST(many_resets)
{
    struct mk__h2_streams t = {.n = 0};
    for (int32_t id = 1; id < 2 * NODES; id += 2) {
        open_stream(&t, id);
        close_stream(&t, id);
        if (id % 4 == 1)
            mk__h2_streams_note_reset(&t, id);
        assert_int_equal(mk__h2_streams_classify(&t, id), id % 4 == 1 ? MK__H2_STREAMS_RESET : MK__H2_STREAMS_CLOSED);
        if (id < 4 * MK__H2_STREAMS_RESETS && id >= 3)
            assert_int_equal(mk__h2_streams_classify(&t, 3), MK__H2_STREAMS_CLOSED);
    }
    assert_int_equal(mk__h2_streams_classify(&t, 3), MK__H2_STREAMS_RESET); /* perhaps */
    assert_int_equal(mk__h2_streams_classify(&t, 2), MK__H2_STREAMS_IDLE);  /* no client can have opened it */
    assert_int_equal(mk__h2_streams_classify(&t, 2 * NODES - 1), MK__H2_STREAMS_CLOSED);
}

/* Opened and closed in any order, all are found. */
TEST(many_streams)
{
    struct mk__h2_streams t = {.n = 0};
    for (int32_t id = 1; id < 2 * NODES; id += 2)
        open_stream(&t, id);
    for (int32_t i = 0; i < NODES; i++) {
        int32_t id = i * 37 % NODES * 2 + 1;
        assert_ptr_equal(mk__h2_streams_find(&t, id), &nodes[id / 2]);
        close_stream(&t, id);
        assert_null(mk__h2_streams_find(&t, id));
        assert_int_equal(t.n, NODES - 1 - i);
    }
}
