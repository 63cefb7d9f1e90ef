// SPDX-License-Identifier: Apache-2.0
/*
 * The state of a writer, for what wakes its thread.
 */
#ifndef MK_LOG_WRITER_WRITER_H
#define MK_LOG_WRITER_WRITER_H

#include "log_target.h"

#include <errno.h>
#include <unistd.h>

struct mk_log_writer {
    const struct mk_log_writer_type *type;
    struct mk_list targets; /* mk__log_lock */
    pthread_t thread;
    _Atomic bool running; /* set with mk__log_lock */
    int wake_fd;          /* -1: the thread was never started; then open until the end, as producers may write to it */
    _Atomic uint32_t flush_ms;
    _Atomic bool notified;  /* there are lines */
    _Atomic bool flush_now; /* it does not wait for more */
    _Atomic bool reopen, stop;
};

/* Sets a flag of the writer, and wakes its thread if the flag was not set. Any thread. */
static inline void mk__log_writer_signal(struct mk_log_writer *w, _Atomic bool *flag)
{
    uint64_t one = 1;
    if (atomic_exchange(flag, true))
        return;
    while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* Frees a producer that was released, with the lines that wait. With the lock, or if no other thread can find it. */
void mk__producer_remove(struct mk_log_producer *producer);

#endif
