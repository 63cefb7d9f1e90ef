// SPDX-License-Identifier: Apache-2.0
/*
 * The threads of the process whose workers have this plugin, and calls to them.
 *
 * A call is a function that runs in the thread. Each thread has an eventfd of its own for them: a thread may end at any
 * time, and its loop with it, while its record here stays as long as another thread holds it.
 */
#ifndef CHEETAH_THREADS_H
#define CHEETAH_THREADS_H

#include <monkey/plugin.h>

#include <pthread.h>

struct thread_call;
/* `worker`: the one in use in the thread; NULL: the thread has ended, and the function runs in another one. */
typedef void (*thread_call_fn)(struct thread_call *call, struct mk_worker *worker);

struct thread_call {
    struct thread_call *next;
    thread_call_fn fn;
};

struct threads {
    pthread_mutex_t lock;
    struct mk_list all; /* struct thread, those that have not ended */
};

struct thread {
    struct mk_list node;
    struct threads *threads;
    const void *server; /* these four do not change */
    unsigned index;
    struct mk_loop *loop;
    pthread_t self;
    /* under the lock of `threads` */
    unsigned refs;
    bool ended;
    struct thread_call *first, **last;
    /* of the thread itself */
    struct mk_event event;  /* its eventfd */
    struct mk_list workers; /* struct thread_worker, the newest last */
    struct mk_list at_end;  /* struct thread_at_end */
    struct mk_list clients; /* of client.c */
    unsigned n_clients;
    unsigned endpoints_watched;
};

/* A worker of the thread: the state of worker_start. */
struct thread_worker {
    struct mk_list node;
    struct mk_worker *worker;
    struct thread *thread;
};

/* A function that is called when the thread ends, before the record is marked as ended. */
struct thread_at_end {
    struct mk_list node;
    void (*fn)(struct thread_at_end *at_end);
};

void threads_init(struct threads *all);
void threads_release(struct threads *all);

/* Adds a worker to the record of its thread, which is made if there is none. Returns NULL without memory. */
struct thread_worker *threads_add_worker(struct threads *all, struct mk_worker *worker);
/* Removes it; with the last one the thread has ended: functions of at_end are called, then the calls with NULL. */
void threads_remove_worker(struct thread_worker *w);

/* Has `call` run in a thread. Returns false if that has ended: the call is the caller's again. Any thread. */
bool threads_call(struct thread *t, struct thread_call *call);

/* Hold and release a record. Any thread. */
void threads_get(struct thread *t);
void threads_put(struct thread *t);

/* Stores up to `max` threads of the same server as `t`, in the order of their indexes; each is held. Returns how many.
 */
unsigned threads_list(struct thread *t, struct thread **ret, unsigned max);

/*
 * Returns the worker in use, in its thread; if that does not have this plugin any more, one of those that the thread
 * keeps from before. NULL if there is none.
 */
struct mk_worker *threads_worker(const struct thread *t);

#endif
