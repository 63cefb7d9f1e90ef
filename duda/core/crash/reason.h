// SPDX-License-Identifier: Apache-2.0
/*
 * What is known about a crash in addition to its address: the request, and mistakes that are recognized.
 */
#ifndef DUDA_CORE_CRASH_REASON_H
#define DUDA_CORE_CRASH_REASON_H

#include "crash/line.h"

#include <signal.h>

/* Looks up what the C library keeps for a handler. Not in a handler. */
void reason_start(void);

/* Adds ": MESSAGE", what the C library has said before abort(); or nothing. */
void reason_add_abort(struct line *l);

/*
 * Calls `log` for each line about the crash of the service that runs in this thread: its request, packages that were
 * not loaded, memory that was freed twice. Async-signal-safe.
 */
void reason_log(int number, const siginfo_t *info, void (*log)(const char *text));

#endif
