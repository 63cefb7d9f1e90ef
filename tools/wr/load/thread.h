// SPDX-License-Identifier: Apache-2.0
/*
 * A thread of the generator: a loop that opens its share of the connections little by little, gives them requests, and
 * ends by time, number or request.
 */
#ifndef WR_LOAD_THREAD_H
#define WR_LOAD_THREAD_H

#include "loader.h"

/*
 * Prepares a thread that begins at `start_ns` and writes `event_fd` at its end; memory is of `arena`.
 * Returns 0 or -errno.
 */
int thread_init(struct loader *l, const struct plan *plan, struct mk_arena *arena, unsigned index, uint64_t start_ns,
                int event_fd);
/* The thread. */
void *thread_run(void *loader);
/* Frees the connections and closes the loop, after the thread has ended. */
void thread_release(struct loader *l);
/* Ends the thread soon. Any thread may call it, once. */
void thread_stop(struct loader *l);

#endif
