// SPDX-License-Identifier: Apache-2.0
/*
 * How many scripts of a section run, in all workers together, and the requests that wait for one of them to end, in
 * their order. It lasts over reloads: a section of the same host with the same Match and Root continues with the count.
 * The limit is that of the configuration in use, for requests of all generations.
 */
#ifndef CGI_SLOTS_H
#define CGI_SLOTS_H

#include <monkey/base/str.h>
#include <monkey/loop.h>

#include <pthread.h>

struct slots {
    struct slots *next;
    unsigned refs;        /* hosts and requests; under the lock of the list */
    pthread_mutex_t lock; /* of all below */
    unsigned running, running_max, waiting;
    struct mk_list waiters;
    size_t bytes; /* of this struct */
    size_t key_len;
    char key[];
};

/* Those of the process. */
struct slots_list {
    pthread_mutex_t lock;
    struct slots *first;
};

struct slots_waiter;
/* The waiter has a place now, in its thread. */
typedef void (*slots_fn)(struct slots_waiter *w);

/* A request that waits. */
struct slots_waiter {
    struct mk_list node;
    struct mk_message message;
    struct mk_loop *loop;
    struct slots *slots; /* NULL: it does not wait */
    bool is_granted;     /* the message is on its way */
    slots_fn fn;
};

void slots_list_init(struct slots_list *all);
void slots_list_release(struct slots_list *all);
/*
 * Finds the slots of a section, or makes them, with `running_max` places, and holds them. NULL: no memory. Any thread,
 * as the next ones.
 */
struct slots *slots_hold(struct slots_list *all, struct mk_str key, unsigned running_max);
/* Ends a hold. */
void slots_put(struct slots_list *all, struct slots *s);
/* Holds it once more. */
void slots_get(struct slots_list *all, struct slots *s);

/* Sets how many run at the same time, and grants what that adds. */
void slots_set_max(struct slots *s, unsigned running_max);

/*
 * Takes a place if there is one and none waits. Returns 0; MK_AGAIN (`w->fn` is called in this thread once there is
 * one, see slots_cancel()); or -EBUSY: `waiting_max` wait.
 */
int slots_take(struct slots *s, struct slots_waiter *w, unsigned waiting_max);
/* Gives a place back, or to the request that has waited longest. */
void slots_free(struct slots *s);
/* Ends a wait; does nothing if there is none. In its thread. */
void slots_cancel(struct slots_waiter *w);

#endif
