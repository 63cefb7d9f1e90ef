// SPDX-License-Identifier: Apache-2.0
/*
 * The last messages of a service, for its console: a ring of a fixed number of lines, which any thread adds to. The
 * versions of a service share it, by references.
 */
#ifndef DUDA_CORE_LOG_LAST_LINES_H
#define DUDA_CORE_LOG_LAST_LINES_H

#include "service/service.h"

#include <monkey/base/str.h>

#include <stdatomic.h>
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

/* Of a service: its ring; NULL: no console is enabled. Set once. */
struct service_lines {
    _Atomic(struct last_lines *) ring;
};

FEATURE_SLOT(last_lines_of, struct service_lines, service, FEATURE_LAST_LINES)

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

/* Has a service keep its last messages from now on. In the hooks of the configuration. */
void last_lines_keep(struct service *s);
/* Adds a message of the service (NULL: of none), if they are kept. Any thread. */
void last_lines_add_of(struct service *s, const char *kind, struct mk_str text);

static inline bool last_lines_are_kept(const struct service *s)
{
    return atomic_load_explicit(&last_lines_of(s)->ring, memory_order_relaxed);
}

/* Hooks of features.c. */
void last_lines_inherit(struct service *s, struct service *before);
void last_lines_release(struct service *s);

#endif
