// SPDX-License-Identifier: Apache-2.0
/*
 * Answers as text for people: aligned columns, or a value in each line. Units of keys are resolved: memory_bytes
 * becomes MEMORY with 1.5M, age_s AGE with 3m20s. Control characters are shown as \xNN, so that nothing that a client
 * of the server has sent reaches the terminal as an escape sequence. Keys that begin with an underscore are for
 * programs only.
 */
#ifndef SHELL_TABLE_H
#define SHELL_TABLE_H

#include "object.h"

#include <monkey/buf.h>

enum { TABLE_COLUMNS_MAX = OBJECT_MEMBERS_MAX, TABLE_CELL_MAX = 512 };

struct table_row {
    struct table_row *next;
    char *cells[TABLE_COLUMNS_MAX]; /* NULL: empty */
    long long numbers[TABLE_COLUMNS_MAX];
};

struct table_column {
    char *key;
    size_t width;
    bool number, empty;
};

struct table {
    bool colours;
    unsigned n_columns;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct table_row *first, **last;
    size_t n_rows;
    bool began; /* the heading was printed: the widths stay */
};

void table_init(struct table *t, bool colours);
void table_release(struct table *t);
/* Adds a row. Returns false without memory. */
bool table_add(struct table *t, const struct object *o);
/* Sorts the rows by a column, numbers from the greatest; `key` with or without its unit. Returns false if there is
 * none. */
bool table_sort(struct table *t, const char *key);
/* Appends the rows so far, which are removed; the first time with the heading. */
void table_print(struct table *t, struct mk_buf *out);

/* Appends the members of an object, one in a line. */
void table_print_list(const struct object *o, bool colours, struct mk_buf *out);
/* Appends a text; control characters as \xNN. */
void table_add_safe(struct mk_buf *out, const char *text);
/* Appends a value in the form for people, by the unit at the end of the key. */
void table_add_value(struct mk_buf *out, const struct object_member *m);

#endif
