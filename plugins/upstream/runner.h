// SPDX-License-Identifier: Apache-2.0
/*
 * What runs once for all workers, such as checks of servers and lookups of names: in the thread of the first worker of
 * the generation in use. No reload ends that thread.
 *
 *     generation_start   runner_init(), runner_add(): the users of this generation
 *     worker_serve       runner_start(): stops the users of the generation before, then starts these, in one turn
 *     worker_retire,     runner_stop(): the process ends, or has no such generation any more
 *     worker_stop
 *
 * So the users of two generations of a server never run at the same time, and those of one that is refused never do.
 * What lasts over reloads belongs to the process, and `start` finds it there. start and stop are called in the thread;
 * stop also after its end, when its loop is closed.
 */
#ifndef UPSTREAM_RUNNER_H
#define UPSTREAM_RUNNER_H

#include <monkey/plugin.h>

#include <pthread.h>

/* Of a generation; in the caller's storage, which lasts as long as that. */
struct runner_user {
    struct runner_user *next;
    /* Begins. `worker` is one of the generation, and valid until stop(), which ends all that was begun with it. */
    void (*start)(struct runner_user *user, struct mk_worker *worker);
    void (*stop)(struct runner_user *user);
};

/* The users of a generation. */
struct runner {
    struct mk_list node; /* in the list of those that run, under its lock */
    struct runner_user *first;
    struct mk_worker *worker; /* NULL: they do not run; in the thread of the first worker */
};

/* The runners of the process: one for each of its servers. */
struct runners {
    pthread_mutex_t lock;
    struct mk_list running;
};

void runners_init(struct runners *all);
void runners_release(struct runners *all);

void runner_init(struct runner *runner);
/* Adds a user; before the generation is in use. They start in this order, and stop in the opposite one. */
void runner_add(struct runner *runner, struct runner_user *user);

/* Starts the users, if this is the first worker; in worker_serve. */
void runner_start(struct runners *all, struct runner *runner, struct mk_worker *worker);
/* Stops the users, if they run with this worker; in worker_retire and worker_stop. */
void runner_stop(struct runners *all, struct runner *runner, const struct mk_worker *worker);

#endif
