// SPDX-License-Identifier: Apache-2.0
/* Tables of items against a list: with few hashes, so that searches are long, and without room for more slots. */
#include "testing.h"

#include <stdlib.h>

#include "store/store.h"

enum { ITEMS = 400, OPERATIONS = 200000 };

/* An item with a key of 16 bytes, aligned as blocks are. */
struct sample {
    _Alignas(16) char before[8];
    struct mk_item item;
    uint32_t key[4];
    bool in;
};

static struct sample samples[ITEMS];
static struct mk__budget budget = {.max = 1 << 20};

static void make_samples(unsigned hashes)
{
    memset(samples, 0, sizeof(samples));
    for (unsigned i = 0; i < ITEMS; i++) {
        samples[i].key[0] = i;
        samples[i].item.hash = (uint64_t)rand() % hashes * 0x9e3779b97f4a7c15;
        samples[i].item.key_bytes = sizeof(samples[i].key);
    }
}

static struct mk_item *find(struct mk__table *t, const struct sample *s)
{
    return mk__table_find(t, s->item.hash, s->key, sizeof(s->key));
}

static void check_table(struct mk__table *t)
{
    unsigned items = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        assert_ptr_equal(find(t, &samples[i]), samples[i].in ? &samples[i].item : NULL);
        items += samples[i].in;
    }
    assert_int_equal(t->items, items);
    uint32_t full = 0;
    for (uint32_t i = 0; i <= t->mask; i++) {
        full += t->slots[i] != 0;
        assert_false(t->slots[i] == 1 && t->slots[(i + 1) & t->mask] == 0); /* no mark before an empty slot */
    }
    assert_int_equal(t->full, full);
    assert_true(full <= t->mask);
}

/* Adds or removes a sample; `grow`: in a larger table if that is full. */
static struct mk__table *change_one(struct mk__table *t, bool grow)
{
    struct sample *s = &samples[(unsigned)rand() % ITEMS];
    if (s->in) {
        s->in = false;
        mk__table_remove(t, mk__table_slot_of(t, &s->item));
        return t;
    }
    if (grow && mk__table_is_full(t)) {
        struct mk__table *fresh = mk__table_rebuild(t);
        assert_non_null(fresh);
        mk__table_free(&t->retired);
        t = fresh;
    }
    struct mk_item *displaced = mk__table_add(t, &s->item);
    s->in = true;
    assert_true(!displaced || !grow);
    if (displaced)
        MK_CONTAINER_OF(displaced, struct sample, item)->in = false;
    return t;
}

static void check_operations(uint32_t slots, unsigned hashes, bool grow)
{
    srand(slots + hashes);
    make_samples(hashes);
    struct mk__table *t = mk__table_new(&budget, slots);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        t = change_one(t, grow);
        if (i % 997 == 0 || i < 100)
            check_table(t);
    }
    mk__table_free(&t->retired);
    assert_int_equal(budget.bytes, 0);
    assert_int_equal(budget.table_bytes, 0);
}

TEST(tables_that_grow)
{
    check_operations(8, 1 << 20, true);
    check_operations(8, 20, true);
    check_operations(8, 1, true);
}

TEST(tables_that_displace)
{
    check_operations(8, 1 << 20, false);
    check_operations(64, 1 << 20, false);
    check_operations(64, 3, false);
    check_operations(8, 1, false);
}

TEST(tables_shrink)
{
    make_samples(1 << 20);
    struct mk__table *t = mk__table_new(&budget, 1024);
    for (unsigned i = 0; i < 20; i++)
        mk__table_add(t, &samples[i].item);
    struct mk__table *small = mk__table_rebuild(t);
    assert_int_equal(small->mask, 31);
    assert_int_equal(small->items, 20);
    mk__table_free(&t->retired);
    mk__table_free(&small->retired);
}

TEST(budgets)
{
    struct mk__budget little = {.max = 200};
    struct mk__table *t = mk__table_new(&little, 8);
    assert_non_null(t);
    assert_null(mk__table_new(&little, 8));
    assert_null(mk__table_rebuild(t));
    mk__table_free(&t->retired);
    mk__alloc_countdown = 0;
    assert_null(mk__table_new(&little, 8));
    mk__alloc_countdown = -1;
    assert_int_equal(little.bytes, 0);
}
