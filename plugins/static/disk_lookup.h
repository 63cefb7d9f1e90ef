// SPDX-License-Identifier: Apache-2.0
/*
 * Lookups that may wait for a disk, on a disk thread. However many requests of a worker wait for one path, one lookup
 * runs for them.
 */
#ifndef STATIC_DISK_LOOKUP_H
#define STATIC_DISK_LOOKUP_H

#include <monkey/base/list.h>

#include "site.h"

/* The lookups of a worker under one generation. */
struct disk_lookups {
    struct mk_list running;
};

static inline void disk_lookups_init(struct disk_lookups *all)
{
    mk_list_init(&all->running);
}

/* What follows a lookup, in the worker's thread. */
struct disk_lookup_functions {
    /* Responds with the result, or lets another plugin do it. */
    void (*respond)(struct mk_request *req, const struct static_site *site, const struct find_result *found);
    /*
     * Serves a request again that has waited for another one's lookup; if it needs a disk thread still, it has a lookup
     * of its own. Returns 0 or MK_DECLINED.
     */
    int (*serve_again)(struct mk_request *req, const struct static_location *at);
};

/*
 * Looks a path up on a disk thread, or waits for a lookup of it that runs. `root_check_ms`: when
 * mk__static_root_begin_check() returned true, else 0. `all`: NULL for a separate lookup.
 * Returns 0 or -errno.
 */
int mk__static_disk_lookup_start(struct disk_lookups *all, struct mk_request *req, const struct static_location *at,
                                 const struct mk_accept *accept, uint64_t root_check_ms,
                                 const struct disk_lookup_functions *functions);

#endif
