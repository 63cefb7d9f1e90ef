// SPDX-License-Identifier: Apache-2.0
/*
 * The acceptors of one loop: a worker's, or those of the process context. Each is allocated by itself, because the
 * loop knows its address.
 */
#ifndef MK_SERVER_LISTEN_ACCEPTORS_H
#define MK_SERVER_LISTEN_ACCEPTORS_H

#include "server/listen/acceptor.h"
#include "server/listen/listeners.h"

struct mk__acceptors {
    struct mk__acceptor **items;
    unsigned n;
};

/* For what loop `index` of `loops` watches of the sockets that are kept; not open yet. 0 or -ENOMEM. */
int mk__acceptors_make(struct mk__acceptors *list, const struct mk__listeners *listeners, unsigned index,
                       unsigned loops);
void mk__acceptors_free(struct mk__acceptors *list);

/* Opens one of a list. In the loop's thread, or before it runs. 0 or -errno. */
typedef int (*mk__acceptors_open_fn)(void *ctx, struct mk__acceptor *a);

/* Opens those that are not open: 0, or the -errno of the last that failed, which the log tells. */
int mk__acceptors_open(struct mk__acceptors *list, mk__acceptors_open_fn open, void *ctx);
void mk__acceptors_close(struct mk__acceptors *list);
/*
 * Goes over to the list `next`, which gets those that are not needed any more: an address that nobody wants is
 * closed, a socket that another loop watches from now on is left to it.
 */
void mk__acceptors_replace(struct mk__acceptors *list, struct mk__acceptors *next, mk__acceptors_open_fn open,
                           void *ctx);

#endif
