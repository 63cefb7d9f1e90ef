// SPDX-License-Identifier: Apache-2.0
/*
 * Functions, files and lines of addresses in services, from the symbols and the DWARF of the copy that was loaded.
 */
#ifndef DUDA_CORE_CRASH_NAMES_H
#define DUDA_CORE_CRASH_NAMES_H

#include "crash/crash_object.h"

/* `file`: below the folder of the service, or absolute; NULL without debug information, as line 0. */
struct name {
    const char *function, *file;
    int line;
};

typedef void (*name_fn)(void *ctx, const struct name *name);

/*
 * Calls fn for each function at an address: those that were inlined there first, the one that contains it last. Returns
 * how many; 0: the file is stripped, or cannot be read.
 * Async-signal-safe, except for a lock of the dynamic linker. What was read of a file stays in memory, since
 * libbacktrace cannot free it: once for each object that has crashed, blocked a worker or made a mistake, of 64 at
 * most.
 */
unsigned names_find(struct crash_object *object, uintptr_t address, name_fn fn, void *ctx);
/* Says why names_find() has found nothing, as a line of the log; NULL: this build of the server finds no names. */
const char *names_explain(const struct crash_object *object);

#endif
