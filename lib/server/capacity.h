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
#ifndef MK_SERVER_CAPACITY_H
#define MK_SERVER_CAPACITY_H

#include <monkey/transport.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "server/settings.h"

#ifdef MK_LEAN

/* Devices resist. */
struct mk__capacity;
static inline bool mk__capacity_is_full(const struct mk__capacity *c)
{
    (void)c;
    return false;
}
static inline bool mk__capacity_enter(struct mk__capacity *c)
{
    (void)c;
    return true;
}
static inline void mk__capacity_leave(struct mk__capacity *c)
{
    (void)c;
}
static inline bool mk__capacity_resists(const struct mk__capacity *c)
{
    (void)c;
    return true;
}
static inline void mk__capacity_refuse(struct mk__capacity *c, const struct mk__listening *listening, int fd)
{
    (void)c;
    (void)listening;
    (void)fd;
}
static inline unsigned mk__capacity_made_room(struct mk__capacity *c, unsigned closed)
{
    (void)c;
    return closed;
}
static inline int mk__capacity_refuse_next(struct mk__capacity *c, const struct mk__listening *listening, int listener,
                                           int err)
{
    (void)c;
    (void)listening;
    (void)listener;
    return err;
}

#else

struct mk__capacity {
    _Atomic unsigned open; /* connections */
    _Atomic unsigned connections_max;
    _Atomic unsigned refused;
    _Atomic unsigned evicted; /* connections that were closed to make room */
    _Atomic int plan;         /* enum mk__over_capacity */
    _Atomic int spare;        /* a descriptor to give up when there is no other; 0: none */
    _Atomic uint64_t complained_ms;
};

/* What the settings say counts from now on. One thread at a time. */
void mk__capacity_set(struct mk__capacity *c, const struct mk__settings *settings);
void mk__capacity_release(struct mk__capacity *c);

/* Are there as many connections as there may be? */
bool mk__capacity_is_full(const struct mk__capacity *c);
/*
 * Counts one that was accepted; each that was counted must leave. False: there may not be one more. Whoever resists
 * looks first, and takes what it has accepted, even if another worker was quicker to take the last place.
 */
bool mk__capacity_enter(struct mk__capacity *c);
static inline void mk__capacity_leave(struct mk__capacity *c)
{
    atomic_fetch_sub_explicit(&c->open, 1, memory_order_relaxed);
}

static inline bool mk__capacity_resists(const struct mk__capacity *c)
{
    return atomic_load_explicit(&c->plan, memory_order_relaxed) == MK__RESIST;
}

/* Counts connections that were closed to make room, and logs it, not more than once in a while. Returns `closed`. */
unsigned mk__capacity_made_room(struct mk__capacity *c, unsigned closed);

/* Ends a connection that was accepted, the way that the plan says; not counted. Takes the descriptor. */
void mk__capacity_refuse(struct mk__capacity *c, const struct mk__listening *listening, int fd);
/* The same for the next in a listener's queue when accept(2) found no descriptor. 0, or the errno that goes on. */
int mk__capacity_refuse_next(struct mk__capacity *c, const struct mk__listening *listening, int listener, int err);

#endif
#endif
