// SPDX-License-Identifier: Apache-2.0
/*
 * The addresses of names: looked up by getaddrinfo(3) on threads of their own, and remembered for a short time in a
 * small table of the loop's.
 *
 *     mk__resolver_get ─► known ────────────────────────────► addresses
 *          └─► queued ─► running (2 threads) ─message─► known
 *
 * The table is made with the first name. Dials that want the same name share one lookup. getaddrinfo cannot be
 * interrupted, and may take half a minute when name servers are away: nobody waits for its thread, which is detached;
 * whoever comes last, thread or loop, frees what they share.
 */
#ifndef MK_NET_RESOLVER_H
#define MK_NET_RESOLVER_H

#include <monkey/dial.h>

#include "loop/loop.h"
#include "net/addr.h"

enum {
    MK__RESOLVER_ENTRIES_MAX = 64,       /* in the table of a loop */
    MK__RESOLVER_RUNNING_MAX = 2,        /* lookups of a loop at the same time */
    MK__RESOLVER_TTL_MS = 30000,         /* how long an answer is believed */
    MK__RESOLVER_NEGATIVE_TTL_MS = 5000, /* ... and a failure */
};

/* The addresses of `host` (ports 0), at most `max` of them: how many, or -errno. In a thread of its own. */
typedef int (*mk__resolver_fn)(const char *host, struct mk__addr *ret, unsigned max);

enum mk__resolver_state { MK__RESOLVER_QUEUED, MK__RESOLVER_RUNNING, MK__RESOLVER_RESOLVED };

struct mk__resolver_entry {
    struct mk_list node;    /* in the table: the least recently used first */
    struct mk_list waiting; /* tasks */
    struct mk_message message;
    struct mk__resolver *resolver;
    unsigned users; /* in the loop */
    enum mk__resolver_state state;
    uint64_t expires_ms;
    /* Constant when it is known. */
    int err;
    unsigned n;
    struct mk__addr addrs[MK_DIAL_ADDRESSES_MAX];
    struct mk_str host;
    char text[];
};

/*
 * Who is `host`? 0: `*ret_name` is known and held (perhaps as a failure: err). MK_AGAIN: it is held, and `task` will be
 * scheduled when it is known; mk_task_cancel() as for any task. -ENOMEM; -EBUSY: too many are being looked up.
 */
int mk__resolver_get(struct mk_loop *loop, struct mk_str host, struct mk_task *task,
                     struct mk__resolver_entry **ret_name);
void mk__resolver_put(struct mk__resolver_entry *name);

/* The loop's table with a resolver of the caller's, for tests; otherwise it comes by itself. 0 or -ENOMEM. */
int mk__resolver_open(struct mk_loop *loop, mk__resolver_fn look_up);
/* Before the loop is closed. No name may be held. Does not wait for lookups. */
void mk__resolver_close(struct mk_loop *loop);

/* The resolver of the system. */
int mk__resolver_getaddrinfo(const char *host, struct mk__addr *ret, unsigned max);

#endif
