// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of counters by labels: a row for each pair of labels, such as the backends of requests, with numbers and
 * durations of its counters. For commands and documents; linked into the plugin (libmonkey-kit.a). One thread.
 *
 *     struct mk_counter_table table = {.type = &backends};
 *     mk_counters_each(add, &table);   // a function that calls mk_counter_table_add()
 *     for (unsigned i = 0; i < table.n; i++)
 *         write_row(&table.rows[i]);
 *     mk_counter_table_release(&table);
 */
#ifndef MONKEY_COUNTER_TABLE_H
#define MONKEY_COUNTER_TABLE_H

#include "../counters.h"

MK_C_BEGIN

enum {
    MK_COUNTER_TABLE_ROWS_MAX = 1024,
    MK_COUNTER_TABLE_NUMBERS_MAX = 20,
    MK_COUNTER_TABLE_DURATIONS_MAX = 3,
    MK_COUNTER_TABLE_PLUGIN_BYTES = 64, /* no name of a plugin is longer */
};

/* A number of a row: a counter, or one that has a certain value in a further label. */
struct mk_counter_table_number {
    const char *counter, *label, *value; /* `label` NULL: all of that name are added */
    const char *object, *key;            /* for the caller: where the number is in its document */
};

struct mk_counter_table_duration {
    const char *counter; /* a histogram */
    const char *key;     /* for the caller */
};

/* What is in a table; constant. The arrays end with an element without a counter. */
struct mk_counter_table_type {
    const char *plugin;    /* whose counters; NULL: of any plugin, each of which has its own rows */
    const char *labels[2]; /* counters without the first one are left out; the second one may be missing */
    const struct mk_counter_table_number *numbers;     /* at most MK_COUNTER_TABLE_NUMBERS_MAX */
    const struct mk_counter_table_duration *durations; /* at most MK_COUNTER_TABLE_DURATIONS_MAX */
};

struct mk_counter_table_durations {
    uint64_t sum_us, buckets[MK_COUNTER_BUCKETS];
};

/* The numbers and durations are in the order of the type. */
struct mk_counter_table_row {
    char plugin[MK_COUNTER_TABLE_PLUGIN_BYTES];
    char labels[2][MK_COUNTER_LABEL_VALUE_BYTES];
    uint16_t plugin_len, label_lens[2];
    int64_t numbers[MK_COUNTER_TABLE_NUMBERS_MAX];
    struct mk_counter_table_durations durations[MK_COUNTER_TABLE_DURATIONS_MAX];
};

/* All zeros but for the type. */
struct mk_counter_table {
    const struct mk_counter_table_type *type;
    struct mk_counter_table_row *rows; /* in the order in which they came */
    unsigned n, room;
    unsigned last;   /* the row that was found last */
    bool omits_some; /* there are more than MK_COUNTER_TABLE_ROWS_MAX, or there is no memory */
};

/* Adds a counter to its row, if it is one of the table. */
void mk_counter_table_add(struct mk_counter_table *table, const struct mk_counter_value *value);
/* Returns the value of a label of a row; empty: it does not have the second one. Valid as long as the rows. */
static inline struct mk_str mk_counter_table_label(const struct mk_counter_table_row *row, unsigned i)
{
    return mk_str(row->labels[i], row->label_lens[i]);
}
/* Frees the rows; the table is empty then. */
void mk_counter_table_release(struct mk_counter_table *table);

MK_C_END

#endif
