// SPDX-License-Identifier: Apache-2.0
/*
 * Ends the dthreads of a worker whose thread ends. Their stacks must run in the thread in which they have begun,
 * because compilers keep addresses of thread-local variables (errno) in registers. The plugin's hook worker_stop is
 * called in another thread then.
 */
#ifndef DUDA_CORE_DTHREAD_DTHREAD_THREADS_H
#define DUDA_CORE_DTHREAD_DTHREAD_THREADS_H

struct service_worker;

/* Has the end of this thread end the dthreads of `w`. Returns 0 or -ENOMEM. */
int dthread_threads_enter(struct service_worker *w);
/* They have ended. Any thread. */
void dthread_threads_leave(struct service_worker *w);

#endif
