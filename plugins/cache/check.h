// SPDX-License-Identifier: Apache-2.0
/*
 * Decides whether an entry may be served, and revalidates it if that is due.
 */
#ifndef CACHE_CHECK_H
#define CACHE_CHECK_H

#include "worker.h"

enum check_result {
    CHECK_VALID,
    CHECK_CHANGED, /* the entry was removed */
    CHECK_WAITS,   /* only a disk can tell: the name is to be opened by a thread that may wait */
    CHECK_SHORT,   /* there are no descriptors now: the name is to be opened in another turn */
};

/* Checks the entry of a lookup by the policy of its path. */
enum check_result check_entry(struct cache_lookup *l, struct mk_item *item);

#endif
