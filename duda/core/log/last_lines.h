// SPDX-License-Identifier: Apache-2.0
/*
 * The last messages of a service, for its console: a ring of a fixed number of lines, which any thread adds to. The
 * versions of a service share it, by references.
 */
#ifndef DUDA_CORE_LOG_LAST_LINES_H
#define DUDA_CORE_LOG_LAST_LINES_H

#include <monkey/base/str.h>

#include <stdint.h>

struct last_lines;

enum { LAST_LINES_MAX = 200, LAST_LINE_BYTES = 500, LAST_LINE_KIND_BYTES = 8 };

/* A line is valid UTF-8 without control characters. */
struct last_line {
    int64_t wall_ms; /* since 1970 */
    uint16_t len;
    char kind[LAST_LINE_KIND_BYTES]; /* "debug", "info", "warn", "error", "bug"; with a NUL */
    char text[LAST_LINE_BYTES];
};

/* Returns an empty ring with one reference, or NULL without memory. */
struct last_lines *last_lines_new(void);
/* Count references; any thread. last_lines_get() returns `last`; both take NULL. */
struct last_lines *last_lines_get(struct last_lines *last);
void last_lines_put(struct last_lines *last);

/* Adds a line, of which at most LAST_LINE_BYTES are kept; the oldest one goes. Any thread; never blocks for long. */
void last_lines_add(struct last_lines *last, const char *kind, struct mk_str text);
/*
 * Copies the lines, the oldest first, to `lines`, which has room for LAST_LINES_MAX. `ret_all`: how many were added
 * in all. Returns their number. Any thread.
 */
unsigned last_lines_read(struct last_lines *last, struct last_line *lines, uint64_t *ret_all);

#endif
