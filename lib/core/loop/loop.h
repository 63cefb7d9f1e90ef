// SPDX-License-Identifier: Apache-2.0
/*
 * The internals of <monkey/loop.h>. A turn of the loop:
 *
 *     wait ─► descriptors ─► messages ─► timers ─► tasks scheduled before this point ─► deferred frees
 *
 * Clock and poller are arguments: the unit tests run whole connections on their own clock.
 */
#ifndef MK_LOOP_LOOP_H
#define MK_LOOP_LOOP_H

#include <monkey/loop.h>

#include <stdatomic.h>

#include "base/clock.h"
#include "loop/epoch.h"
#include "loop/timer.h"

#include <pthread.h>
#include <sys/epoll.h>

struct mk_thread_pool;

enum { MK__LOOP_BATCH = 256 };

/* How a loop finds out which descriptors are ready. All calls are made by the loop's thread. */
struct mk__poller {
    int (*open)(struct mk_loop *loop);
    void (*close)(struct mk_loop *loop);
    /* `op`: EPOLL_CTL_ADD, _MOD or _DEL. Returns 0 or -errno. */
    int (*control)(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events);
    /* Fills loop->batch; timeout_ms < 0: waits without limit. Returns the number of events or -errno. */
    int (*wait)(struct mk_loop *loop, int timeout_ms);
};

extern const struct mk__poller mk__poller_epoll;

struct mk_loop {
    const struct mk__poller *poller;
    const struct mk__clock *clock;
    struct mk_thread_pool *thread_pool; /* shared by all loops of the process */
    uint64_t now_ms;
    int64_t wall_seconds;
    int poll_fd;
    int batch_at, batch_len;
    bool stopping, owned, inbox_closed, closed;
    pthread_t owner;               /* the thread that runs turns; valid while `owned` */
    uint64_t turns;                /* turns begun so far */
    unsigned jobs_pending;         /* jobs submitted whose `done` has not been called yet */
    struct mk__resolver *resolver; /* see net/resolver.h; NULL until the first name is looked up */
    struct mk_list tasks;
    struct mk_list closing;
    _Atomic(struct mk_message *) inbox; /* newest message first; when the loop has ended, a mark that it is closed */
    struct mk_message *taken;           /* out of it, oldest message first */
    _Atomic unsigned wakeups_in_flight; /* calls of mk_post() that may still write the eventfd */
    struct mk_event wakeup_event;
    bool wakeup_is_edge; /* its descriptor cannot be read, and is edge-triggered */
    struct mk__epoch_reader epoch;
    struct mk__wheel wheel;
    struct epoll_event batch[MK__LOOP_BATCH];
};

/* For assertions: returns whether this thread may use the loop. Before the first turn and after the last any may. */
static inline bool mk__loop_is_owner(const struct mk_loop *loop)
{
    return !loop->owned || pthread_equal(loop->owner, pthread_self());
}

/*
 * Opens a loop. `pool` may be NULL; mk_job_submit() then returns -EAGAIN. Returns 0, or -errno, after which nothing is
 * open.
 */
int mk__loop_open(struct mk_loop *loop, const struct mk__poller *poller, const struct mk__clock *clock,
                  struct mk_thread_pool *pool);
/*
 * Runs the waiting messages and deferred frees, then closes the descriptors. What is posted meanwhile and later is
 * ignored, and jobs are refused.
 */
void mk__loop_close(struct mk_loop *loop);
/* Returns the milliseconds until there is work at the time `now_ms`: 0 at once, -1 if only events bring some. */
int mk__loop_timeout_ms(const struct mk_loop *loop, uint64_t now_ms);

/*
 * Runs one turn, which waits until the next timer at most, or for MK_POLL_PAUSE_MS if the call that waits is refused.
 * Returns 0.
 */
int mk__loop_turn(struct mk_loop *loop);
/* Runs turns until mk__loop_stop(). Returns as a turn. */
int mk__loop_run(struct mk_loop *loop);
/* Ends mk__loop_run() after this turn. Call it from the loop's thread. */
void mk__loop_stop(struct mk_loop *loop);

/* Runs `task` at the very end of this turn, when nothing on the stack points to the memory that it frees. */
void mk__loop_defer_free(struct mk_loop *loop, struct mk_task *task);

#endif
