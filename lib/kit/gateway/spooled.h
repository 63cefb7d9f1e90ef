// SPDX-License-Identifier: Apache-2.0
/*
 * A body of an exchange that waits in a spool (<monkey/kit/spool.h>). Jobs of the spool may be under way when the
 * exchange ends: the worker is held until then.
 */
#ifndef MK_GATEWAY_SPOOLED_H
#define MK_GATEWAY_SPOOLED_H

#include <monkey/kit/spool.h>
#include <monkey/plugin.h>

/* Is called for enum mk_spool_ready, in the loop; it may close the spool. */
typedef void (*mk__gw_spooled_fn)(void *user, unsigned what);

struct mk__gw_spooled {
    struct mk_spool *spool;
    struct mk_worker *worker;
    struct mk_account *account;
    mk__gw_spooled_fn ready;
    void *user;
};

struct mk__gw_spooled_limits {
    size_t memory_max;
    uint64_t file_max;
    bool is_kept;
};

/* Opens a spool of the budget of the worker's generation. Returns 0, -EDQUOT or -ENOMEM. */
int mk__gw_spooled_open(struct mk_worker *worker, const struct mk__gw_spooled_limits *limits, mk__gw_spooled_fn ready,
                        void *user, struct mk__gw_spooled **ret);
/* Drops what it holds. NULL is allowed. */
void mk__gw_spooled_close(struct mk__gw_spooled *s);

#endif
