// SPDX-License-Identifier: Apache-2.0
/*
 * The acceptors of one loop: a worker's, or the main thread's. Each acceptor is allocated by itself, because the loop
 * keeps its address.
 */
#ifndef MK_SERVER_LISTEN_ACCEPTORS_H
#define MK_SERVER_LISTEN_ACCEPTORS_H

#include "server/listen/acceptor.h"
#include "server/listen/listeners.h"

struct mk__acceptors {
    struct mk__acceptor **items;
    unsigned n;
};

/*
 * Makes acceptors, not open yet, for the sockets that loop `index` of `loops` watches; only listeners with `kept`
 * count. Returns 0 or -ENOMEM.
 */
int mk__acceptors_make(struct mk__acceptors *list, const struct mk__listeners *listeners, unsigned index,
                       unsigned loops);
void mk__acceptors_free(struct mk__acceptors *list);

/* Opens one acceptor of a list, in the loop's thread or before the loop runs. Returns 0 or -errno. */
typedef int (*mk__acceptors_open_fn)(void *ctx, struct mk__acceptor *a);

/* Opens those that are not open yet, and logs failures. Returns 0, or the -errno of the last failure. */
int mk__acceptors_open(struct mk__acceptors *list, mk__acceptors_open_fn open, void *ctx);
void mk__acceptors_close(struct mk__acceptors *list);
/*
 * Replaces the list by `next`; acceptors that both have stay open. `next` receives the others: an acceptor of an
 * address that is not configured any more is closed, one whose socket another loop watches from now on is stopped.
 */
void mk__acceptors_replace(struct mk__acceptors *list, struct mk__acceptors *next, mk__acceptors_open_fn open,
                           void *ctx);

#endif
