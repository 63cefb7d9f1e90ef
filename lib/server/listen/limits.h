// SPDX-License-Identifier: Apache-2.0
/*
 * How many connections the process has, how many it may have, and what becomes of those that come when there is no
 * room: connections (MaxConnections), descriptors (FDLimit) or memory (MemoryLimit). The clock of the process; any
 * thread may ask.
 *
 *     Resist     they wait in the kernel's queue, while idle ones are closed to make room
 *     Drop       they are closed at once; who is there stays
 *     TooBusy    they are told so (503), then closed; who is there stays
 */
#ifndef MK_SERVER_LISTEN_LIMITS_H
#define MK_SERVER_LISTEN_LIMITS_H

#include <monkey/transport.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "server/settings.h"

struct mk__limits {
    _Atomic unsigned open; /* connections */
    _Atomic unsigned connections_max;
    _Atomic unsigned refused;
    _Atomic unsigned evicted; /* connections that were closed to make room */
    _Atomic int policy;       /* enum mk__over_capacity */
    _Atomic int reserve_fd;   /* a descriptor to give up when there is no other; 0: none */
    _Atomic uint64_t warned_ms;
};

/* What the settings say counts from now on. One thread at a time. */
void mk__limits_set(struct mk__limits *c, const struct mk__settings *settings);
void mk__limits_release(struct mk__limits *c);

#if MK_SMALL

/* Small builds have no limit of connections, and resist. */
static inline bool mk__limits_is_full(const struct mk__limits *c)
{
    (void)c;
    return false;
}
static inline bool mk__limits_add_conn(struct mk__limits *c)
{
    (void)c;
    return true;
}
static inline void mk__limits_remove_conn(struct mk__limits *c)
{
    (void)c;
}
static inline bool mk__limits_evicts(const struct mk__limits *c)
{
    (void)c;
    return true;
}
static inline void mk__limits_reject(struct mk__limits *c, const struct mk__listener *listener, int fd)
{
    (void)c;
    (void)listener;
    (void)fd;
}
static inline unsigned mk__limits_count_evicted(struct mk__limits *c, unsigned closed)
{
    (void)c;
    return closed;
}
static inline int mk__limits_reject_next(struct mk__limits *c, const struct mk__listener *listener, int listen_fd,
                                         int err)
{
    (void)c;
    (void)listener;
    (void)listen_fd;
    return err;
}

#else

/* Are there as many connections as there may be? */
bool mk__limits_is_full(const struct mk__limits *c);
/*
 * Counts one that was accepted; each that was counted must leave. False: there may not be one more. Whoever resists
 * looks first, and takes what it has accepted, even if another worker was quicker to take the last place.
 */
bool mk__limits_add_conn(struct mk__limits *c);
static inline void mk__limits_remove_conn(struct mk__limits *c)
{
    atomic_fetch_sub_explicit(&c->open, 1, memory_order_relaxed);
}

static inline bool mk__limits_evicts(const struct mk__limits *c)
{
    return atomic_load_explicit(&c->policy, memory_order_relaxed) == MK__OVER_CAPACITY_RESIST;
}

/* Counts connections that were closed to make room, and logs it, not more than once in a while. Returns `closed`. */
unsigned mk__limits_count_evicted(struct mk__limits *c, unsigned closed);

/* Ends a connection that was accepted, the way that the plan says; not counted. Takes the descriptor. */
void mk__limits_reject(struct mk__limits *c, const struct mk__listener *listener, int fd);
/* The same for the next in a listener's queue when accept(2) found no descriptor. 0, or the errno that goes on. */
int mk__limits_reject_next(struct mk__limits *c, const struct mk__listener *listener, int listen_fd, int err);

#endif
#endif
