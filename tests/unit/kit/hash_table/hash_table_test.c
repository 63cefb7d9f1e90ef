// SPDX-License-Identifier: Apache-2.0
/* Items in chains: each is found by its hash, however many there are, until it is removed. */
#include "testing.h"

#include <monkey/kit/hash_table.h>

#include <errno.h>

enum { MANY = 1000, CHAINS_MIN = 16 };

struct item {
    struct mk_hash_node node;
    unsigned number;
};

static struct mk_hash_table table;
static struct item items[MANY];

static int insert(unsigned i, uint64_t hash)
{
    items[i].number = i;
    return mk_hash_insert(&table, NULL, &items[i].node, hash);
}

static unsigned count(uint64_t hash)
{
    struct mk_hash_node *n;
    unsigned found = 0;
    MK_HASH_EACH(&table, hash, n) {
        assert_int_equal(n->hash, hash);
        found++;
    }
    return found;
}

TEST(empty)
{
    assert_null(mk_hash_find(&table, 0));
    mk_hash_release(&table, NULL);
    assert_null(mk_hash_find(&table, 0));
}

/* Nodes of one chain, and those of one hash, are told apart. */
TEST(equal_hashes)
{
    assert_int_equal(insert(0, 7), 0);
    assert_int_equal(insert(1, 7), 0);
    assert_int_equal(insert(2, 7 + CHAINS_MIN), 0);
    assert_int_equal(count(7), 2);
    assert_int_equal(count(7 + CHAINS_MIN), 1);
    assert_int_equal(count(7 + 2 * CHAINS_MIN), 0);
    mk_hash_remove(&table, &items[0].node);
    assert_int_equal(count(7), 1);
    assert_ptr_equal(mk_hash_find(&table, 7), &items[1].node);
    mk_hash_remove(&table, &items[2].node);
    assert_null(mk_hash_find(&table, 7 + CHAINS_MIN));
    mk_hash_remove(&table, &items[1].node);
    assert_int_equal(table.n, 0);
    mk_hash_release(&table, NULL);
}

TEST(many)
{
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(insert(i, mk_hash_number(i)), 0);
    assert_int_equal(table.n, MANY);
    assert_in_range(table.n_chains, MANY, 2 * MANY);
    for (unsigned i = 0; i < MANY; i += 2)
        mk_hash_remove(&table, &items[i].node);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(count(mk_hash_number(i)), i % 2);
    mk_hash_release(&table, NULL);
    assert_null(table.chains);
}

/* Consecutive numbers, and those that differ in their upper bits, do not share few chains. */
TEST(numbers)
{
    for (unsigned shift = 0; shift <= 26; shift++) {
        unsigned seen[64] = {0}, used = 0;
        for (uint32_t i = 0; i < 64; i++)
            used += seen[mk_hash_number((uint32_t)i << shift) % 64]++ == 0;
        assert_in_range(used, 16, 64);
    }
}

/* The account gives memory for the first chains only: more items make these longer. */
TEST(no_memory_to_grow)
{
    struct mk_account account = {.bytes_max = CHAINS_MIN * sizeof(void *)};
    for (unsigned i = 0; i < MANY; i++) {
        items[i].number = i;
        assert_int_equal(mk_hash_insert(&table, &account, &items[i].node, mk_hash_number(i)), 0);
    }
    assert_int_equal(table.n_chains, CHAINS_MIN);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(count(mk_hash_number(i)), 1);
    mk_hash_release(&table, &account);
    assert_int_equal(account.bytes, 0);
}

TEST(no_memory)
{
    struct mk_account account = {.bytes_max = 1};
    assert_int_equal(mk_hash_insert(&table, &account, &items[0].node, 1), -ENOMEM);
    assert_int_equal(table.n, 0);
    assert_null(mk_hash_find(&table, 1));
}
