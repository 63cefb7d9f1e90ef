// SPDX-License-Identifier: Apache-2.0
/*
 * What this plugin keeps for each thread: its clients, and what ends with it.
 */
#ifndef CHEETAH_THREADS_H
#define CHEETAH_THREADS_H

#include <monkey/threads.h>

struct thread {
    struct mk_thread base;
    const void *server;     /* does not change; what follows is of the thread itself */
    struct mk_list at_end;  /* struct thread_at_end */
    struct mk_list clients; /* of client.c */
    unsigned n_clients;
};

/* A function that is called when the thread ends, before calls are refused. */
struct thread_at_end {
    struct mk_list node;
    void (*fn)(struct thread_at_end *at_end);
};

extern const struct mk_thread_type thread_type;

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* Stores up to `max` threads of the same server, in the order of their indexes; each is held. Returns how many. */
unsigned thread_list_all(const struct thread *t, struct mk_thread **ret, unsigned max);

/*
 * Returns the worker in use, in its thread; if that does not have this plugin any more, one of those that the thread
 * keeps from before.
 */
struct mk_worker *thread_worker(const struct thread *t);

#endif
