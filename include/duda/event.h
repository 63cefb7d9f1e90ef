// SPDX-License-Identifier: Apache-2.0
/*
 * The object `event`: descriptors, timers and calls between workers, in the loop of a worker; and private loops for
 * threads of the service's own (worker->spawn()).
 *
 *     static int on_read(int fd, void *data)
 *     {
 *         char bytes[4096];
 *         ssize_t n = read(fd, bytes, sizeof(bytes));
 *         return n > 0 ? DUDA_EVENT_OWNED : DUDA_EVENT_CLOSE;
 *     }
 *
 *     event->add(fd, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, on_read, NULL, NULL, NULL, NULL, data);
 *
 * A descriptor or timer belongs to the worker whose callback has added it; only callbacks of this worker can use it.
 * Callbacks must not block. They may remove their own and other descriptors and timers, which are then not called any
 * more. What is left when the service ends in a worker is removed without a call: descriptors are not closed. A
 * reload that leaves the service unchanged does not end it.
 *
 * Threads: "worker" is a callback in a worker; "any thread" includes threads of worker->spawn(). A call from another
 * place fails and is logged.
 */
#ifndef DUDA_EVENT_H
#define DUDA_EVENT_H

#include "types.h"

enum {
    /* What a descriptor waits for. SLEEP: nothing, until it gets another mode; WAKEUP: what it waited for before. */
    DUDA_EVENT_READ = 1,
    DUDA_EVENT_WRITE = 2,
    DUDA_EVENT_RW = 3,
    DUDA_EVENT_SLEEP = 4,
    DUDA_EVENT_WAKEUP = 8,

    /* Behaviors: called as long as the descriptor is ready, or once each time that it becomes so (EPOLLET). */
    DUDA_EVENT_LEVEL_TRIGGERED = 1,
    DUDA_EVENT_EDGE_TRIGGERED = 2,

    /* Results of callbacks. CLOSE: the descriptor is removed, on_close is called, and then it is closed. */
    DUDA_EVENT_CLOSE = -1,
    DUDA_EVENT_CONTINUE = 0, /* the other callbacks for what has happened are called, too */
    DUDA_EVENT_OWNED = 1,    /* this callback has done what was to do; the others are not called in this turn */

    DUDA_EVENT_ALL_WORKERS = -1,
};

/* Returns one of the results above; other values count as DUDA_EVENT_CONTINUE. */
typedef int (*duda_fd_fn)(int fd, void *data);
typedef void (*duda_call_fn)(void *data);
typedef void (*duda_signal_fn)(int fd, uint64_t value);

/* A descriptor in a worker's loop; valid until it is removed. Read only. */
struct duda_event_handler {
    int fd;
    int mode; /* READ, WRITE, RW or SLEEP */
    int behavior;
    duda_fd_fn on_read, on_write, on_error, on_close, on_timeout;
    void *data;
};

/* A timer; 0 is none. */
typedef uint64_t duda_timer_t;

/* A private loop. `events`: what the last loop_wait() has found. */
struct duda_loop_event {
    int fd;
    int mask; /* READ, WRITE or RW; a descriptor with an error or hang-up has the bits that it waits for */
    void *data;
};

struct duda_event_loop {
    int size; /* the most that one loop_wait() returns */
    struct duda_loop_event *events;
};

struct duda_api_event {
    /*
     * Watches `fd` in the calling worker's loop. Callbacks may be NULL.
     *
     *   on_read     data, or the end of the stream (read() returns 0)
     *   on_write    there is room again
     *   on_error    an error is pending; without on_error the callback of the mode is called
     *   on_close    the other side has closed, and nothing is left to read; or a callback has returned CLOSE
     *   on_timeout  nothing happened for the time of timeout(); without that call it is never called
     *
     * An event without a callback that could be called removes the descriptor, which is logged.
     * Returns 0 or -1, which is logged: a wrong argument, `fd` is watched already, cannot be watched (a regular file),
     * no memory. Worker.
     */
    int (*add)(int fd, int mode, int behavior, duda_fd_fn on_read, duda_fd_fn on_write, duda_fd_fn on_error,
               duda_fd_fn on_close, duda_fd_fn on_timeout, void *data);
    /* Returns the descriptor's handler, or NULL: it is not watched in this worker. Worker. */
    struct duda_event_handler *(*lookup)(int fd);
    /* Changes mode and behavior. Returns 0 or -1 (it is not watched). Worker. */
    int (*mode)(int fd, int mode, int behavior);
    /* Stops watching and does not close. Returns 0 or -1 (it is not watched). Worker. C++ has only `del`. */
#ifdef __cplusplus
    int (*del)(int fd);
#else
    union {
        int (*del)(int fd);
        int (*delete)(int fd);
    };
#endif
    /*
     * Has on_timeout called when no callback was called for `ms` milliseconds; 0: no longer. It is called again after
     * the same time unless it returns CLOSE. Returns 0 or -1 (it is not watched). Worker.
     */
    int (*timeout)(int fd, uint32_t ms);

