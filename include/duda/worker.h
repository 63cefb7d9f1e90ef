// SPDX-License-Identifier: Apache-2.0
/*
 * The object `worker`: the threads that serve, and threads of the service's own.
 *
 *     static void *collect(void *arg)
 *     {
 *         while (!worker->stopping())
 *             wait_and_collect(arg);
 *         return NULL;
 *     }
 *
 *     int duda_main(void) { return worker->spawn(collect, NULL); }
 */
#ifndef DUDA_WORKER_H
#define DUDA_WORKER_H

#include "types.h"

struct duda_api_worker {
    /*
     * Runs `fn(arg)` in its own thread, which starts with the first worker. It has values of all global keys
     * (global->init()), blocks all signals, and may use what says "any thread". It may return at any time, and must
     * when stopping() is true: see stopping(). At most 256 per service.
     * Returns 0 or -1. Only in duda_main().
     */
    int (*spawn)(void *(*fn)(void *arg), void *arg);
    /*
     * Calls `fn(data)` in each worker before it serves the service, after the functions of global->init(). It may add
     * descriptors and timers. Returns 0 or -1. Only in duda_main().
     */
    int (*pre_loop)(void (*fn)(void *data), void *data);

    /*
     * Returns true once the service ends. Its threads must return then; event->loop_wait() returns -1, and descriptors
     * of event->create_signal_fd() are at their end. After a second duda_exit() is called anyway; as long as a thread
     * runs on, the service stays in memory, which is logged. Any thread.
     */
    bool (*stopping)(void);

    /* Returns the number of the calling worker, from 0; -1 in other threads. */
    int (*index)(void);
    /* Returns how many workers serve the service now. Any thread. */
    int (*count)(void);
};

DUDA_OBJECT(struct duda_api_worker, worker)

#endif
