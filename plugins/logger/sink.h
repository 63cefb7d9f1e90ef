// SPDX-License-Identifier: Apache-2.0
/*
 * A log, whatever it is, and the channels by which workers send it their lines. It lives by the clock of the process
 * and is known by its place: hosts and generations that name the same one share it.
 *
 *     worker ─► channel (a ring for this worker and this log) ─┐
 *     worker ─► channel ───────────────────────────────────────┴─► sink ─► file, pipe, socket
 *
 * What is in here is done by the writer's thread alone (writer.h), but for what says otherwise.
 */
#ifndef LOGGER_SINK_H
#define LOGGER_SINK_H

#include <monkey/list.h>

#include <pthread.h>

#include "queue.h"
#include "target.h"

/* Of the lists of sinks and channels. Held for moments only; while the writer runs nobody else takes anything out. */
extern pthread_mutex_t sinks_lock;

struct gate;

struct channel {
    struct mk_list node; /* of the sink; sinks_lock */
    struct sink *sink;
    const void *owner; /* whose it is; NULL: nobody's any more. sinks_lock */
    unsigned users;    /* generations of the owner; sinks_lock */
    struct queue queue;
    struct gate *gate; /* of a log that must be complete; NULL: what has no room is lost */
    uint64_t lost;     /* since the last line that had room; the owner's */
    _Atomic uint64_t lost_total;
};

struct sink {
    struct mk_list node, channels;      /* sinks_lock */
    struct target target;               /* its path is behind the struct */
    size_t bytes;                       /* of all of it */
    unsigned users;                     /* hosts of generations; sinks_lock */
    _Atomic bool stuck;                 /* it takes nothing now: workers need not say how full they are */
    int fd;                             /* -1: not open */
    bool is_regular, is_socket, is_own; /* `is_own`: the description is not shared, and never blocks */
    bool is_stale;                      /* the file was renamed, and another cannot be opened */
    bool blocked;                       /* it will be ready sometime: poll */
    int err;                            /* that was told */
    uint64_t retry_ms, checked_ms, told_ms;
    uint64_t lost_gone, lost_told; /* of channels that are gone; how many were told */
    struct channel *torn;          /* the beginning of its first line has been written, the rest has not */
};

/*
 * Writes what lies in the channels: 0, all is written; MK_AGAIN, there is more; MK_DECLINED, it takes no more now
 * (`blocked`, or until retry_ms). `reopen`: what is there goes to the file that is open,
 * whatever comes then to the one that has its name.
 */
int sink_serve(struct sink *s, uint64_t now_ms, bool reopen);

/* What is still in the rings is given up. How many lines were lost in all, and not told yet? */
void sink_give_up(struct sink *s);
void sink_tell_lost(struct sink *s, uint64_t now_ms, bool at_once);
void sink_close(struct sink *s);

/* For people. */
const char *sink_name(const struct sink *s);

#endif
