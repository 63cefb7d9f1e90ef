// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table of items that contain their node. It grows to a chain for each item; it does not shrink.
 *
 *     struct user { struct mk_hash_node node; char name[32]; };
 *
 *     struct mk_hash_node *n;
 *     MK_HASH_EACH(table, hash, n)
 *         if (strcmp(MK_CONTAINER_OF(n, struct user, node)->name, name) == 0) ...
 *
 * The caller chooses the hash: one with a key (<monkey/base/siphash.h>) for what clients may choose, mk_hash_add() for
 * others, and mixes a number by mk_hash_number(). It locks the table where threads share it.
 */
#ifndef MONKEY_HASH_TABLE_H
#define MONKEY_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "../base/arena.h"
#include "../base/list.h"

MK_C_BEGIN

/* In an item; for the table. */
struct mk_hash_node {
    struct mk_hash_node *next;
    uint64_t hash;
};

/* Zeroed: empty. */
struct mk_hash_table {
    struct mk_hash_node **chains; /* NULL: it has had no item */
    size_t n_chains;              /* a power of two */
    size_t n;                     /* items */
};

/* Returns `node`, or the first one after it that has the hash; NULL if there is none. */
static inline struct mk_hash_node *mk_hash_seek(struct mk_hash_node *node, uint64_t hash)
{
    while (node && node->hash != hash)
        node = node->next;
    return node;
}

/* Returns the first node with the hash, or NULL. */
static inline struct mk_hash_node *mk_hash_find(const struct mk_hash_table *table, uint64_t hash)
{
    return table->chains ? mk_hash_seek(table->chains[hash & (table->n_chains - 1)], hash) : NULL;
}

/*
 * Visits the nodes with a hash, which are seldom more than one; the hash is evaluated again for each. The table must
 * not change meanwhile.
 */
#define MK_HASH_EACH(table, the_hash, node) \
    for ((node) = mk_hash_find((table), (the_hash)); (node); (node) = mk_hash_seek((node)->next, (the_hash)))

/* Returns the hash of a number that no client chooses: each bit of it changes the lower ones. */
static inline uint64_t mk_hash_number(uint32_t number)
{
    uint64_t hash = number * 0x9e3779b97f4a7c15U; /* the golden ratio of 2^64 (Knuth) */
    return hash ^ hash >> 32;
}

/*
 * Adds a node that is in no table. Returns 0, or -ENOMEM: only for the first item of all. Later ones are always added,
 * to longer chains where there is no memory for more. `account`: of the chains, the same in all calls; may be NULL.
 */
int mk_hash_insert(struct mk_hash_table *table, struct mk_account *account, struct mk_hash_node *node, uint64_t hash);
/* Removes a node that is in the table. */
void mk_hash_remove(struct mk_hash_table *table, struct mk_hash_node *node);
/* Frees the chains; items that are left are the caller's. The table is empty then. */
void mk_hash_release(struct mk_hash_table *table, struct mk_account *account);

MK_C_END

#endif
