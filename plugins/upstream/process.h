// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin knows in the process, over generations and for all of its servers, and the order of its locks.
 */
#ifndef UPSTREAM_PROCESS_H
#define UPSTREAM_PROCESS_H

#include <monkey/base/epoch.h>
#include <monkey/base/list.h>

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct mk_worker;

/*
 * The locks of the plugin, in the order in which a thread may take them: while it holds one, it takes only those
 * further down, and no second one of the same level.
 *
 *     names ─┬─► pool ─► turns        another list of servers; a server with room goes to a request that waits
 *            └─► servers ─┬─► pools   a server of an address holds its group,
 *                         └─► admins  and what is set for its line; also: names ─► admins
 *
 * With one of them a thread may post messages, hold and put counters, log, and retire objects
 * (<monkey/base/epoch.h>), all of whose locks come after these; it calls no other plugin.
 */
enum lock_level {
    LOCK_NAMES,   /* process.names, with what is known of each; the lists of members are replaced under it */
    LOCK_POOL,    /* the requests of one group that wait, and with MaxConnections its choices */
    LOCK_TURNS,   /* RoundRobin, of one group of a generation */
    LOCK_SERVERS, /* process.servers, and what checks know of them */
    LOCK_POOLS,   /* process.pools */
    LOCK_ADMINS,  /* process.admins, with what the configuration says of them */
    LOCK_RUNNERS, /* process.runners; no other one is held with it, nor with the next */
    LOCK_STICKY,  /* process.sticky */
};

struct lock {
    pthread_mutex_t mutex;
    enum lock_level level;
};

#define LOCK_INIT(of_level) \
    { \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .level = (of_level) \
    }

/*
 * Note that this thread is about to take, or has released, a lock of a level. Return false if that is against the
 * order, or if the thread does not have it. Only builds with asserts call them.
 */
bool lock_order_enter(enum lock_level level);
bool lock_order_leave(enum lock_level level);

static inline void lock_init(struct lock *lock, enum lock_level level)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->level = level;
}

static inline void lock_destroy(struct lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static inline void lock_take(struct lock *lock)
{
    assert(lock_order_enter(lock->level));
    pthread_mutex_lock(&lock->mutex);
}

static inline void lock_release(struct lock *lock)
{
    assert(lock_order_leave(lock->level));
    pthread_mutex_unlock(&lock->mutex);
}

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

/* One for each server of the process. */
struct runners {
    struct lock lock;
    struct mk_list running;
};

/* The key of groups with Balance Sticky that have no secret. */
struct sticky_key {
    struct lock lock;
    uint64_t key[2];
    bool is_made;
};

/*
 * The lists under the lock of the same name. Objects are found there by their names, so that those of the next
 * generation, and of another server of the process, are the same ones, as their counters are.
 */
struct process {
    struct lock names_lock, servers_lock, pools_lock, admins_lock;
    struct mk_list names; /* struct name */
    struct server *servers;
    struct pool *pools;
    struct admin *admins;
    _Atomic unsigned gone_servers; /* servers of `servers` that no list of members has */
    struct mk_epoch_queue retired; /* servers and lists of members that loops may still see */
    struct runners runners;        /* from start to stop of the plugin */
    struct sticky_key sticky;
    unsigned generations; /* in the hooks of the configuration */
};

extern struct process upstream_process;

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
