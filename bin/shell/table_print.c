// SPDX-License-Identifier: Apache-2.0
/*
 * Prints tables (table.h).
 */
#include "table.h"
#include "value.h"

#include <ctype.h>
#include <stdio.h>

enum { GAP = 2, TEXT_WIDTH_MIN = 12 };

/* ── fitting ── */

/* What a narrow terminal leaves out, the first one first. */
static const char *const least_important[] = {"transport", "listener", "worker",         "port",       "streams",
                                              "requests",  "protocol", "received_bytes", "sent_bytes", "method"};

static bool is_shown(const struct table_column *column)
{
    return !column->empty && !column->left_out;
}

/* Returns the index after the last column that is shown. */
static unsigned find_end(const struct table *t)
{
    unsigned n = t->n_columns;
    while (n && !is_shown(&t->columns[n - 1]))
        n--;
    return n;
}

static bool is_long_text(const struct table_column *column)
{
    return !column->number && column->width > TEXT_WIDTH_MIN;
}

/* Returns the width of the table; `least`: with long texts cut as far as they may be. */
static size_t measure_table(const struct table *t, bool least)
{
    size_t width = 0;
    for (unsigned i = 0; i < t->n_columns; i++)
        if (is_shown(&t->columns[i]))
            width += GAP + (least && is_long_text(&t->columns[i]) ? TEXT_WIDTH_MIN : t->columns[i].width);
    return width ? width - GAP : 0;
}

static void leave_out(struct table *t, const char *key)
{
    for (unsigned i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].key, key) == 0)
            t->columns[i].left_out = true;
}

static struct table_column *find_longest_text(struct table *t)
{
    struct table_column *longest = NULL;
    for (unsigned i = 0; i < t->n_columns; i++)
        if (is_shown(&t->columns[i]) && is_long_text(&t->columns[i]) &&
            (!longest || t->columns[i].width >= longest->width))
            longest = &t->columns[i];
    return longest;
}

static void fit_columns(struct table *t)
{
    size_t n = MK_COUNT_OF(least_important);
    for (size_t i = 0; i < n && measure_table(t, true) > t->style.columns; i++)
        leave_out(t, least_important[i]);
    struct table_column *longest;
    while (measure_table(t, false) > t->style.columns && (longest = find_longest_text(t)))
        longest->width--;
}

/* ── printing ── */

static void add_blanks(struct mk_buf *out, size_t n)
{
    while (n--)
        mk_buf_addc(out, ' ');
}

/* Appends a cell with the blanks that align it; none at the end of a line. */
static void add_cell(const struct table *t, const struct table_column *column, const char *text, bool last,
                     struct mk_buf *out)
{
    size_t width = text_width(text), blanks = column->width > width ? column->width - width : 0;
    enum text_colour colour = value_colour(column->key, text);
    if (column->number)
        add_blanks(out, blanks);
    if (colour != PLAIN)
        text_add_colour(out, &t->style, colour);
    text_add_truncated(out, text, t->fits && !column->number ? column->width : width, &t->style);
    if (colour != PLAIN)
        text_add_colour(out, &t->style, PLAIN);
    if (!column->number && !last)
        add_blanks(out, blanks);
    if (!last)
        add_blanks(out, GAP);
}

static void add_heading(const struct table *t, unsigned end, struct mk_buf *out)
{
    text_add_colour(out, &t->style, BOLD);
    for (unsigned i = 0; i < end; i++) {
        char name[64];
        if (!is_shown(&t->columns[i]))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)value_name_length(t->columns[i].key), t->columns[i].key);
        for (char *p = name; *p; p++)
            *p = *p == '_' ? ' ' : (char)toupper((unsigned char)*p);
        add_cell(t, &t->columns[i], name, i + 1 == end, out);
    }
    text_add_colour(out, &t->style, PLAIN);
    mk_buf_addc(out, '\n');
}

void table_print(struct table *t, struct mk_buf *out)
{
    if (!t->began && t->first && t->fits)
        fit_columns(t);
    unsigned end = find_end(t);
    if (!t->began && t->first)
        add_heading(t, end, out);
    t->began |= t->first != NULL;
    for (const struct table_row *row = t->first; row; row = row->next) {
        for (unsigned i = 0; i < end; i++)
            if (is_shown(&t->columns[i]))
                add_cell(t, &t->columns[i], row->cells[i] ? row->cells[i] : "", i + 1 == end, out);
        mk_buf_addc(out, '\n');
    }
    table_clear(t);
}

void table_print_list(const struct object *o, const struct text_style *style, struct mk_buf *out)
{
    size_t width = 0;
    for (unsigned i = 0; i < o->n; i++) {
        size_t len = value_name_length(o->items[i].key);
        width = len > width ? len : width;
    }
    for (unsigned i = 0; i < o->n; i++) {
        const struct object_member *m = &o->items[i];
        size_t len = value_name_length(m->key);
        enum text_colour colour = value_colour(m->key, m->value);
        text_add_colour(out, style, BOLD);
        for (size_t k = 0; k < len; k++)
            mk_buf_addc(out, m->key[k] == '_' ? ' ' : m->key[k]);
        text_add_colour(out, style, PLAIN);
        add_blanks(out, width - len + GAP);
        if (colour != PLAIN)
            text_add_colour(out, style, colour);
        value_add(out, m, style, 2);
        if (colour != PLAIN)
            text_add_colour(out, style, PLAIN);
        mk_buf_addc(out, '\n');
    }
}
