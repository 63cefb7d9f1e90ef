// SPDX-License-Identifier: Apache-2.0
/*
 * The records of threads (threads.h).
 */
#include "threads.h"

#include <errno.h>

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    thread_of(base)->account = mk_worker_account(worker);
}

static void release_thread(struct mk_thread *base)
{
    mk_account_free(NULL, thread_of(base)->sketch, sizeof(struct sketch));
}

const struct mk_thread_type thread_type = {.bytes = sizeof(struct thread),
                                           .open = open_thread,
                                           .release = release_thread};

int thread_count_paths(struct thread *t)
{
    if (!t->sketch && (t->sketch = mk_account_alloc(NULL, sizeof(*t->sketch))))
        memset(t->sketch, 0, sizeof(*t->sketch));
    return t->sketch ? 0 : -ENOMEM;
}

uint32_t thread_count_connections(const struct thread *t)
{
    const struct mk_list *newest = t->base.workers.prev;
    return mk_worker_connections(MK_CONTAINER_OF((uintptr_t)newest, struct mk_thread_worker, node)->worker);
}
