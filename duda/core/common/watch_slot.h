// SPDX-License-Identifier: Apache-2.0
/*
 * What the watchdog (crash/watch.h) knows of one thread that calls a service: two stores for each call.
 */
#ifndef DUDA_CORE_COMMON_WATCH_SLOT_H
#define DUDA_CORE_COMMON_WATCH_SLOT_H

#include <monkey/base/list.h>

#include <stdatomic.h>
#include <stdint.h>

/*
 * A service in a worker's thread, a call of it in the thread that reads the configuration, or a thread that runs its
 * tasks.
 */
struct watch_slot {
    struct mk_list node;
    _Atomic unsigned calls;     /* odd: code of the service runs; written by the worker */
    unsigned depth;             /* of nested calls; for the worker */
    _Atomic uintptr_t function; /* the one that was called last; 0: unknown */
    _Atomic bool is_dthread;    /* it is that of a dthread */
    const char *service;        /* its name */
    const char *call;           /* NULL: callbacks in the worker; else what runs in another thread: "duda_main()" */
    uint32_t task_ms;           /* not 0: a thread of a pool, whose tasks are logged after this time */
    unsigned worker;            /* its index */
    unsigned seen_calls;        /* this and the next two are the watchdog's */
    uint64_t seen_ms;           /* when `seen_calls` was seen first */
    bool is_logged;             /* that it blocks */
};

/* The watchdog sleeps: a call wakes it. */
extern _Atomic bool watch_sleeps;
void watch_wake(void);

static inline void watch_count(struct watch_slot *slot)
{
    unsigned calls = atomic_load_explicit(&slot->calls, memory_order_relaxed);
    atomic_store_explicit(&slot->calls, calls + 1, memory_order_relaxed);
}

/* Begins a call into the service. Calls may be nested. */
static inline void watch_begin(struct watch_slot *slot)
{
    if (slot->depth++ > 0)
        return;
    atomic_store_explicit(&slot->function, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->is_dthread, false, memory_order_relaxed);
    watch_count(slot);
    if (MK_UNLIKELY(atomic_load_explicit(&watch_sleeps, memory_order_relaxed)))
        watch_wake();
}

static inline void watch_end(struct watch_slot *slot)
{
    if (--slot->depth == 0)
        watch_count(slot);
}

#endif
