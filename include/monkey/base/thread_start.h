// SPDX-License-Identifier: Apache-2.0
/*
 * Starts threads.
 */
#ifndef MONKEY_THREAD_START_H
#define MONKEY_THREAD_START_H

#include <pthread.h>
#include <stddef.h>

#include "../status.h"

MK_C_BEGIN

/*
 * Starts a thread that gets no signals but those of its faults, since the program handles the others in its own
 * threads. It may use all processors of the process, also if the calling worker is bound to one. `ret` NULL: nothing
 * joins the thread. `stack_bytes` 0: the system's default. Any thread.
 * Returns 0, -EAGAIN (there are too many threads, or no memory) or another -errno of pthread_create(3).
 */
MK_API int mk_thread_start(pthread_t *ret, size_t stack_bytes, void *(*fn)(void *ctx), void *ctx);

MK_C_END

#endif
