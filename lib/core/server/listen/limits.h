// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the connections of the process, and decides what happens to new ones (OverCapacity) when a limit is reached:
 * connections (MaxConnections), descriptors (FDLimit) or memory (MemoryLimit). Lives as long as the process; any
 * thread.
 *
 *     Resist     new connections wait in the kernel's queue, while idle ones are closed to make room
 *     Drop       new connections are closed at once
 *     TooBusy    new connections are answered with 503, then closed
 */
#ifndef MK_SERVER_LISTEN_LIMITS_H
#define MK_SERVER_LISTEN_LIMITS_H

#include <monkey/transport.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "server/generation/settings.h"

struct mk__limits {
    _Atomic unsigned open; /* connections */
    _Atomic unsigned connections_max;
    _Atomic unsigned refused; /* connections: Drop and TooBusy */
    _Atomic unsigned evicted; /* connections that were closed to make room */
    _Atomic int policy;       /* enum mk__over_capacity */
    _Atomic int reserve_fd;   /* a descriptor to give up when there is no other; 0: none */
    _Atomic uint64_t warned_ms;
    _Atomic int fd_alarm;     /* from this descriptor on the process is short of them */
    uint64_t fd_limit_before; /* RLIMIT_NOFILE before FDLimit changed it; 0: it did not */
};

/* Takes the limits of these settings, and sets RLIMIT_NOFILE to FDLimit. One thread at a time. */
void mk__limits_set(struct mk__limits *c, const struct mk__settings *settings);
void mk__limits_release(struct mk__limits *c);
/* Returns the most descriptors that FDLimit can give the process. */
uint64_t mk__limits_hard_fd_limit(void);

/* Tells whether a connection has a descriptor so high that the process is running short of them. */
static inline bool mk__limits_is_low_on_fds(const struct mk__limits *c, int fd)
{
    return fd >= atomic_load_explicit(&c->fd_alarm, memory_order_relaxed);
}

/* Returns whether MaxConnections is reached. */
bool mk__limits_is_full(const struct mk__limits *c);
/*
 * Counts an accepted connection; mk__limits_remove_conn() is to be called when it is closed. Returns false if
 * MaxConnections is reached: the connection is not counted. With Resist the caller has asked mk__limits_is_full()
 * before accept(2), and the result is true even if another worker took the last place in between.
 */
bool mk__limits_add_conn(struct mk__limits *c);
static inline void mk__limits_remove_conn(struct mk__limits *c)
{
    unsigned before = atomic_fetch_sub_explicit(&c->open, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
}

static inline bool mk__limits_evicts(const struct mk__limits *c)
{
    return atomic_load_explicit(&c->policy, memory_order_relaxed) == MK__OVER_CAPACITY_RESIST;
}

/* Counts connections that were closed to make room, and logs the total from time to time. Returns `closed`. */
unsigned mk__limits_count_evicted(struct mk__limits *c, unsigned closed);

/* Closes an accepted connection that is not counted, as Drop or TooBusy says. Takes the descriptor. */
void mk__limits_reject(struct mk__limits *c, const struct mk__listener *listener, int fd);
/*
 * Does the same for the next connection in a listener's queue when accept(2) failed with `err` for want of a
 * descriptor. Returns 0, or the positive errno that remains.
 */
int mk__limits_reject_next(struct mk__limits *c, const struct mk__listener *listener, int listen_fd, int err);
#endif
