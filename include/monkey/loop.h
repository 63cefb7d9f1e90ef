// SPDX-License-Identifier: Apache-2.0
/*
 * The event loop of a worker: descriptors, timers, tasks, messages from other threads, and jobs that may
 * wait for a disk.
 *
 * One thread runs a loop, and everything that is added to it is called back by that thread. Only
 * `mk_post()` may be called from anywhere. Nothing here allocates: the structs are embedded in what
 * they serve, and must stay where they are until they are removed or have run.
 */
#ifndef MONKEY_LOOP_H
#define MONKEY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "status.h"

struct mk_loop;

/* Milliseconds of a clock that never goes back, and seconds since 1970; both as of the start of this turn. */
MK_API uint64_t mk_loop_now_ms(const struct mk_loop *loop);
MK_API int64_t mk_loop_wall_seconds(const struct mk_loop *loop);

/*
 * The number of this turn, from 1 on: what is called back with the same number happens at the same moment, as far as
 * the loop can tell. Builds for small devices leave it out.
 */
MK_API uint64_t mk_loop_turns(const struct mk_loop *loop);

/* The same clock in microseconds, as of this moment: two dozen nanoseconds each time. */
MK_API uint64_t mk_loop_now_us(const struct mk_loop *loop);

/* ── descriptors ── */

struct mk_event;

/* `events` as in epoll_wait(2). The callback may remove its event and free what holds it. */
typedef void (*mk_event_fn)(struct mk_event *event, uint32_t events);

struct mk_event {
    mk_event_fn ready;
    int fd;
};

/* Watches `event->fd` for `events` (EPOLLIN ... as in epoll_ctl(2)). 0 or -errno. */
MK_API int mk_event_add(struct mk_loop *loop, struct mk_event *event, uint32_t events);
MK_API int mk_event_change(struct mk_loop *loop, struct mk_event *event, uint32_t events);
/* No callback comes after this, not even one of this turn. Call it before closing the descriptor. */
MK_API void mk_event_del(struct mk_loop *loop, struct mk_event *event);

/* ── timers ── */

struct mk_timer;
typedef void (*mk_timer_fn)(struct mk_timer *timer);

struct mk_timer {
    struct mk_list node;
    uint64_t deadline_ms;
    uint64_t slot_ms; /* where it hangs in the wheel, at or before its deadline */
    mk_timer_fn fn;
};

MK_API void mk_timer_init(struct mk_timer *timer, mk_timer_fn fn);
/* Calls `fn` once, `delay_ms` from now at the earliest. A timer that was armed before is moved: O(1). */
MK_API void mk_timer_arm(struct mk_loop *loop, struct mk_timer *timer, uint32_t delay_ms);
MK_API void mk_timer_cancel(struct mk_timer *timer);

/* ── tasks: once more, after the others had their turn ── */

struct mk_task;
typedef void (*mk_task_fn)(struct mk_task *task);

struct mk_task {
    struct mk_list node;
    mk_task_fn fn;
};

MK_API void mk_task_init(struct mk_task *task, mk_task_fn fn);
/*
 * Runs `fn` once more: at the end of this turn, or in the next one (which then does not wait) when this is a
 * task itself. A task that is scheduled already stays so.
 */
MK_API void mk_task_schedule(struct mk_loop *loop, struct mk_task *task);
MK_API void mk_task_cancel(struct mk_task *task);

/* ── messages: the only way in from another thread ── */

struct mk_message;
typedef void (*mk_message_fn)(struct mk_message *message);

struct mk_message {
    struct mk_message *next;
    mk_message_fn fn;
};

/*
 * Runs `message->fn` in the loop's thread. Any thread; never blocks, never fails. The message belongs to
 * the loop until `fn` is called. Messages of one sender arrive in order.
 */
MK_API void mk_post(struct mk_loop *loop, struct mk_message *message);

/* ── jobs: work that may wait for a disk, on a thread of its own ── */

struct mk_job;
typedef void (*mk_job_fn)(struct mk_job *job);

struct mk_job {
    struct mk_message message; /* the way back; set by mk_job_submit */
    struct mk_loop *loop;
    mk_job_fn work; /* on a thread of the pool */
    mk_job_fn done; /* in the loop, afterwards, always */
};

/*
 * `work` runs on one of the process's few disk threads, `done` in this loop. The job must stay valid until
 * `done`, whatever happens to the request it was made for. -ENOMEM or -EAGAIN when no thread can be had:
 * nothing was called.
 */
MK_API int mk_job_submit(struct mk_loop *loop, struct mk_job *job);

#endif
