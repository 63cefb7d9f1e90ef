// SPDX-License-Identifier: Apache-2.0
/*
 * When a function of the API may be called.
 */
#ifndef DUDA_CORE_COMMON_PHASE_H
#define DUDA_CORE_COMMON_PHASE_H

#include <stdbool.h>

enum phase {
    PHASE_NONE = 0,   /* no code of a service runs, as far as the framework knows */
    PHASE_MAIN = 1,   /* duda_main() */
    PHASE_WORKER = 2, /* a callback in a worker */
    PHASE_THREAD = 4, /* a thread of worker->spawn() */
    PHASE_EXIT = 8,   /* duda_exit() */
    PHASE_LEAVE = 16, /* the rest of a callback that has ended the service in its worker, or a destroy function */
    PHASE_RUNNING = PHASE_WORKER | PHASE_LEAVE | PHASE_THREAD,
    PHASE_ANY = PHASE_MAIN | PHASE_RUNNING | PHASE_EXIT,
};

/* Returns what this thread does now. */
enum phase phase_now(void);

/* Returns whether this thread is in one of `phases`; if not, logs a sentence about `call` ("event->add()"). */
bool phase_check(unsigned phases, const char *call);

#endif
