// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the file of a path (find.h), again if the root was swapped while several names were tried.
 */
#include "find.h"

#include "index.h"
#include "tryfiles.h"

#include <errno.h>
#include <unistd.h>

enum { TRIES_MAX = 64 };

static struct find_result find_once(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                    bool cached)
{
    return !MK_SMALL && site->host->n_tries ? tryfiles_find(site, path, accept, cached)
                                            : index_find(site, path, accept, cached);
}

/* The thread that swaps the root holds the lock. */
static void wait_for_swap(struct static_site *site)
{
    pthread_mutex_lock(&site->lock);
    pthread_mutex_unlock(&site->lock);
}

/* If swap_seq has changed, some names may have been those of another root: find them again. */
struct find_result find_path(struct static_site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    for (int i = 0;; i++) {
        unsigned swap_seq = site->swap_seq;
        bool in_memory = site->in_memory && cached; /* then open_name() does not enter other file systems */
        struct find_result f = find_once(site, path, accept, cached);
        f.in_memory = in_memory;
        if ((swap_seq == site->swap_seq && swap_seq % 2 == 0) || i == TRIES_MAX)
            return f;
        if (f.fd >= 0)
            close(f.fd);
        if (cached)
            return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = EAGAIN};
        wait_for_swap(site);
    }
}
