// SPDX-License-Identifier: Apache-2.0
/*
 * What the server counts: the requests of each host, connections, refusals, reloads. Opens the counters, and adds the
 * requests when they end. Plugins count with <monkey/counters.h>.
 */
#ifndef MK_SERVER_COUNTS_H
#define MK_SERVER_COUNTS_H

#include "base/counters.h"
#include "server/generation/generation.h"

/* Counters of the process; each is counted in the thread that sees it. */
enum mk__count {
    MK__COUNT_STARTS, /* of servers */
    MK__COUNT_RELOADS,
    MK__COUNT_FAILED_RELOADS,
    MK__COUNT_REFUSED_OVER_CAPACITY,
    MK__COUNT_EVICTED,
    MK__COUNT_LOST_LOG_LINES,
    MK__COUNTS,
};

/* Opens the counters that do not depend on hosts, and counts the start of a server. */
void mk__counts_start(void);
/* Adds what is counted without the memory, before it is closed. Any thread. */
void mk__counts_flush(void);
/*
 * Opens the counters of the hosts of a generation that will serve. A host without memory for them is not counted. The
 * places of those that no generation has any more are used again, once there is no room for others.
 */
void mk__counts_open_hosts(struct mk_generation *g);
/* The generation ends: its hosts count no more. */
void mk__counts_close_hosts(struct mk_generation *g);

/* Connects a thread with its memory. In any thread, before it runs; mk__counts_close_thread() when it has ended. */
void mk__counts_open_thread(struct mk__context *http);
void mk__counts_close_thread(struct mk__context *http);

/* Counts in a thread that is not a worker, or anywhere where it is rare. */
void mk__counts_add(enum mk__count count, int64_t n);
/* Counts a request that ends, in its worker's thread. */
void mk__counts_add_request(const struct mk_request *req, const struct mk_host *host);

#endif
