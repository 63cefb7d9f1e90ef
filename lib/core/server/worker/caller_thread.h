// SPDX-License-Identifier: Apache-2.0
/*
 * The worker in the thread of a program that runs the turns of its loop itself: mk_server_run_once(). Everything else
 * about it is as for a worker with its own thread (server/worker/thread.h). All functions run in that thread.
 */
#ifndef MK_SERVER_CALLER_THREAD_H
#define MK_SERVER_CALLER_THREAD_H

#include "server/worker/thread.h"

/* Takes the calling thread for the loop, and calls the plugins' worker_start. Returns 0 or -errno, as
 * mk__thread_start().
 */
MK_COLD int mk__caller_thread_start(struct mk__thread *t);
/*
 * Runs one turn, which waits for `timeout_ms` at most (below 0: without a limit). SIGPIPE is blocked meanwhile, and one
 * that the turn has caused is discarded. Returns 0, -ECANCELED (the loop was told to stop, now or before) or another
 * -errno.
 */
int mk__caller_thread_turn(struct mk__thread *t, int timeout_ms);
/* Runs the loop until it is asked to stop, and then as a thread ends: in place of mk__thread_join(). */
MK_COLD void mk__caller_thread_finish(struct mk__thread *t);
/* Returns whether this is the thread of the loop. */
bool mk__caller_thread_is_current(const struct mk__thread *t);
/* Returns the milliseconds until the next turn has something to do without any event; -1: nothing. */
int mk__caller_thread_timeout_ms(const struct mk__thread *t);

#endif
