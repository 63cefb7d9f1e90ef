// SPDX-License-Identifier: Apache-2.0
/*
 * What <monkey/loop.h> hides. A turn of the loop:
 *
 *     wait ─► descriptors ─► messages ─► timers ─► tasks scheduled before this point ─► burials
 *
 * Clock and poller are arguments: the unit tests drive whole connections on a clock of their own.
 */
#ifndef MK_LOOP_LOOP_H
#define MK_LOOP_LOOP_H

#include <monkey/loop.h>

#include <stdatomic.h>

#include "base/clock.h"
#include "loop/handoff.h"
#include "loop/thread_pool.h"
#include "loop/timer.h"

#include <sys/epoll.h>

enum { MK__LOOP_BATCH = 256 };

/* How a loop learns which descriptors are ready. */
struct mk__poller {
    int (*open)(struct mk_loop *loop);
    void (*close)(struct mk_loop *loop);
    /* op: EPOLL_CTL_ADD, _MOD, _DEL. 0 or -errno. */
    int (*control)(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events);
    /* Fills loop->batch; the number of events or -errno. timeout_ms < 0: for ever. */
    int (*wait)(struct mk_loop *loop, int timeout_ms);
};

extern const struct mk__poller mk__poller_epoll;

struct mk_loop {
    const struct mk__poller *poller;
    const struct mk__clock *clock;
    struct mk__thread_pool *thread_pool; /* shared by all loops of the process */
    uint64_t now_ms;
    int64_t wall_seconds;
    int poll_fd;
    int batch_at, batch_len;
    bool stopping;
    uint64_t turns;                /* so far */
    unsigned jobs_pending;         /* submitted, and not done yet */
    struct mk__resolver *resolver; /* of net/resolver.h; NULL until one is looked up */
    struct mk_list tasks;
    struct mk_list closing;
    _Atomic(struct mk_message *) inbox; /* the newest first */
    _Atomic unsigned wakeups_in_flight; /* senders whose letter may be read before they have rung */
    struct mk_event wakeup_event;
    struct mk__wheel wheel;
    struct mk__handoff *handoff; /* NULL: none may come; to be set before the first of them */
    struct epoll_event batch[MK__LOOP_BATCH];
};

/* 0 or -errno; nothing is held then. `pool` may be NULL: mk_job_submit() answers -EAGAIN then. */
int mk__loop_open(struct mk_loop *loop, const struct mk__poller *poller, const struct mk__clock *clock,
                  struct mk__thread_pool *pool);
void mk__loop_close(struct mk_loop *loop);

/* One turn, waiting at most until the next timer. 0 or -errno. */
int mk__loop_turn(struct mk_loop *loop);
/* Turns until mk__loop_stop(). */
int mk__loop_run(struct mk_loop *loop);
/* From the loop's own thread. */
void mk__loop_stop(struct mk_loop *loop);

/* Runs `task` at the very end of this turn, when nothing on the stack can point to what it frees any more. */
void mk__loop_defer_free(struct mk_loop *loop, struct mk_task *task);

#endif
