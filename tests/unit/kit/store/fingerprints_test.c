// SPDX-License-Identifier: Apache-2.0
/* Sets of hashes that were seen lately: what they remember, for how long, and how often they are wrong. */
#include "testing.h"

#include <errno.h>

#include "store/store.h"
#include "store/pages.h"

enum { PLACES = 4096 };

static struct mk__fingerprints set;

static int open_set(void **state)
{
    (void)state;
    memset(&set, 0, sizeof(set));
    assert_int_equal(mk__fingerprints_open(&set), 0);
    assert_int_equal(mk__fingerprints_resize(&set, PLACES), 4 * PLACES);
    return 0;
}

static int close_set(void **state)
{
    (void)state;
    mk__fingerprints_close(&set);
    return 0;
}

/* Returns the n-th of numbers without a pattern. */
static uint64_t mix(uint64_t n)
{
    n = (n + 1) * 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

TEST(sizes, open_set, close_set)
{
    assert_int_equal(mk__fingerprints_resize(&set, 0), 4096);
    assert_int_equal(mk__fingerprints_resize(&set, PLACES), 4 * PLACES);
    assert_int_equal(mk__fingerprints_resize(&set, PLACES + 1), 8 * PLACES);
    assert_int_equal(mk__fingerprints_resize(&set, UINT64_MAX), 4 * MK__FINGERPRINTS_MAX);
    for (unsigned i = 0; i < 4 * PLACES; i++)
        mk__fingerprints_add(&set, mix(i));
    mk__fingerprints_resize(&set, PLACES);
    assert_false(mk__fingerprints_add(&set, mix(1 << 30)));
    assert_true(mk__fingerprints_add(&set, mix(1 << 30)));
    mk__fingerprints_resize(&set, UINT64_MAX); /* the memory that was given back is empty */
    unsigned kept = 0;
    for (unsigned i = 0; i < 4 * PLACES; i++)
        kept += mk__fingerprints_has(&set, mix(i));
    assert_true(kept < PLACES);
    mk__pages_countdown = 0;
    struct mk__fingerprints none = {0};
    assert_int_equal(mk__fingerprints_open(&none), -ENOMEM);
    mk__pages_countdown = -1;
}

TEST(remembering, open_set, close_set)
{
    assert_false(mk__fingerprints_has(&set, mix(1)));
    assert_false(mk__fingerprints_add(&set, mix(1)));
    assert_true(mk__fingerprints_has(&set, mix(1)));
    assert_true(mk__fingerprints_add(&set, mix(1)));
    mk__fingerprints_remove(&set, mix(1));
    mk__fingerprints_remove(&set, mix(2));
    assert_false(mk__fingerprints_has(&set, mix(1)));
    assert_false(mk__fingerprints_has(&set, 0));
}

TEST(half_of_the_places_are_kept, open_set, close_set)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < PLACES / 2; i++)
        mk__fingerprints_add(&set, mix(i));
    for (unsigned i = 0; i < PLACES / 2; i++)
        kept += mk__fingerprints_has(&set, mix(i));
    assert_true(kept > PLACES / 2 * 97 / 100);
}

TEST(old_ones_are_forgotten, open_set, close_set)
{
    unsigned found = 0, wrong = 0;
    for (unsigned i = 0; i < 40 * PLACES; i++)
        found += mk__fingerprints_add(&set, mix(i));
    assert_true(found < 40 * PLACES / 10000);
    for (unsigned i = 0; i < 39 * PLACES; i++)
        wrong += mk__fingerprints_has(&set, mix(i));
    assert_true(wrong < 39 * PLACES / 10000);
}
