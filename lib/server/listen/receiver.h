// SPDX-License-Identifier: Apache-2.0
/*
 * The worker's side of the fair scheduler (server/listen/balance.h): takes the connections that the main thread hands
 * over, and counts. Left out of small builds. All functions run in the worker's thread, or while it does not run.
 */
#ifndef MK_SERVER_LISTEN_RECEIVER_H
#define MK_SERVER_LISTEN_RECEIVER_H

#include "server/thread.h"

/* Prepares the thread; `enabled`: the main thread will hand over connections. */
void mk__receiver_open(struct mk__thread *t, bool enabled);
/*
 * Closes the connections that were handed over and not taken yet: each has one event in the epoll queue. The main
 * thread must not hand over any more.
 */
void mk__receiver_close(struct mk__thread *t);

/* Counts a connection that the worker has accepted itself, so that the balancer's load stays right. */
void mk__receiver_count_accepted(struct mk__thread *t);
/* Counts a connection that was closed. */
void mk__receiver_count_closed(struct mk__thread *t);

#endif
