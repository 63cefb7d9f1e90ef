// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of what other plugins count by labels, in the document: the backends of requests and the servers of groups.
 */
#ifndef STATUS_COUNTED_H
#define STATUS_COUNTED_H

#include <monkey/buf.h>
#include <monkey/counter_table.h>

/* A table and its names in the document; constant. */
struct counted_type {
    struct mk_counter_table_type table;
    const char *keys[2]; /* of the labels */
    const char *name, *omits_name;
};

extern const struct counted_type counted_backends, counted_servers;

/* Writes the array, at most `max` rows (0: all), and whether it leaves some out. */
void counted_write(const struct counted_type *type, const struct mk_counter_table *all, unsigned max,
                   struct mk_buf *out);

#endif
