// SPDX-License-Identifier: Apache-2.0
/*
 * What this plugin counts in each thread: the same under all generations, so that figures last over a reload.
 */
#ifndef STATUS_THREADS_H
#define STATUS_THREADS_H

#include "sketch.h"

#include <monkey/threads.h>

#include <stdatomic.h>

struct thread {
    struct mk_thread base;
    struct mk_account *account; /* of the worker */
    _Atomic unsigned waiting;   /* questions that it has not answered */
    struct sketch *sketch;      /* of the thread itself, as `requests`; NULL: paths are not counted */
    uint64_t requests;
};

extern const struct mk_thread_type thread_type;

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* Counts paths from now on. Returns 0 or -ENOMEM. */
int thread_count_paths(struct thread *t);
/* Returns how many connections are open in the thread, in which the caller runs. */
uint32_t thread_count_connections(const struct thread *t);

#endif
