// SPDX-License-Identifier: Apache-2.0
/*
 * Random bytes of the kernel, of which a thread takes a page with one call of getrandom(2): for IDs that each request
 * needs. Secrets are better taken from mk_random(), since bytes wait in memory here.
 *
 * No byte is given out twice, not even in a child of fork(2), which finds the page empty (MADV_WIPEONFORK).
 */
#ifndef MK_BASE_RANDOM_POOL_H
#define MK_BASE_RANDOM_POOL_H

#include <stddef.h>

/* All zeros: has no page yet. For one thread. */
struct mk__random_pool {
    struct mk__random_page *page;
};

enum { MK__RANDOM_TAKE_MAX = 64 };

/*
 * Fills up to MK__RANDOM_TAKE_MAX bytes at `to`. Without a page, which the system may not have, each call asks the
 * kernel. Returns 0, or -errno as mk_random().
 */
int mk__random_pool_take(struct mk__random_pool *pool, void *to, size_t bytes);
void mk__random_pool_release(struct mk__random_pool *pool);

#endif
