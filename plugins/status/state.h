// SPDX-License-Identifier: Apache-2.0
/*
 * The states of the plugin: of the process, of a generation, and of a worker.
 */
#ifndef STATUS_STATE_H
#define STATUS_STATE_H

#include "history.h"
#include "snapshot.h"
#include "section.h"

#include <monkey/event_stream.h>

#include <stdatomic.h>

enum { STATE_REPLIES_MAX = 16 /* at the same time, in the process */ };

struct state {
    struct mk_threads threads;
    double start_time;        /* of the process, since 1970 */
    _Atomic unsigned replies; /* now */
    unsigned streams;         /* now; changed atomically (<monkey/event_stream.h>) */
    pthread_mutex_t lock;     /* of the history; held for moments only */
    struct history history;
};

struct state_generation {
    const struct settings *settings;
};

struct state_worker {
    struct state *state;
    struct state_generation *generation;
    uint32_t number; /* of the generation */
    struct mk_thread_worker own;
    /* of the live page (stream.c) */
    struct mk_event_streams streams;
    struct snapshot *snapshot; /* for the next event; NULL: none */
};

#endif
