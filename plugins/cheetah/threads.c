// SPDX-License-Identifier: Apache-2.0
/*
 * The records of threads (threads.h).
 */
#include "threads.h"

#include <monkey/inspect.h>

#include <assert.h>

struct mk_worker *thread_worker(const struct thread *t)
{
    struct mk_worker *worker = NULL;
    MK_LIST_EACH_ITEM(&t->base.workers, struct mk_thread_worker, node, w) {
        worker = w->worker;
        if (worker == mk_inspect_current(worker))
            break; /* the one after it is of a generation that is not accepted yet */
    }
    return worker;
}

static bool is_of_server(const struct mk_thread *thread, const void *server)
{
    return MK_CONTAINER_OF((uintptr_t)thread, struct thread, base)->server == server;
}

unsigned thread_list_all(const struct thread *t, struct mk_thread **ret, unsigned max)
{
    unsigned n = mk_threads_list(t->base.threads, ret, max, is_of_server, t->server);
    return n < max ? n : max;
}

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    struct thread *t = thread_of(base);
    t->server = mk_inspect_server(mk_worker_generation(worker));
    mk_list_init(&t->at_end);
    mk_list_init(&t->clients);
}

static void end_thread(struct mk_thread *base)
{
    struct thread *t = thread_of(base);
    assert(mk_list_empty(&t->clients));
    while (!mk_list_empty(&t->at_end)) {
        struct thread_at_end *one = MK_LIST_FIRST(&t->at_end, struct thread_at_end, node);
        mk_list_del(&one->node);
        one->fn(one);
    }
}

const struct mk_thread_type thread_type = {.bytes = sizeof(struct thread), .open = open_thread, .end = end_thread};
