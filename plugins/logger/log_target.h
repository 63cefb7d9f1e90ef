// SPDX-License-Identifier: Apache-2.0
/*
 * A log and the producers by which workers send it lines. It lives as long as a generation uses it or has lines for it,
 * and is found by its destination: hosts and generations with the same one share it.
 *
 *     worker ─► producer (a ring for this worker and this log) ─┐
 *     worker ─► producer ───────────────────────────────────────┴─► target ─► file, pipe, socket
 *
 * Only the writer's thread (writer.h) uses these, except where something else is said.
 */
#ifndef LOGGER_LOG_TARGET_H
#define LOGGER_LOG_TARGET_H

#include <monkey/counters.h>
#include <monkey/list.h>

#include <pthread.h>

#include "queue.h"
#include "dest.h"

/* Guards the lists of targets and producers; held for moments only. While the writer runs, only it removes entries. */
extern pthread_mutex_t log_targets_lock;

struct gate;
struct writer;

struct log_producer {
    struct mk_list node; /* in the list of the target; log_targets_lock */
    struct log_target *target;
    const void *owner; /* the loop of the worker; NULL: released. log_targets_lock */
    unsigned users;    /* generations of that worker; log_targets_lock */
    struct queue queue;
    struct gate *gate; /* WhenFull wait; NULL: lines without room are lost */
    uint64_t lost;     /* lines since the last one that had room; the worker's */
    _Atomic uint64_t lost_total;
    const struct mk_counter *lost_counter; /* of the target */
};

struct log_target {
    struct writer *writer;
    struct mk_list node, producers;     /* log_targets_lock */
    struct log_dest dest;               /* the path is stored behind the struct */
    size_t bytes;                       /* of struct and path */
    unsigned users;                     /* hosts that use it; log_targets_lock */
    _Atomic bool stalled;               /* it cannot be written now: workers need not wake the writer */
    int fd;                             /* -1: not open */
    bool is_regular, is_socket, is_own; /* `is_own`: its own file description, which is O_NONBLOCK */
    bool is_stale;                      /* the file was renamed, and the new one cannot be opened */
    bool blocked;                       /* it is full: poll for POLLOUT */
    int err;                            /* that was logged last */
    uint64_t retry_ms, checked_ms, lost_logged_ms;
    uint64_t lost_closed, lost_logged; /* by producers that were removed; that were logged */
    struct log_producer *partial;      /* its first line was written in part */
    const struct mk_counter *lost_counter;
};

/* Counts lines that are lost. Any thread. */
static inline void log_producer_lose(struct log_producer *producer, uint64_t lines)
{
    atomic_fetch_add_explicit(&producer->lost_total, lines, memory_order_relaxed);
    mk_counter_add(producer->lost_counter, NULL, (int64_t)lines);
}

/*
 * Writes the lines of all producers. `reopen`: writes those that wait to the open file, and then opens its path again.
 * Returns 0 (all was written), MK_AGAIN (there is more) or MK_DECLINED (it cannot be written now: `blocked`, or until
 * `retry_ms`).
 */
int log_target_write(struct log_target *target, uint64_t now_ms, bool reopen);

/* Drops the lines that wait, and counts them as lost. */
void log_target_discard(struct log_target *target);
/* Logs how many lines were lost since the last time; without `at_once` every 10 seconds at most. */
void log_target_report_lost(struct log_target *target, uint64_t now_ms, bool at_once);
void log_target_close(struct log_target *target);

/* Returns the name of the log for messages. */
const char *log_target_name(const struct log_target *target);

#endif
