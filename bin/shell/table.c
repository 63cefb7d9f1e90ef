// SPDX-License-Identifier: Apache-2.0
/*
 * Formats answers (table.h).
 */
#include "table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum { CELL_BYTES_MAX = 16 * 1024 };

/* ── values ── */

void table_add_safe(struct mk_buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
        if (*p < 0x20 || *p == 0x7f || c1)
            mk_buf_addf(out, "\\x%02x", c1 ? *++p : *p);
        else
            mk_buf_addc(out, (char)*p);
    }
}

static void add_bytes(struct mk_buf *out, long long n)
{
    static const char units[] = "BKMGT";
    double value = (double)n;
    unsigned unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    mk_buf_addf(out, unit && value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void add_seconds(struct mk_buf *out, long long n)
{
    if (n < 60)
        mk_buf_addf(out, "%llds", n);
    else if (n < 3600)
        mk_buf_addf(out, "%lldm%02llds", n / 60, n % 60);
    else if (n < 86400)
        mk_buf_addf(out, "%lldh%02lldm", n / 3600, n / 60 % 60);
    else
        mk_buf_addf(out, "%lldd%02lldh", n / 86400, n / 3600 % 24);
}

static void add_milliseconds(struct mk_buf *out, long long n)
{
    mk_buf_addf(out, "%lldms", n);
}

static const struct {
    const char *suffix;
    void (*add)(struct mk_buf *out, long long n);
} units[] = {{"_bytes", add_bytes}, {"_s", add_seconds}, {"_ms", add_milliseconds}};

/* Returns the index of the unit of a key, or -1, and the length of the key without it. */
static int find_unit(const char *key, size_t *ret_len)
{
    size_t len = strlen(key);
    *ret_len = len;
    for (int i = 0; i < (int)(sizeof(units) / sizeof(units[0])); i++) {
        size_t n = strlen(units[i].suffix);
        if (len <= n || strcmp(key + len - n, units[i].suffix) != 0)
            continue;
        *ret_len = len - n;
        return i;
    }
    return -1;
}

void table_add_value(struct mk_buf *out, const struct object_member *m)
{
    size_t len;
    int unit = m->kind == OBJECT_NUMBER ? find_unit(m->key, &len) : -1;
    if (unit >= 0)
        units[unit].add(out, atoll(m->value));
    else if (m->kind == OBJECT_BOOL)
        mk_buf_adds(out, m->value[0] == 't' ? MK_STR("yes") : MK_STR("no"));
    else
        table_add_safe(out, m->value);
}

/* Counts characters of UTF-8. */
static size_t measure(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

/* ── rows ── */

void table_init(struct table *t, bool colours)
{
    *t = (struct table){.colours = colours};
    t->last = &t->first;
}

static void free_rows(struct table *t)
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
    free_rows(t);
    for (unsigned i = 0; i < t->n_columns; i++)
        free(t->columns[i].key);
    t->n_columns = 0;
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
    size_t len;
    find_unit(key, &len);
    struct table_column *column = &t->columns[t->n_columns++];
    *column = (struct table_column){.key = key, .width = len, .number = m->kind == OBJECT_NUMBER, .empty = true};
    return column;
}

static char *make_cell(const struct object_member *m)
{
    struct mk_buf text;
    mk_buf_init(&text, CELL_BYTES_MAX);
    table_add_value(&text, m);
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
        struct table_column *column = o->items[i].key[0] == '_' ? NULL : find_column(t, &o->items[i]);
        char *cell = column ? make_cell(&o->items[i]) : NULL;
        if (!cell)
            continue;
        size_t width = measure(cell);
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
    size_t len;
    find_unit(key, &len);
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

/* ── printing ── */

static void add_blanks(struct mk_buf *out, size_t n)
{
    while (n--)
        mk_buf_addc(out, ' ');
}

/* Appends a cell with the blanks that align it; none at the end of a line. */
static void add_cell(const struct table_column *column, const char *text, bool last, struct mk_buf *out)
{
    size_t width = measure(text), blanks = column->width > width ? column->width - width : 0;
    if (column->number)
        add_blanks(out, blanks);
    mk_buf_adds(out, mk_str_c(text));
    if (!column->number && !last)
        add_blanks(out, blanks);
    if (!last)
        add_blanks(out, 2);
}

/* Returns the index behind the last column that has a value. */
static unsigned find_end(const struct table *t)
{
    unsigned n = t->n_columns;
    while (n && t->columns[n - 1].empty)
        n--;
    return n;
}

static void add_heading(const struct table *t, unsigned end, struct mk_buf *out)
{
    if (t->colours)
        mk_buf_adds(out, MK_STR(BOLD));
    for (unsigned i = 0; i < end; i++) {
        char name[64];
        size_t len;
        if (t->columns[i].empty)
            continue;
        find_unit(t->columns[i].key, &len);
        snprintf(name, sizeof(name), "%.*s", (int)len, t->columns[i].key);
        for (char *p = name; *p; p++)
            *p = *p == '_' ? ' ' : (char)toupper((unsigned char)*p);
        add_cell(&t->columns[i], name, i + 1 == end, out);
    }
    if (t->colours)
        mk_buf_adds(out, MK_STR(PLAIN));
    mk_buf_addc(out, '\n');
}

void table_print(struct table *t, struct mk_buf *out)
{
    unsigned end = find_end(t);
    if (!t->began && t->first)
        add_heading(t, end, out);
    t->began |= t->first != NULL;
    for (const struct table_row *row = t->first; row; row = row->next) {
        for (unsigned i = 0; i < end; i++)
            if (!t->columns[i].empty)
                add_cell(&t->columns[i], row->cells[i] ? row->cells[i] : "", i + 1 == end, out);
        mk_buf_addc(out, '\n');
    }
    free_rows(t);
}

void table_print_list(const struct object *o, bool colours, struct mk_buf *out)
{
    size_t width = 0, len;
    for (unsigned i = 0; i < o->n; i++) {
        find_unit(o->items[i].key, &len);
        width = len > width ? len : width;
    }
    for (unsigned i = 0; i < o->n; i++) {
        find_unit(o->items[i].key, &len);
        if (colours)
            mk_buf_adds(out, MK_STR(BOLD));
        for (size_t k = 0; k < len; k++)
            mk_buf_addc(out, o->items[i].key[k] == '_' ? ' ' : o->items[i].key[k]);
        if (colours)
            mk_buf_adds(out, MK_STR(PLAIN));
        add_blanks(out, width - len + 2);
        table_add_value(out, &o->items[i]);
        mk_buf_addc(out, '\n');
    }
}
