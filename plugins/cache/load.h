// SPDX-License-Identifier: Apache-2.0
/*
 * Opens a name, and keeps what it is as an entry if that pays.
 */
#ifndef CACHE_LOAD_H
#define CACHE_LOAD_H

#include "worker.h"

/* Opens the name of a lookup, for which there is no entry. With `keep`, an entry is made if the store admits it. */
struct mk_named_file load_name(struct cache_lookup *l, bool keep);

enum load_result {
    LOAD_NONE, /* it is no file */
    LOAD_KEPT,
    LOAD_PRESENT, /* there was an entry, and it was not to be loaded again */
    LOAD_CHANGED, /* it was changed a moment ago, and may change again */
    LOAD_NO_ROOM, /* it would displace others, is too large, or there is no memory */
};

/*
 * Opens the name of a lookup on a disk thread, and keeps what it is, whether or not it was asked for before. `refresh`:
 * also if there is an entry, or if that displaces others. Returns what it is, without a descriptor.
 */
struct mk_named_file load_and_wait(struct cache_lookup *l, bool refresh, enum load_result *ret);

/*
 * Opens the name of a lookup (enum mk_file_open). Without descriptors those of the cache are given back, and it is
 * tried again: those that were given back in an earlier turn are closed then. Returns a descriptor or -errno.
 */
int load_open(const struct cache_lookup *l, uint32_t flags);

/* Returns what the entry of an item says, for the lookup of its name. */
struct mk_named_file load_describe(const struct cache_lookup *l, struct mk_item *item);

#endif
