// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: coroutines. A dthread runs when resume() is called, until it yields, ends or resumes another one.
 * Numbers begin with 0 and are used again.
 */
#ifndef DUDA_COMPAT_DTHREAD_H
#define DUDA_COMPAT_DTHREAD_H

#include "types.h"

/* READY: it has not begun. SUSPEND: it has yielded, or has resumed another one. */
enum { DTHREAD_DEAD, DTHREAD_READY, DTHREAD_RUNNING, DTHREAD_SUSPEND };
enum { DTHREAD_CHANNEL_OK = 0, DTHREAD_CHANNEL_BROKEN = -32 /* -EPIPE */ };

typedef struct duda_dthread_channel duda_dthread_channel_t;

struct duda_old_dthread {
    /* Makes a dthread, which does not run yet. Returns its number, or -1, which is logged. */
    int (*create)(void (*fn)(void *), void *data);
    int (*status)(int id);
    /* Goes back to the callback that has begun the calls of resume(). */
    void (*yield)(void);
    /*
     * Runs a dthread now. Returns when it yields, if a callback has called; otherwise when the caller is resumed. At
     * its end that continues which has resumed it first. One that has ended, or runs, is a mistake, which is logged.
     */
    void (*resume)(int id);
    /* Returns the number of the caller; -1: it is no dthread. */
    int (*running)(void);
    /*
     * Returns a channel for `size` pointers (0: one), or NULL without memory. chan_free() calls the second argument, if
     * there is one and it is not NULL, for those that were not received.
     */
    duda_dthread_channel_t *(*chan_create)(int size, void (*free_value)(void *value));
    void (*chan_free)(duda_dthread_channel_t *channel);
    int (*chan_get_sender)(duda_dthread_channel_t *channel);
    void (*chan_set_sender)(duda_dthread_channel_t *channel, int id);
    int (*chan_get_receiver)(duda_dthread_channel_t *channel);
    void (*chan_set_receiver)(duda_dthread_channel_t *channel, int id);
    /* Returns 1 once chan_end() was called and all was received, otherwise 0. */
    int (*chan_done)(duda_dthread_channel_t *channel);
    void (*chan_end)(duda_dthread_channel_t *channel);
    /* Resumes the receiver while the channel is full. Returns OK, or BROKEN: the receiver has ended. */
    int (*chan_send)(duda_dthread_channel_t *channel, void *data);
    /* Resumes the sender while the channel is empty. Returns NULL after the last one, or if the sender has ended. */
    void *(*chan_recv)(duda_dthread_channel_t *channel);
};

DUDA_OBJECT_AS(struct duda_old_dthread, dthread, "dthread.1")

#ifndef DUDA_FRAMEWORK
#define chan_create(...) chan_create(DUDA_OLD_FIRST(__VA_ARGS__, 0), DUDA_OLD_SECOND(__VA_ARGS__, 0, 0))
#endif

#endif
