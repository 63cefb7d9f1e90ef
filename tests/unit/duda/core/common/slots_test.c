// SPDX-License-Identifier: Apache-2.0
/* Numbers of items. */
#include "testing.h"

#include <errno.h>

#include "duda/core/common/slots.h"

static uint64_t add(struct slots *all, void *item)
{
    uint32_t index;
    assert_int_equal(slots_reserve(all, 64), 0);
    uint64_t number = slots_add(all, item, &index);
    assert_ptr_equal(slots_find(all, number), item);
    assert_ptr_equal(slots_get(all, index), item);
    assert_int_equal((uint32_t)number, index + 1);
    return number;
}

TEST(a_number_means_one_item)
{
    struct slots all = {0};
    int first, second;
    assert_null(slots_find(&all, 0));
    assert_null(slots_find(&all, 1));
    assert_null(slots_get(&all, 0));
    uint64_t number = add(&all, &first);
    slots_remove(&all, 0);
    assert_null(slots_find(&all, number));
    assert_null(slots_get(&all, 0));
    uint64_t again = add(&all, &second); /* in the same slot */
    assert_int_equal((uint32_t)again, (uint32_t)number);
    assert_int_not_equal(again, number);
    assert_null(slots_find(&all, number));
    assert_null(slots_find(&all, again + 1));
    assert_null(slots_find(&all, UINT64_MAX));
    slots_release(&all);
    assert_null(slots_find(&all, again));
}

TEST(the_most)
{
    struct slots all = {0};
    int items[64];
    uint64_t numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = add(&all, &items[i]);
    assert_int_equal(slots_reserve(&all, 64), -EAGAIN);
    for (int i = 0; i < 64; i++)
        assert_ptr_equal(slots_find(&all, numbers[i]), &items[i]);
    slots_remove(&all, 40);
    assert_int_equal((uint32_t)add(&all, &items[0]), 41);
    slots_release(&all);
}

static int reserve(void *ctx)
{
    struct slots all = {0};
    int item;
    uint32_t index;
    (void)ctx;
    for (int i = 0; i < 40; i++) {
        int err = slots_reserve(&all, 64);
        if (err < 0) {
            slots_release(&all);
            return err;
        }
        slots_add(&all, &item, &index);
    }
    slots_release(&all);
    return 0;
}

TEST(without_memory)
{
    assert_true(mk_test_failing_allocs(reserve, NULL) > 0);
}
