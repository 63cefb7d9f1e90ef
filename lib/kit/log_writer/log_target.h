// SPDX-License-Identifier: Apache-2.0
#ifndef MK_LOG_WRITER_LOG_TARGET_H
#define MK_LOG_WRITER_LOG_TARGET_H

#include "queue.h"

#include <monkey/base/list.h>
#include <monkey/kit/log_writer.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/*
 * A target and its producers (<monkey/kit/log_writer.h>). Only the thread that writes uses these, except where
 * something else is said.
 */

/*
 * Guards the lists of targets and producers of all writers; held for moments only. While a writer's thread runs, only
 * that removes entries.
 */
extern pthread_mutex_t mk__log_lock;

struct mk_log_producer {
    struct mk_list node; /* in the list of the target; mk__log_lock */
    struct mk_log_target *target;
    void *owner;    /* NULL: released. mk__log_lock */
    unsigned users; /* references; mk__log_lock */
    struct mk__log_queue queue;
    _Atomic uint64_t lost;                 /* lines */
    const struct mk_counter *lost_counter; /* of the target */
    max_align_t data[];                    /* of the plugin */
};

struct mk_log_target {
    const struct mk_log_writer_type *type;
    struct mk_log_writer *writer;
    struct mk_list node, producers;     /* mk__log_lock */
    struct mk_log_dest dest;            /* the path is stored after the struct */
    size_t bytes;                       /* of struct and path */
    unsigned users;                     /* references; mk__log_lock */
    _Atomic bool stalled;               /* it cannot be written now: producers need not wake the writer */
    _Atomic bool open;                  /* its file is open, for other threads */
    int fd;                             /* -1: not open */
    bool is_regular, is_socket, is_own; /* `is_own`: its own file description, which is O_NONBLOCK */
    bool is_stale;                      /* the file was renamed, and the new one cannot be opened */
    bool blocked;                       /* it is full: poll for POLLOUT */
    int err;                            /* that was logged last */
    uint64_t retry_ms, checked_ms, lost_logged_ms;
    uint64_t lost_closed, lost_logged; /* by producers that were removed; that were logged */
    struct mk_log_producer *partial;   /* its first line was written in part */
    const struct mk_counter *lost_counter;
};

/* Counts lines that are lost. Any thread. */
static inline void mk__log_producer_lose(struct mk_log_producer *producer, uint64_t lines)
{
    atomic_fetch_add_explicit(&producer->lost, lines, memory_order_relaxed);
    if (producer->lost_counter)
        mk_counter_add(producer->lost_counter, NULL, (int64_t)lines);
}

/*
 * Writes the lines of all producers. `reopen`: writes those that wait to the open file, and then opens its path again.
 * Returns 0 (all was written), MK_AGAIN (there is more) or MK_DECLINED (it cannot be written now: `blocked`, or until
 * `retry_ms`).
 */
int mk__log_target_write(struct mk_log_target *target, uint64_t now_ms, bool reopen);

/* Drops the lines that wait, and counts them as lost. */
void mk__log_target_discard(struct mk_log_target *target);
/* Logs how many lines were lost since the last time; without `at_once` every 10 seconds at most. */
void mk__log_target_report_lost(struct mk_log_target *target, uint64_t now_ms, bool at_once);
void mk__log_target_close(struct mk_log_target *target);

/* Returns the name of the log for messages. */
const char *mk__log_target_name(const struct mk_log_target *target);

/* ── the state of a writer, for what wakes its thread ── */

struct mk_log_writer {
    const struct mk_log_writer_type *type;
    struct mk_list targets; /* mk__log_lock */
    pthread_t thread;
    _Atomic bool running; /* set with mk__log_lock */
    int wake_fd;          /* -1: the thread was never started; then open until the end, as producers may write to it */
    _Atomic uint32_t flush_ms;
    _Atomic bool notified;  /* there are lines */
    _Atomic bool flush_now; /* it does not wait for more */
    _Atomic bool reopen, stop;
};

/* Sets a flag of the writer, and wakes its thread if the flag was not set. Any thread. */
static inline void mk__log_writer_signal(struct mk_log_writer *w, _Atomic bool *flag)
{
    uint64_t one = 1;
    if (atomic_exchange(flag, true))
        return;
    while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* Frees a producer that was released, with the lines that wait. With the lock, or if no other thread can find it. */
void mk__producer_remove(struct mk_log_producer *producer);

#endif
