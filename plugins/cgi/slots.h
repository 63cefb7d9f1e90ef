// SPDX-License-Identifier: Apache-2.0
/*
 * How many scripts of a section run, in all workers together, and the requests that wait for one of them to end, in
 * their order. It lasts over reloads: a section of the same host with the same Match and Root continues with the count.
 */
#ifndef CGI_SLOTS_H
#define CGI_SLOTS_H

#include <monkey/loop.h>
#include <monkey/str.h>

#include <pthread.h>

struct slots {
    struct slots *next;
    unsigned refs;        /* hosts and requests; under the lock of the list */
    pthread_mutex_t lock; /* of all below */
    unsigned running, waiting;
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
/* Finds or makes the slots of a section, and holds them. NULL: no memory. Any thread, as the next one. */
struct slots *slots_hold(struct slots_list *all, struct mk_str key);
/* Ends a hold. */
void slots_put(struct slots_list *all, struct slots *s);
/* Holds it once more. */
void slots_get(struct slots_list *all, struct slots *s);

/*
 * Takes a place if fewer than `running_max` run and none waits. Returns 0; MK_AGAIN (`w->fn` is called in this thread
 * once there is one, see slots_cancel()); or -EBUSY: `waiting_max` wait.
 */
int slots_take(struct slots *s, struct slots_waiter *w, unsigned running_max, unsigned waiting_max);
/* Gives a place back, or to the request that has waited longest. `running_max`: of the configuration in use. */
void slots_free(struct slots *s, unsigned running_max);
/* Ends a wait; does nothing if there is none. In its thread. `running_max`: as in slots_free(). */
void slots_cancel(struct slots_waiter *w, unsigned running_max);

#endif
