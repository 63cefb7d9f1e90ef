// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin proxy has counted for each backend, as rows of the document. Knows the names of its counters.
 */
#ifndef STATUS_BACKENDS_H
#define STATUS_BACKENDS_H

#include <monkey/buf.h>
#include <monkey/counters.h>

enum { BACKENDS_MAX = 1024 };
enum backend_number {
    BACKEND_REQUESTS,
    BACKEND_1XX, /* responses by class */
    BACKEND_2XX,
    BACKEND_3XX,
    BACKEND_4XX,
    BACKEND_5XX,
    BACKEND_RETRIES,
    BACKEND_FAILURES,
    BACKEND_TIMEOUTS,
    BACKEND_OPENED,
    BACKEND_BUSY,
    BACKEND_IDLE,
    BACKEND_SENT,
    BACKEND_RECEIVED,
    BACKEND_NUMBERS
};

struct backend_durations {
    uint64_t sum_us, buckets[MK_COUNTER_BUCKETS];
};

struct backend_row {
    char name[MK_COUNTER_LABEL_VALUE_BYTES];
    uint16_t name_len;
    int64_t numbers[BACKEND_NUMBERS];
    struct backend_durations head, whole;
};

/* Initialized with zeros. */
struct backends {
    struct backend_row *rows; /* in the order in which they came */
    unsigned n, room;
    bool omits_some; /* there are more of them, or no memory */
};

/* Adds a counter of a plugin, if it is one of a backend. backends_release() frees the rows. */
void backends_add(struct backends *all, const struct mk_counter_value *v);
void backends_release(struct backends *all);

/* Writes the members `backends`, at most `max` (0: all), and `omits_backends`. */
void backends_write(const struct backends *all, unsigned max, struct mk_buf *out);

#endif
