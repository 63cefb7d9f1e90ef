// SPDX-License-Identifier: Apache-2.0
/*
 * Resolves names: getaddrinfo(3) runs on its own threads, and each loop caches the results for a short time in a
 * small table.
 *
 *     mk__resolver_get ─► resolved ─────────────────────────► addresses
 *          └─► queued ─► running (2 threads) ─message─► resolved
 *
 * The table is created with the first name. Dials to the same name share one lookup. getaddrinfo() cannot be
 * interrupted, and may take half a minute when name servers are unreachable. Its thread is detached and never joined;
 * the thread or the loop, the one that ends last, frees the data that they share.
 */
#ifndef MK_NET_RESOLVER_H
#define MK_NET_RESOLVER_H

#include <monkey/base/dial.h>

#include "loop/loop.h"
#include "net/addr.h"

enum {
    MK__RESOLVER_ENTRIES_MAX = 64,       /* names in the table of a loop */
    MK__RESOLVER_RUNNING_MAX = 2,        /* lookups of a loop that run at the same time */
    MK__RESOLVER_TTL_MS = 30000,         /* how long addresses are cached */
    MK__RESOLVER_NEGATIVE_TTL_MS = 5000, /* how long a failure is cached */
};

/*
 * Looks up the addresses of `host` (with port 0), at most `max`. Called on its own thread.
 * Returns the number of addresses or -errno.
 */
typedef int (*mk__resolver_fn)(const char *host, struct mk__addr *ret, unsigned max);

enum mk__resolver_state { MK__RESOLVER_QUEUED, MK__RESOLVER_RUNNING, MK__RESOLVER_RESOLVED };

struct mk__resolver_entry {
    struct mk_list node;    /* in the table; least recently used first */
    struct mk_list waiting; /* tasks to schedule when it is resolved */
    struct mk_message message;
    struct mk__resolver *resolver;
    unsigned users; /* dials that hold the entry */
    enum mk__resolver_state state;
    uint64_t expires_ms;
    /* Constant once the name is resolved. */
    int err;
    unsigned n;
    struct mk__addr addrs[MK_DIAL_ADDRESSES_MAX];
    struct mk_str host;
    char text[];
};

/*
 * Finds or looks up `host`. An entry that is returned is held until mk__resolver_put().
 * Returns 0 (`*ret_name` is resolved, perhaps to a failure: see `err`), MK_AGAIN (`task` will be scheduled when it is
 * resolved; mk_task_cancel() works as usual), -ENOMEM, or -EBUSY (too many names are being looked up).
 */
int mk__resolver_get(struct mk_loop *loop, struct mk_str host, struct mk_task *task,
                     struct mk__resolver_entry **ret_name);
/* Ends the hold. A queued name that is no longer held is not looked up. */
void mk__resolver_put(struct mk__resolver_entry *name);

/*
 * Creates the loop's table with another resolver, for tests; else mk__resolver_get() creates it.
 * Returns 0 or -ENOMEM.
 */
int mk__resolver_open(struct mk_loop *loop, mk__resolver_fn look_up);
/*
 * Closes the table, before the loop is closed. Does not wait for running lookups. Names that are held then may only be
 * given back, by one thread.
 */
void mk__resolver_close(struct mk_loop *loop);

/*
 * Looks up `host` with getaddrinfo(3).
 * Returns the number of addresses; -ENXIO (the name has none), -EAGAIN (no name server answers), -ENOMEM or another
 * -errno.
 */
int mk__resolver_getaddrinfo(const char *host, struct mk__addr *ret, unsigned max);

#endif
