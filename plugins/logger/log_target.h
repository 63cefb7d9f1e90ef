// SPDX-License-Identifier: Apache-2.0
/*
 * A log, whatever it is, and the producers by which workers send it their lines. It lives by the clock of the process
 * and is known by its place: hosts and generations that name the same one share it.
 *
 *     worker ─► producer (a ring for this worker and this log) ─┐
 *     worker ─► producer ───────────────────────────────────────┴─► target ─► file, pipe, socket
 *
 * What is in here is done by the writer's thread alone (writer.h), but for what says otherwise.
 */
#ifndef LOGGER_LOG_TARGET_H
#define LOGGER_LOG_TARGET_H

#include <monkey/list.h>

#include <pthread.h>

#include "queue.h"
#include "dest.h"

/* Of the lists of targets and producers. Held for moments only; while the writer runs nobody else takes anything out.
 */
extern pthread_mutex_t log_targets_lock;

struct gate;

struct log_producer {
    struct mk_list node; /* of the target; log_targets_lock */
    struct log_target *target;
    const void *owner; /* whose it is; NULL: nobody's any more. log_targets_lock */
    unsigned users;    /* generations of the owner; log_targets_lock */
    struct queue queue;
    struct gate *gate; /* of a log that must be complete; NULL: what has no room is lost */
    uint64_t lost;     /* since the last line that had room; the owner's */
    _Atomic uint64_t lost_total;
};

struct log_target {
    struct mk_list node, producers;     /* log_targets_lock */
    struct log_dest dest;               /* its path is behind the struct */
    size_t bytes;                       /* of all of it */
    unsigned users;                     /* hosts of generations; log_targets_lock */
    _Atomic bool stalled;               /* it takes nothing now: workers need not say how full they are */
    int fd;                             /* -1: not open */
    bool is_regular, is_socket, is_own; /* `is_own`: the description is not shared, and never blocks */
    bool is_stale;                      /* the file was renamed, and another cannot be opened */
    bool blocked;                       /* it will be ready sometime: poll */
    int err;                            /* that was told */
    uint64_t retry_ms, checked_ms, lost_logged_ms;
    uint64_t lost_closed, lost_logged; /* of producers that are gone; how many were told */
    struct log_producer *partial;      /* the beginning of its first line has been written, the rest has not */
};

/*
 * Writes what lies in the producers: 0, all is written; MK_AGAIN, there is more; MK_DECLINED, it takes no more now
 * (`blocked`, or until retry_ms). `reopen`: what is there goes to the file that is open,
 * whatever comes then to the one that has its name.
 */
int log_target_write(struct log_target *s, uint64_t now_ms, bool reopen);

/* What is still in the rings is given up. How many lines were lost in all, and not told yet? */
void log_target_discard(struct log_target *s);
void log_target_report_lost(struct log_target *s, uint64_t now_ms, bool at_once);
void log_target_close(struct log_target *s);

/* For people. */
const char *log_target_name(const struct log_target *s);

#endif
