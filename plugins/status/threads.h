// SPDX-License-Identifier: Apache-2.0
/*
 * The threads of the workers, as far as pages need them: what each has counted, and messages to it.
 *
 *     thread A                             thread B
 *     threads_post(mail to B) ──► queue ──► mail->fn(mail, B) ... threads_post(mail to A) ──► queue ──► ...
 *
 * A thread is the same under all generations, so that its figures last over a reload. Its queue has a descriptor of
 * its own, not the loop's messages: the loop ends before the plugin's state of the worker does, and other threads may
 * send mail until then.
 *
 * All threads of all servers of the process are in one list, with one lock, which is held for moments only.
 */
#ifndef STATUS_THREADS_H
#define STATUS_THREADS_H

#include "sketch.h"

#include <monkey/list.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

#include <pthread.h>
#include <sys/types.h>

struct thread;
struct mail;
/* Is called in the thread; `thread` NULL: it has ended, and any thread calls it. */
typedef void (*mail_fn)(struct mail *mail, struct thread *thread);

struct mail {
    struct mail *next;
    mail_fn fn;
};

struct thread {
    struct mk_list node;
    struct threads *all;
    struct mk_loop *loop;
    struct mk_account *account; /* of the worker */
    pid_t id;                   /* as gettid(2) */
    struct mk_event event;
    struct mail *first, **end; /* the queue; under the lock */
    unsigned waiting;          /* questions that it has not answered; under the lock */
    unsigned index;            /* of the worker */
    unsigned refs;             /* of workers, and while mail is delivered */
    struct mk_list workers;    /* struct thread_worker, the newest last */
    struct sketch *sketch;     /* NULL: paths are not counted */
    uint64_t requests;
};

/* A worker of the thread. */
struct thread_worker {
    struct mk_list node;
    struct mk_worker *worker;
    struct thread *thread;
};

struct threads {
    pthread_mutex_t lock;
    struct mk_list list; /* of struct thread, the newest last */
};

void threads_init(struct threads *all);
void threads_release(struct threads *all);

/*
 * Adds a worker, whose `worker` is set, to its thread, for its worker_start. `with_paths`: the generation counts paths.
 * Returns 0, or -ENOMEM: out of memory or descriptors. threads_remove_worker() is for worker_stop.
 */
int threads_add_worker(struct threads *all, struct thread_worker *w, bool with_paths);
void threads_remove_worker(struct thread_worker *w);

/* Returns how many connections are open in a thread, in which the caller runs. */
uint32_t threads_count_connections(const struct thread *thread);

/*
 * Sends mail. The caller holds the lock of `all` and knows that the thread is in the list. threads_reply() takes the
 * lock, and looks whether the thread is still there; if it is not, it calls mail->fn.
 */
void threads_post(struct thread *thread, struct mail *mail);
void threads_reply(struct threads *all, struct thread *thread, struct mail *mail);

#endif
