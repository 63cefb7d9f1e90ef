// SPDX-License-Identifier: Apache-2.0
/*
 * The rows of a table (table.h), and their order.
 */
#include "table.h"

#include "value.h"

#include <stdlib.h>

enum { CELL_BYTES_MAX = 16 * 1024 };

/* ── rows ── */

void table_init(struct table *t, const struct text_style *style)
{
    *t = (struct table){.style = *style};
    t->last = &t->first;
}

void table_clear(struct table *t)
{
    for (struct table_row *row = t->first, *next; row; row = next) {
        next = row->next;
        for (unsigned i = 0; i < TABLE_COLUMNS_MAX; i++)
            free(row->cells[i]);
        free(row);
    }
    t->first = NULL;
    t->last = &t->first;
    t->n_rows = 0;
}

void table_release(struct table *t)
{
    table_clear(t);
    for (unsigned i = 0; i < t->n_columns; i++)
        free(t->columns[i].key);
    t->n_columns = 0;
}

/* Returns the width that a column of a stream has, whose later rows are not known when its heading is printed. */
static size_t get_stream_width(const char *key)
{
    static const struct {
        const char *key;
        size_t width;
    } widths[] = {{"before", 13}, {"after", 13}, {"peer", 15}, {"id", 5}};
    for (size_t i = 0; i < MK_COUNT_OF(widths); i++)
        if (strcmp(widths[i].key, key) == 0)
            return widths[i].width;
    return 0;
}

/* Returns the column of a member, which is added if it is new; NULL: there is no room. */
static struct table_column *find_column(struct table *t, const struct object_member *m)
{
    for (unsigned i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].key, m->key) == 0)
            return &t->columns[i];
    char *key = t->n_columns < TABLE_COLUMNS_MAX && !t->began ? strdup(m->key) : NULL;
    if (!key)
        return NULL;
    struct table_column *column = &t->columns[t->n_columns++];
    *column = (struct table_column){.key = key, .number = m->kind == OBJECT_NUMBER, .empty = !t->stream};
    column->width = value_name_length(key);
    if (t->stream && column->width < get_stream_width(key))
        column->width = get_stream_width(key);
    return column;
}

static char *make_cell(const struct object_member *m, const struct text_style *style)
{
    struct mk_buf text;
    mk_buf_init(&text, CELL_BYTES_MAX);
    value_add(&text, m, style, 1);
    char *copy = text.err ? strdup("...") : strndup(mk_buf_cstr(&text), TABLE_CELL_MAX);
    mk_buf_release(&text);
    return copy;
}

bool table_add(struct table *t, const struct object *o)
{
    struct table_row *row = calloc(1, sizeof(*row));
    if (!row)
        return false;
    *t->last = row;
    t->last = &row->next;
    t->n_rows++;
    for (unsigned i = 0; i < o->n; i++) {
        struct table_column *column = value_is_hidden(o->items[i].key) ? NULL : find_column(t, &o->items[i]);
        char *cell = column ? make_cell(&o->items[i], &t->style) : NULL;
        if (!cell)
            continue;
        size_t width = text_width(cell);
        free(row->cells[column - t->columns]);
        row->cells[column - t->columns] = cell;
        row->numbers[column - t->columns] = atoll(o->items[i].value);
        column->empty &= width == 0;
        if (!t->began && width > column->width)
            column->width = width;
    }
    return true;
}

/* ── sorting ── */

/* For qsort_r(): the column's index, and whether it has numbers. */
struct order {
    unsigned at;
    bool number;
};

static int compare_rows(const void *left, const void *right, void *ctx)
{
    const struct order *order = ctx;
    const struct table_row *a = *(struct table_row *const *)left, *b = *(struct table_row *const *)right;
    long long x = a->numbers[order->at], y = b->numbers[order->at];
    if (order->number)
        return x < y ? 1 : x > y ? -1 : 0;
    const char *p = a->cells[order->at], *q = b->cells[order->at];
    return strcmp(p ? p : "", q ? q : "");
}

static bool is_named(const char *key, const char *name)
{
    size_t len = value_name_length(key);
    return strcmp(key, name) == 0 || (strlen(name) == len && memcmp(key, name, len) == 0);
}

bool table_sort(struct table *t, const char *key)
{
    struct order order = {0, false};
    while (order.at < t->n_columns && !is_named(t->columns[order.at].key, key))
        order.at++;
    struct table_row **rows = order.at < t->n_columns ? calloc(t->n_rows + 1, sizeof(*rows)) : NULL;
    if (!rows)
        return false;
    size_t n = 0;
    order.number = t->columns[order.at].number;
    for (struct table_row *row = t->first; row; row = row->next)
        rows[n++] = row;
    qsort_r(rows, n, sizeof(struct table_row *), compare_rows, &order);
    t->last = &t->first;
    for (size_t i = 0; i < n; i++) {
        *t->last = rows[i];
        t->last = &rows[i]->next;
    }
    *t->last = NULL;
    free(rows);
    return true;
}
