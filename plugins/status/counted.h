// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of what other plugins count by labels: a row for each pair of labels, such as the backends of requests and
 * the servers of groups.
 */
#ifndef STATUS_COUNTED_H
#define STATUS_COUNTED_H

#include <monkey/buf.h>
#include <monkey/counters.h>

enum { COUNTED_ROWS_MAX = 1024, COUNTED_NUMBERS_MAX = 20, COUNTED_DURATIONS_MAX = 3, COUNTED_PLUGIN_BYTES = 32 };

/* A number of a row: a counter, or one that has a certain value in a further label. */
struct counted_number {
    const char *counter, *label, *value; /* `label` NULL: all of that name are added */
    const char *object, *key;            /* in the document; `object` NULL: of the row itself */
};

struct counted_duration {
    const char *counter, *key;
};

/* What is counted; constant. The tables end with a row without a counter. */
struct counted_type {
    const char *plugin;    /* NULL: any one, which the document names */
    const char *labels[2]; /* the second one may be missing */
    const char *keys[2];   /* of these in the document */
    const char *name, *omits_name;
    const struct counted_number *numbers;
    const struct counted_duration *durations;
};

struct counted_durations {
    uint64_t sum_us, buckets[MK_COUNTER_BUCKETS];
};

struct counted_row {
    char plugin[COUNTED_PLUGIN_BYTES];
    uint16_t plugin_len;
    char labels[2][MK_COUNTER_LABEL_VALUE_BYTES];
    uint16_t label_lens[2];
    int64_t numbers[COUNTED_NUMBERS_MAX];
    struct counted_durations durations[COUNTED_DURATIONS_MAX];
};

/* All zeros but for the type. */
struct counted {
    const struct counted_type *type;
    struct counted_row *rows; /* in the order in which they came */
    unsigned n, room;
    bool omits_some; /* there are more of them, or no memory */
};

extern const struct counted_type counted_backends, counted_servers;

/* Adds a counter of a plugin, if it is one of the table. counted_release() frees the rows. */
void counted_add(struct counted *all, const struct mk_counter_value *v);
void counted_release(struct counted *all);

/* Writes the array, at most `max` rows (0: all), and whether it leaves some out. */
void counted_write(const struct counted *all, unsigned max, struct mk_buf *out);

#endif
