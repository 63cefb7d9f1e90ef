// SPDX-License-Identifier: Apache-2.0
/*
 * Answers as text for people: aligned columns, or a value in each line; values as value.h says. On a terminal tables of
 * connections fit its width: columns that matter least are left out, then long texts are cut.
 */
#ifndef SHELL_TABLE_H
#define SHELL_TABLE_H

#include "object.h"
#include "text.h"

enum { TABLE_COLUMNS_MAX = OBJECT_MEMBERS_MAX, TABLE_CELL_MAX = 512 };

struct table_row {
    struct table_row *next;
    char *cells[TABLE_COLUMNS_MAX]; /* NULL: empty */
    long long numbers[TABLE_COLUMNS_MAX];
};

struct table_column {
    char *key;
    size_t width;
    bool number, empty, left_out;
};

struct table {
    struct text_style style;
    bool stream; /* rows are printed as they come */
    bool fits;   /* it must fit the terminal */
    unsigned n_columns;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct table_row *first, **last;
    size_t n_rows;
    bool began; /* the heading was printed: the widths stay */
};

void table_init(struct table *t, const struct text_style *style);
void table_release(struct table *t);
/* Removes the rows. */
void table_clear(struct table *t);
/* Adds a row. Returns false without memory. */
bool table_add(struct table *t, const struct object *o);
/* Sorts the rows by a column, numbers from the greatest; `key` with or without its unit. Returns false if there is
 * none. */
bool table_sort(struct table *t, const char *key);
/* Appends the rows so far, which are removed; the first time with the heading. */
void table_print(struct table *t, struct mk_buf *out);

/* Appends the members of an object, one in a line. */
void table_print_list(const struct object *o, const struct text_style *style, struct mk_buf *out);

#endif
