// SPDX-License-Identifier: Apache-2.0
/*
 * A table of clients with a small record for each, of bounded memory, that all threads share: counts in it are exact
 * over all workers.
 *
 *     address ─► network (IPv4 /32, IPv6 /64) ─► keyed hash ─► shard: lock, chains, least recently used entry
 *
 * A client is a network, because one customer of an IPv6 provider has a /64 at least. The clients of Unix sockets are
 * one client, and those whose address is unknown another. The key of the hash is random: a client cannot choose
 * addresses that fall into one chain.
 *
 * A full shard replaces its least recently used entry: the client that it belonged to starts anew. An entry that says
 * it has nothing worth keeping (see mk_client_table_unlock()) is replaced without a loss; others are counted as
 * evicted.
 *
 * The record itself does not know its users: all of them must agree on when it is idle. One that takes an entry for
 * idle which another still needs makes that one forget its client. So users with different rules keep the latest time
 * in the record, and pass that on.
 *
 * Time is a number of the caller's clock, in any unit. Any thread may call these functions, except new and free.
 *
 * The functions are in the kit, libmonkey-kit.a: plugins link it (pkg-config monkey-kit).
 */
#ifndef MONKEY_CLIENT_TABLE_H
#define MONKEY_CLIENT_TABLE_H

#include "../base/address.h"

MK_C_BEGIN

struct mk_client_table;

/* For mk_client_table_unlock(): the record is in use, and is replaced only if no other is left. */
#define MK_CLIENT_IN_USE UINT64_MAX

/* Names an entry without pointing to it: harmless after the entry was evicted. */
struct mk_client_ref {
    uint32_t entry; /* 0: none */
    uint32_t life;
};

struct mk_client_counts {
    uint64_t entries; /* in the table now, used up ones included */
    uint64_t evicted; /* replaced while their records were worth keeping */
};

/*
 * Returns an empty table of at least `clients` entries with records of `record_bytes` bytes, aligned to 8; NULL without
 * memory or without random numbers. Pages of the table take memory once they are used. `v4_bits` and `v6_bits`: the
 * length of the networks that are one client, 0: 32 and 64. Ranges, which are asserted: 1 to 2^26 clients, records of
 * at most 64 KB, networks of at most 32 and 128 bits.
 */
MK_API struct mk_client_table *mk_client_table_new(uint32_t clients, uint32_t record_bytes, unsigned v4_bits,
                                                   unsigned v6_bits);
/* Frees the table; NULL is allowed. No other thread may use it any more. */
MK_API void mk_client_table_free(struct mk_client_table *t);

/*
 * Returns the record of a client, and locks its shard until mk_client_table_unlock(): the caller must not block, and
 * must not lock another record meanwhile. A record that is new, or whose time has come, is zeroed.
 */
MK_API void *mk_client_table_lock(struct mk_client_table *t, const struct mk_address *client, uint64_t now);
/*
 * Returns the record of a client as mk_client_table_lock(), but NULL if it has none: then nothing is locked. Does not
 * count as a use of the entry.
 */
MK_API void *mk_client_table_find(struct mk_client_table *t, const struct mk_address *client, uint64_t now);
/* Returns the record of an entry as mk_client_table_lock(); NULL if it was evicted: then nothing is locked. */
MK_API void *mk_client_table_lock_ref(struct mk_client_table *t, struct mk_client_ref ref);
/* Returns a reference to a locked record. */
MK_API struct mk_client_ref mk_client_table_ref(const struct mk_client_table *t, const void *record);
/*
 * Unlocks a record. From the time `idle_at` on the record is as a new one: it may be replaced without a loss, and is
 * zeroed when its client comes again, whatever earlier calls said. MK_CLIENT_IN_USE: at no time.
 */
MK_API void mk_client_table_unlock(struct mk_client_table *t, void *record, uint64_t idle_at);

/* Returns counts of the table. */
MK_API struct mk_client_counts mk_client_table_counts(struct mk_client_table *t);

MK_C_END

#endif
