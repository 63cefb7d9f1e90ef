// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the objects `console` and `debug`.
 */
#ifndef DUDA_COMPAT_CONSOLE_H
#define DUDA_COMPAT_CONSOLE_H

#include "types.h"

struct duda_old_console {
    /* Writes a line with the request and the place in the source to the messages of the service. */
    void (*debug_at)(duda_request_t *dr, const char *file, int line, const char *format, ...);
    /*
     * Serves the console of the service, a page about it, at a path below its URL, unless `Console` of [WEB_SERVICE] is
     * Off. In duda_main(). Returns 0 or -1.
     */
    int (*dashboard)(const char *uri);
};

DUDA_OBJECT_AS(struct duda_old_console, console, "console.1")

struct duda_old_debug {
    /* Writes the functions that have led here to the messages of the service. */
    void (*stacktrace)(void);
};

DUDA_OBJECT_AS(struct duda_old_debug, debug, "debug.1")

#ifndef DUDA_FRAMEWORK

/* console->debug(dr, format, ...) */
#define debug(dr, ...) debug_at(dr, __FILE__, __LINE__, __VA_ARGS__)

#endif

#endif
