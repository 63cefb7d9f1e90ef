// SPDX-License-Identifier: Apache-2.0
/*
 * The event loop of a thread: descriptors, timers, tasks, messages from other threads, and jobs that may wait for a
 * disk.
 *
 * One thread runs a loop, and all callbacks run in that thread. All functions must be called from it, except mk_post(),
 * which any thread may call. Nothing here allocates: the structs are embedded in the objects that they serve, and must
 * stay in place until they are removed or have run.
 */
#ifndef MONKEY_LOOP_H
#define MONKEY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "status.h"

MK_C_BEGIN

struct mk_loop;

/* Return the time at the start of this turn: milliseconds of a monotonic clock, and seconds since 1970. */
MK_API uint64_t mk_loop_now_ms(const struct mk_loop *loop);
MK_API int64_t mk_loop_wall_seconds(const struct mk_loop *loop);

/* Returns the number of this turn, from 1 on. Callbacks that see the same number run in the same turn. */
MK_API uint64_t mk_loop_turns(const struct mk_loop *loop);

/* Returns the monotonic clock at the moment of the call, in microseconds. A call takes about 24 ns. */
MK_API uint64_t mk_loop_now_us(const struct mk_loop *loop);

/* Returns whether the loop has ended, as it may have before a worker_stop (<monkey/plugin.h>). */
MK_API bool mk_loop_has_ended(const struct mk_loop *loop);

/* ── descriptors ── */

struct mk_event;

/* `events`: as of epoll_wait(2). The callback may remove its event and free the struct that holds it. */
typedef void (*mk_event_fn)(struct mk_event *event, uint32_t events);

/*
 * `ready` is read when an event occurs. So the callbacks of the loop may replace it at any time, in place of removing
 * and adding the event: what occurs from then on goes to the new function, also what is known already in this turn. It
 * must not become NULL while the event is added. `fd` must not change meanwhile.
 */
struct mk_event {
    mk_event_fn ready;
    int fd;
};

/*
 * Watches `event->fd` for `events` (EPOLLIN ... as of epoll_ctl(2)); `event->ready` is called when one of them occurs.
 * Returns 0 or -errno of epoll_ctl(2).
 */
MK_API int mk_event_add(struct mk_loop *loop, struct mk_event *event, uint32_t events);
/*
 * Changes the set of events that an added `event` waits for: `events` replaces what was given before.
 * Returns 0 or -errno of epoll_ctl(2): -ENOENT if `event` was not added.
 */
MK_API int mk_event_change(struct mk_loop *loop, struct mk_event *event, uint32_t events);
/*
 * Stops watching. `event` gets no callback after this call, not even for events of this turn. Call it before the
 * descriptor is closed. In a worker_stop whose thread has ended it does nothing (<monkey/plugin.h>).
 */
MK_API void mk_event_del(struct mk_loop *loop, struct mk_event *event);

/* ── timers ── */

struct mk_timer;
typedef void (*mk_timer_fn)(struct mk_timer *timer);

struct mk_timer {
    struct mk_list node;
    uint64_t deadline_ms;
    uint64_t slot_ms; /* its slot in the wheel, at or before the deadline */
    mk_timer_fn fn;
};

/* Initializes a timer, which is not armed. */
MK_API void mk_timer_init(struct mk_timer *timer, mk_timer_fn fn);
/* Calls `fn` once, `delay_ms` after the start of this turn or later. A timer that is armed already is moved. O(1). */
MK_API void mk_timer_arm(struct mk_loop *loop, struct mk_timer *timer, uint32_t delay_ms);
/* Disarms the timer; `fn` is not called. Does nothing if it is not armed. */
MK_API void mk_timer_cancel(struct mk_timer *timer);

/* ── tasks: callbacks at the end of a turn ── */

struct mk_task;
typedef void (*mk_task_fn)(struct mk_task *task);

struct mk_task {
    struct mk_list node;
    mk_task_fn fn;
};

/* Initializes a task, which is not scheduled. */
MK_API void mk_task_init(struct mk_task *task, mk_task_fn fn);
/*
 * Calls `fn` once, at the end of this turn; when a task calls this, in the next turn, which then does not wait. Does
 * nothing if the task is scheduled already.
 */
MK_API void mk_task_schedule(struct mk_loop *loop, struct mk_task *task);
/* Removes a scheduled task; `fn` is not called. Does nothing if it is not scheduled. */
MK_API void mk_task_cancel(struct mk_task *task);

/* ── messages from other threads ── */

struct mk_message;
typedef void (*mk_message_fn)(struct mk_message *message);

struct mk_message {
    struct mk_message *next;
    mk_message_fn fn;
};

/*
 * Calls `message->fn` in the loop's thread. Any thread may call this; it never blocks and never fails. The message
 * belongs to the loop until `fn` is called. Messages of one thread arrive in order.
 *
 * A worker's loop may have ended before its worker_stop is called (<monkey/plugin.h>): until that has returned, this
 * does nothing then.
 */
MK_API void mk_post(struct mk_loop *loop, struct mk_message *message);
/*
 * Takes a message back that was posted, if its `fn` has not been called: it will not be. No other thread may be posting
 * it. In the loop's thread, or in a worker_stop whose thread has ended, where it does nothing.
 */
MK_API void mk_message_cancel(struct mk_loop *loop, struct mk_message *message);

/* ── jobs: work that may wait for a disk, on another thread ── */

struct mk_job;
typedef void (*mk_job_fn)(struct mk_job *job);

struct mk_job {
    struct mk_message message; /* carries the result back to the loop; set by mk_job_submit() */
    struct mk_loop *loop;
    mk_job_fn work; /* called on a disk thread */
    mk_job_fn done; /* always called afterwards, in the loop's thread */
};

/*
 * Runs `work` on one of the process's few disk threads, then `done` in this loop. The job must stay valid until `done`,
 * even if the request that it was made for has ended.
 *
 * Returns 0, or -ENOMEM or -EAGAIN when no thread can be started or the loop ends; then neither function is called.
 */
MK_API int mk_job_submit(struct mk_loop *loop, struct mk_job *job);

MK_C_END

#endif
