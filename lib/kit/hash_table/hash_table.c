// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table with chains (<monkey/kit/hash_table.h>).
 */
#include <monkey/kit/hash_table.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { CHAINS_MIN = 16 };

static struct mk_hash_node **get_chain(const struct mk_hash_table *table, uint64_t hash)
{
    assert((table->n_chains & (table->n_chains - 1)) == 0);
    return &table->chains[hash & (table->n_chains - 1)];
}

static void link_node(struct mk_hash_table *table, struct mk_hash_node *node)
{
    struct mk_hash_node **chain = get_chain(table, node->hash);
    node->next = *chain;
    *chain = node;
}

/* Doubles the chains. Without memory they stay as they are. */
static void grow_chains(struct mk_hash_table *table, struct mk_account *account)
{
    const struct mk_hash_table old = *table;
    size_t n = old.n_chains ? 2 * old.n_chains : CHAINS_MIN;
    struct mk_hash_node **chains = mk_account_zalloc(account, n * sizeof(struct mk_hash_node *));
    if (!chains)
        return;
    table->chains = chains;
    table->n_chains = n;
    for (size_t i = 0; i < old.n_chains; i++) {
        for (struct mk_hash_node *node = old.chains[i], *next; node; node = next) {
            next = node->next;
            link_node(table, node);
        }
    }
    mk_account_free(account, old.chains, old.n_chains * sizeof(struct mk_hash_node *));
}

int mk_hash_insert(struct mk_hash_table *table, struct mk_account *account, struct mk_hash_node *node, uint64_t hash)
{
    if (table->n >= table->n_chains)
        grow_chains(table, account);
    if (!table->chains)
        return -ENOMEM;
    node->hash = hash;
    link_node(table, node);
    table->n++;
    return 0;
}

void mk_hash_remove(struct mk_hash_table *table, struct mk_hash_node *node)
{
    struct mk_hash_node **place = get_chain(table, node->hash);
    assert(table->n > 0);
    while (*place != node)
        place = &(*place)->next;
    *place = node->next;
    table->n--;
}

void mk_hash_release(struct mk_hash_table *table, struct mk_account *account)
{
    mk_account_free(account, table->chains, table->n_chains * sizeof(struct mk_hash_node *));
    *table = (struct mk_hash_table){.n = 0};
}
