// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the stack of the calling thread, also in a handler of a signal. Async-signal-safe.
 */
#ifndef DUDA_CORE_CRASH_TRACE_H
#define DUDA_CORE_CRASH_TRACE_H

#include <stdint.h>

enum { TRACE_FRAMES_MAX = 64 };

/* Addresses of code, the innermost first: where the thread is, and after it what the calls return to. */
struct trace {
    uintptr_t frames[TRACE_FRAMES_MAX];
    int first, n; /* `first`: of the frames before it nothing is wanted */
};

/* Reads the stack, from the caller on. */
void trace_read(struct trace *t);
/* The same from where a signal has come, with the third argument of its handler. */
void trace_read_signal(struct trace *t, void *context);

#endif
