// SPDX-License-Identifier: Apache-2.0
/*
 * The threads whose workers have a plugin, what it keeps for each of them, and calls to them.
 *
 * A thread has a worker for each generation that it uses (<monkey/plugin.h>); its record here is one for all of them,
 * and lasts over reloads. It ends with the last of these workers. Another thread that holds the record may call it even
 * then: the call is refused, or runs with the mark that the thread has ended.
 *
 *     process_start   mk_threads_init()              process_stop   mk_threads_release()
 *     worker_start    mk_threads_add_worker()        worker_stop    mk_threads_remove_worker()
 *
 *     static void answer(struct mk_thread_call *call, struct mk_thread *thread) { ... }
 *     call->fn = answer;
 *     if (mk_thread_call(thread, call) < 0)
 *         ...                                        the thread has ended
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_THREADS_H
#define MONKEY_THREADS_H

#include "../plugin.h"
#include "inbox.h"

MK_C_BEGIN

struct mk_thread;

/* What a plugin keeps for a thread: a struct that begins with a struct mk_thread. */
struct mk_thread_type {
    size_t bytes; /* of that struct, which is zeroed */
    /* These may be NULL. Prepares the rest of the struct, in the thread. */
    void (*open)(struct mk_thread *thread, struct mk_worker *worker);
    /* The last worker stops; calls are still accepted. In the thread, or after its end in another one. */
    void (*end)(struct mk_thread *thread);
    /* Releases what `open` and others have put into the struct, when nothing holds it any more. Any thread. */
    void (*release)(struct mk_thread *thread);
};

/* The threads of the process. */
struct mk_threads {
    const struct mk_thread_type *type;
    pthread_mutex_t lock;
    struct mk_list list; /* struct mk_thread, those that have not ended, by their index; under the lock */
};

struct mk_thread {
    struct mk_list node;
    struct mk_threads *threads; /* these three do not change */
    struct mk_loop *loop;
    unsigned index;         /* of its workers */
    struct mk_list workers; /* struct mk_thread_worker, the newest last; of the thread itself */
    bool ended;             /* likewise */
    unsigned refs;          /* under the lock */
    struct mk_inbox inbox;
};

/* One of its workers: for the state of the plugin's worker. */
struct mk_thread_worker {
    struct mk_list node;
    struct mk_worker *worker;
    struct mk_thread *thread;
};

struct mk_thread_call;
/*
 * Runs in the thread, or when that has ended in the one that closes its loop: jobs are refused then. `thread` NULL: the
 * last worker has stopped.
 */
typedef void (*mk_thread_call_fn)(struct mk_thread_call *call, struct mk_thread *thread);

/* Is the library's from mk_thread_call() until `fn` is called. */
struct mk_thread_call {
    struct mk_inbox_item item;
    mk_thread_call_fn fn;
};

/*
 * Initialize and release the list. `type` must stay. Every worker has been removed and every record been put before the
 * second.
 */
MK_API void mk_threads_init(struct mk_threads *all, const struct mk_thread_type *type);
MK_API void mk_threads_release(struct mk_threads *all);

/* Adds a worker to its thread, in a worker_start. Returns 0 or -ENOMEM. */
MK_API int mk_threads_add_worker(struct mk_threads *all, struct mk_thread_worker *w, struct mk_worker *worker);
/* Removes it, in a worker_stop: with the last one the thread has ended, and calls that wait run with NULL. */
MK_API void mk_threads_remove_worker(struct mk_thread_worker *w);

/* Has `call` run in a thread, whose record the caller holds. Returns 0 or -ECANCELED: it has ended. Any thread. */
MK_API int mk_thread_call(struct mk_thread *thread, struct mk_thread_call *call);

/* Hold a record, and release it. Any thread. */
MK_API struct mk_thread *mk_thread_get(struct mk_thread *thread);
MK_API void mk_thread_put(struct mk_thread *thread);

/* The callee returns false to leave a thread out. */
typedef bool (*mk_thread_filter_fn)(const struct mk_thread *thread, const void *ctx);
/*
 * Stores the first `max` threads, by their index and their age, each of which is held; `filter` (NULL: all) is called
 * under the lock. Returns how many there are, which may be more. Any thread.
 */
MK_API unsigned mk_threads_list(struct mk_threads *all, struct mk_thread **ret, unsigned max,
                                mk_thread_filter_fn filter, const void *ctx);

MK_C_END

#endif
