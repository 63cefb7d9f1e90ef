// SPDX-License-Identifier: Apache-2.0
/*
 * The last messages of a service, for its console: a ring of a fixed number of lines, which any thread adds to. The
 * versions of a service share it, by references.
 */
#ifndef DUDA_CORE_LOG_RECENT_H
#define DUDA_CORE_LOG_RECENT_H

#include <monkey/str.h>

#include <stdint.h>

struct recent;

enum { RECENT_LINES_MAX = 200, RECENT_TEXT_BYTES = 500, RECENT_KIND_BYTES = 8 };

/* A line is valid UTF-8 without control characters. */
struct recent_line {
    int64_t wall_ms; /* since 1970 */
    uint16_t len;
    char kind[RECENT_KIND_BYTES]; /* "debug", "info", "warn", "error", "bug"; with a NUL */
    char text[RECENT_TEXT_BYTES];
};

/* Returns an empty ring with one reference, or NULL without memory. */
struct recent *recent_new(void);
/* Count references; any thread. recent_get() returns `recent`; both take NULL. */
struct recent *recent_get(struct recent *recent);
void recent_put(struct recent *recent);

/* Adds a line, of which at most RECENT_TEXT_BYTES are kept; the oldest one goes. Any thread; never blocks for long. */
void recent_add(struct recent *recent, const char *kind, struct mk_str text);
/*
 * Copies the lines, the oldest first, to `lines`, which has room for RECENT_LINES_MAX. `ret_all`: how many were added
 * in all. Returns their number. Any thread.
 */
unsigned recent_read(struct recent *recent, struct recent_line *lines, uint64_t *ret_all);

#endif
