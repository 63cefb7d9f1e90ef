// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── units ── */

static void add_bytes(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    text_add_bytes(out, (double)n);
}

static void add_short_bytes(struct mk_buf *out, long long n, unsigned n_units)
{
    static const char units[] = "BKMGT";
    double value = (double)n;
    unsigned unit = 0;
    (void)n_units;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    mk_buf_addf(out, unit && value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void add_short_seconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    if (n < 60)
        mk_buf_addf(out, "%llds", n);
    else if (n < 3600)
        mk_buf_addf(out, "%lldm%02llds", n / 60, n % 60);
    else if (n < 86400)
        mk_buf_addf(out, "%lldh%02lldm", n / 3600, n / 60 % 60);
    else
        mk_buf_addf(out, "%lldd%02lldh", n / 86400, n / 3600 % 24);
}

static void add_milliseconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    mk_buf_addf(out, "%lld ms", n);
}

static void add_short_milliseconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    mk_buf_addf(out, "%lldms", n);
}

static void add_clock(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    text_add_clock(out, (uint64_t)n);
}

static const struct unit {
    const char *suffix;
    void (*add)(struct mk_buf *out, long long n, unsigned n_units);
    void (*add_short)(struct mk_buf *out, long long n, unsigned n_units);
} units[] = {{"_bytes", add_bytes, add_short_bytes},
             {"_s", text_add_seconds, add_short_seconds},
             {"_ms", add_milliseconds, add_short_milliseconds},
             {"_unix_us", add_clock, add_clock}};

/* Returns the unit of a key, or NULL, and the length of the key without it. */
static const struct unit *find_unit(const char *key, size_t *ret_len)
{
    size_t len = strlen(key);
    *ret_len = len;
    for (size_t i = 0; i < MK_COUNT_OF(units); i++) {
        size_t n = strlen(units[i].suffix);
        if (len <= n || strcmp(key + len - n, units[i].suffix) != 0)
            continue;
        *ret_len = len - n;
        return &units[i];
    }
    return NULL;
}

/* Returns the length of a key without its unit. */
static size_t get_name_length(const char *key)
{
    size_t len;
    find_unit(key, &len);
    return len;
}

/* Returns whether the key is for programs only: it begins with an underscore, or another one tells people the same. */
static bool is_hidden(const char *key)
{
    return key[0] == '_' || strcmp(key, "time_us") == 0; /* of a trace, which has the time of day as well */
}

void value_add(struct mk_buf *out, const struct object_member *m, const struct text_style *style, unsigned n_units)
{
    size_t len;
    const struct unit *unit = m->kind == OBJECT_NUMBER ? find_unit(m->key, &len) : NULL;
    if (unit)
        (style->terminal ? unit->add : unit->add_short)(out, atoll(m->value), n_units);
    else if (m->kind == OBJECT_BOOL)
        mk_buf_adds(out, m->value[0] == 't' ? MK_STR("yes") : MK_STR("no"));
    else
        text_add_safe(out, m->value);
}

/* ── colours ── */

/* Returns the colour of a value: that of its state, for the keys of states. */
static enum text_colour choose_colour(const char *key, const char *value)
{
    static const char *const keys[] = {"state", "before", "after"};
    static const struct {
        const char *state;
        enum text_colour colour;
    } states[] = {
        {"idle", DIM},        {"linger", DIM},     {"closed", DIM},          {"handshake", BLUE}, {"new", BLUE},
        {"tunnel", BLUE},     {"read_head", CYAN}, {"read_body", CYAN},      {"handler", YELLOW}, {"disk", YELLOW},
        {"write", GREEN},     {"streams", GREEN},  {"streams_write", GREEN}, {"serving", GREEN},  {"draining", YELLOW},
        {"retiring", YELLOW},
    };
    bool has_state = false;
    for (size_t i = 0; i < MK_COUNT_OF(keys); i++)
        has_state |= strcmp(keys[i], key) == 0;
    for (size_t i = 0; has_state && i < MK_COUNT_OF(states); i++)
        if (strcmp(states[i].state, value) == 0)
            return states[i].colour;
    return PLAIN;
}

enum { CELL_BYTES_MAX = 16 * 1024 };

/* ── rows ── */

void table_init(struct table *t, const struct text_style *style)
{
    *t = (struct table){.style = *style};
    t->last = &t->first;
}

/* Removes the rows. */
static void clear_table(struct table *t)
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
    clear_table(t);
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
    column->width = get_name_length(key);
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
        struct table_column *column = is_hidden(o->items[i].key) ? NULL : find_column(t, &o->items[i]);
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
    size_t len = get_name_length(key);
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
    enum text_colour colour = choose_colour(column->key, text);
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
        snprintf(name, sizeof(name), "%.*s", (int)get_name_length(t->columns[i].key), t->columns[i].key);
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
    clear_table(t);
}

void table_print_list(const struct object *o, const struct text_style *style, struct mk_buf *out)
{
    size_t width = 0;
    for (unsigned i = 0; i < o->n; i++) {
        size_t len = get_name_length(o->items[i].key);
        width = len > width ? len : width;
    }
    for (unsigned i = 0; i < o->n; i++) {
        const struct object_member *m = &o->items[i];
        size_t len = get_name_length(m->key);
        enum text_colour colour = choose_colour(m->key, m->value);
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
