// SPDX-License-Identifier: Apache-2.0
/* The table of channels of server-sent events. */
#include "testing.h"

#include <stdio.h>

#include "duda/core/request/sse_channels.h"

enum { MANY = 200 };

static struct sse_channels channels;

/* Names with few hashes: chains of a bucket are searched by name. */
static struct sse_subscription *join(const char *name)
{
    return sse_channels_join(&channels, mk_str_c(name), name[0], NULL);
}

static unsigned count(const char *name)
{
    const struct sse_channel *c = sse_channels_find(&channels, mk_str_c(name), name[0]);
    return c ? c->n : 0;
}

TEST(join_and_leave)
{
    assert_int_equal(count("a"), 0);
    struct sse_subscription *first = join("a"), *second = join("a"), *other = join("ab");
    assert_true(first && second && other);
    assert_ptr_equal(first->channel, second->channel);
    assert_int_equal(count("a"), 2);
    assert_int_equal(count("ab"), 1);
    sse_channels_leave(&channels, first);
    assert_int_equal(count("a"), 1);
    sse_channels_leave(&channels, second);
    assert_null(sse_channels_find(&channels, MK_STR("a"), 'a'));
    sse_channels_leave(&channels, other);
    sse_channels_release(&channels);
}

TEST(reference)
{
    struct sse_subscription *sub = join("a");
    struct sse_channel *c = sub->channel;
    c->refs++;
    sse_channels_leave(&channels, sub);
    assert_ptr_equal(sse_channels_find(&channels, MK_STR("a"), 'a'), c);
    sse_channels_put(&channels, c);
    assert_null(sse_channels_find(&channels, MK_STR("a"), 'a'));
    sse_channels_release(&channels);
}

TEST(many)
{
    struct sse_subscription *subs[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_non_null(subs[i] = join(name));
    }
    assert_int_equal(channels.table.n, MANY);
    assert_true(channels.table.n_chains >= MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(count(name), 1);
        sse_channels_leave(&channels, subs[i]);
        assert_int_equal(count(name), 0);
    }
    assert_int_equal(channels.table.n, 0);
    sse_channels_release(&channels);
}
