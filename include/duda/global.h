// SPDX-License-Identifier: Apache-2.0
/*
 * The object `global`: variables of which each worker, and each thread of worker->spawn(), has its own value, so
 * that no lock is needed.
 *
 *     static duda_global_t connection;
 *
 *     int duda_main(void) { return global->init(&connection, open_connection, NULL); }
 *
 *     static void on_request(duda_request_t *dr) { struct conn *c = global->get(connection); ... }
 */
#ifndef DUDA_GLOBAL_H
#define DUDA_GLOBAL_H

#include "types.h"

/* A key; zeroed before init(). */
typedef struct duda_global {
    unsigned id;
} duda_global_t;

struct duda_api_global {
    /*
     * Makes a key. `make(data)` is called once in each worker before it serves the service, and in each thread of
     * worker->spawn() before its function: its result is the first value. NULL: the first value is NULL. Threads that
     * services of the original API create get their values when they use one.
     * Returns 0 or -1: no memory, or 4,096 keys exist. Only in duda_main().
     */
    int (*init)(duda_global_t *key, void *(*make)(void *data), void *data);
    /* As init(); `destroy(value)` is called for a value other than NULL when its worker or thread ends. */
    int (*init_destroy)(duda_global_t *key, void *(*make)(void *data), void *data, void (*destroy)(void *value));
    /* Returns the calling thread's value. NULL, which is logged, for a thread without values. Any thread. */
    void *(*get)(duda_global_t key);
    /* Sets the calling thread's value; the former one is not destroyed. Returns 0 or -1, which is logged. Any thread.
     */
    int (*set)(duda_global_t key, void *value);
};

DUDA_OBJECT(struct duda_api_global, global)

#endif