    /*
     * timer() calls `fn` once, interval() each `ms` milliseconds, from now on; late calls are not made up for.
     * Both return the timer, or 0, which is logged: `fn` is NULL, `ms` is 0 (interval), there are 65,536 timers in the
     * worker, or no memory. Worker, also in pre_loop functions.
     */
    duda_timer_t (*timer)(uint32_t ms, duda_call_fn fn, void *data);
    duda_timer_t (*interval)(uint32_t ms, duda_call_fn fn, void *data);
    /* Removes a timer. Returns 0 or -1: it was called for the last time, or was removed. Worker. */
    int (*cancel)(duda_timer_t timer);

    /*
     * Calls `fn` in a worker, by its number (worker->index()), or in each of them; calls of one thread arrive in order.
     * `fn` is not called if the service ends before. Returns 0, or -1: there is no such worker, 65,536 calls wait for
     * it, or no memory. Any thread.
     */
    int (*post)(int worker, duda_call_fn fn, void *data);
    /*
     * Sends a value to all workers, whose signal callback is called with it, and to all descriptors of
     * create_signal_fd(). Returns 0, or -1: as post(). Any thread.
     */
    int (*signal)(uint64_t value);
    /* Sets the function that is called in each worker for signal(); `fd` is of no use. Only in duda_main(). Returns 0
     * or -1. */
    int (*set_signal_callback)(duda_signal_fn fn);
    /*
     * Returns a descriptor from which values of signal() can be read, 8 bytes each, or -1. read() returns 0 when the
     * service ends. The caller closes it. A value that finds the socket's buffer full is lost, which is logged. At most
     * 256 per service. duda_main() and any thread.
     */
    int (*create_signal_fd)(void);

    /* ── private loops, for the thread that uses them ── */

    /* Returns a loop whose loop_wait() returns at most `size` events, 1 to 65,536; NULL without memory. */
    struct duda_event_loop *(*loop_create)(int size);
    /* Watches `fd`, or changes its mask: READ, WRITE or RW; level-triggered. Returns 0 or -1 with errno. */
    int (*loop_add)(struct duda_event_loop *loop, int fd, int mask, void *data);
    /* Stops watching. Returns 0 or -1 with errno. */
    int (*loop_delete)(struct duda_event_loop *loop, int fd);
    /* Returns a descriptor, watched by the loop, that is readable each `seconds`; read 8 bytes then. Or -1 with errno.
     */
    int (*loop_timeout_create)(struct duda_event_loop *loop, int seconds);
    /* Makes a pipe whose reading end the loop watches. Returns 0 or -1 with errno. */
    int (*loop_channel_create)(struct duda_event_loop *loop, int *ret_read, int *ret_write);
    /*
     * Waits for events. Returns how many are in loop->events, or -1: the service ends, or an error (errno). In a thread
     * of worker->spawn(), the next call after that end ends the thread. Not in a worker, whose clients would wait.
     */
    int (*loop_wait)(struct duda_event_loop *loop);
    /*
     * Frees the loop. The descriptors are the caller's, those of loop_timeout_create() and loop_channel_create(), too.
     * A loop that is left after duda_exit() is freed, and what these two have made for it is closed.
     */
    void (*loop_free)(struct duda_event_loop *loop);
    /* Returns "epoll". */
    const char *(*loop_backend)(void);

    /* ── one worker of the service ── */

    /*
     * Runs `fn(data)` each `ms` milliseconds in one of the workers, the first time `ms` after the service has begun to
     * serve. It runs in a dthread (dthread.h), so that it may wait, and have what blocks done by a task (task.h). A run
     * that is not over when the next one is due is not interrupted, and that one is left out; late runs are not made
     * up for.
     *
     * A reload that leaves the service unchanged does not end it; with fewer workers another one may continue. When the
     * service is replaced no new run begins in the old version, whose requests may last longer; a run that is under way
     * continues, and its waits return -ECANCELED when the worker has no request of the old version any more. The new
     * version begins with its own calls of every(). Other processes and machines run it, too.
     *
     * Returns 0 or -1, which is logged: `fn` is NULL, `ms` is 0, 256 functions, no memory. Only in duda_main().
     */
    int (*every)(uint32_t ms, duda_call_fn fn, void *data);
};

DUDA_OBJECT(struct duda_api_event, event)

#endif
