// SPDX-License-Identifier: Apache-2.0
/*
 * The object `dthread`: coroutines. A dthread is a function with its own stack, which waits in straight code while
 * its worker serves others (docs/reference/duda/dthread.md).
 *
 *     static void answer(duda_request_t *dr)
 *     {
 *         if (dthread->sleep(100) < 0)
 *             return; // the client has left, or the service ends: `dr` must not be used
 *         response->printf(dr, "after 100 ms\n");
 *         response->end(dr, NULL);
 *     }
 *
 *     router->in_dthread(router->get("/", answer));
 *
 * A dthread runs in the worker that has created it, between other callbacks, and never at the same time as they do. It
 * continues until it waits or returns: nothing else of the worker runs meanwhile. So what blocks is not for dthreads
 * either. A stack has 64 KB; an overflow ends the server with a line that names the function.
 *
 * Waits: functions with a timeout, in milliseconds. 0: -EAGAIN instead of waiting; DUDA_FOREVER: none. They return
 *
 *     -ETIMEDOUT      the time is over
 *     -EAGAIN         it would have waited, and the timeout is 0
 *     -ECONNABORTED   the request of the dthread (handle()) has ended before its response was complete: the client has
 *                     left (noticed as by request->on_leave()), HandlerTimeout or response->abort(). Told once; `dr`
 *                     must not be used any more. No call returns it for another reason
 *     -ECANCELED      cancel() was called, which is reported once; or the service ends in this worker, which is
 *                     reported by each wait that cannot end otherwise: return
 *     -EPERM          only a dthread can wait, and not in a function that the framework calls for it (an after
 *                     callback, on_done ...); logged
 *
 * When the service ends (a reload with a new version, a stop), its dthreads are notified and run to their ends. One
 * that ignores -ECANCELED 100 times is abandoned, which is logged: what it holds is lost.
 *
 * Unless said otherwise, functions are for callbacks of a worker and for dthreads, and concern dthreads and channels of
 * this worker only. Mistakes are logged.
 */
#ifndef DUDA_DTHREAD_H
#define DUDA_DTHREAD_H

#include "event.h"

/* A dthread's number; 0 is none. A number is not used again. */
typedef uint64_t duda_dthread_t;

struct duda_channel;

#define DUDA_FOREVER UINT32_MAX

enum { DUDA_SELECT_MAX = 16 };

struct duda_api_dthread {
    /*
     * create() runs `fn(data)` in a new dthread, at the end of this turn of the loop. handle() runs `fn(dr, data)` for
     * a request, which the handler leaves without a response: the dthread sends it. `dr` is NULL if the request has
     * ended before it begins. A request may have any number of dthreads.
     *
     * If the last one returns without a response, the client gets 500 at once, which is logged with `fn`, unless
     * something else sends it: the body has begun (flush(), an event stream), or the request has a ticket, a task of
     * start(), a request->read(), session->open() or save() that has not ended, or was continued by router->next().
     * For what the framework does not see (a timer, a descriptor, a command of a package) call response->wait().
     *
     * Returns its number, or 0, which is logged: `fn` is NULL, `dr` has ended, no memory, or the process has as many
     * stacks as a quarter of vm.max_map_count.
     */
    duda_dthread_t (*create)(duda_call_fn fn, void *data);
    duda_dthread_t (*handle)(duda_request_t *dr, duda_event_fn fn, void *data);
    /* Returns the number of the calling dthread, or 0. */
    duda_dthread_t (*running)(void);
    /* Returns whether it has not ended. */
    bool (*alive)(duda_dthread_t number);
    /* Has its wait, or the next one, return -ECANCELED. Returns 0, -ESRCH (it has ended) or -EINVAL (the caller). */
    int (*cancel)(duda_dthread_t number);

    /* ── waits of dthreads ── */

    /* Waits for `ms` milliseconds; 0 is yield(). Returns 0 or an error. */
    int (*sleep)(uint32_t ms);
    /* Lets the worker do other work, and continues in the next turn. Returns 0 or an error. */
    int (*yield)(void);
    /*
     * Waits until a descriptor can be read or written (`mode`: DUDA_EVENT_READ, WRITE or RW), has an error, or was
     * closed by the other side. Returns DUDA_EVENT_READ or DUDA_EVENT_WRITE, an error, -EEXIST (it is watched by
     * event->add() or another dthread), -EPERM (a regular file), -EBADF, -EINVAL or -ENOMEM. Do not close it meanwhile.
     */
    int (*poll)(int fd, int mode, uint32_t timeout_ms);
    /* Waits for the end of another dthread. Returns 0, also if it had ended, an error, or -EDEADLK (the caller). */
    int (*join)(duda_dthread_t number, uint32_t timeout_ms);
    /*
     * wait() waits until wake() is called for this dthread. A wake() that comes when it does not wait in wait() is kept
     * for the next wait(), which returns 0 at once; several count as one. For callbacks of other objects, which may
     * still be called after wait() has returned an error. wake() returns 0 or -ESRCH (it has ended).
     */
    int (*wait)(uint32_t timeout_ms);
    int (*wake)(duda_dthread_t number);

    /* ── channels: pointers from dthread to dthread, in order ── */

    /* Returns a channel that holds up to `size` pointers, at most 65,536; with 0 each sender waits for a receiver.
     * Returns NULL, which is logged: `size`, or no memory. */
    struct duda_channel *(*channel)(unsigned size);
    /* Sends `value`. Returns 0, -EPIPE (the channel is closed) or an error. Callbacks may call it with the timeout 0.
     */
    int (*send)(struct duda_channel *c, void *value, uint32_t timeout_ms);
    /* Receives a value. Returns 0, -EPIPE (it is closed and empty) or an error. Callbacks: with the timeout 0. */
    int (*receive)(struct duda_channel *c, void **ret, uint32_t timeout_ms);
    /* Receives from the first of `n` channels (1 to 16) that has a value or is closed. Returns its index or an error;
     * of a closed channel: index and NULL in *ret. */
    int (*select)(struct duda_channel *const *channels, unsigned n, void **ret, uint32_t timeout_ms);
    /* Ends the values: waiting senders get -EPIPE, receivers the values that are left and then -EPIPE. */
    void (*close)(struct duda_channel *c);
    /* Closes and frees a channel, also with values. Those that are left when the service ends are freed. NULL: nothing.
     */
    void (*channel_free)(struct duda_channel *c);
};

DUDA_OBJECT(struct duda_api_dthread, dthread)

#endif
