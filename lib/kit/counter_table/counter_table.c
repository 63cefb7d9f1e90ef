// SPDX-License-Identifier: Apache-2.0
/*
 * Collects counters by their labels (<monkey/kit/counter_table.h>).
 */
#include <monkey/base/arena.h>
#include <monkey/kit/counter_table.h>

#include <assert.h>

enum { ROWS_FIRST = 8 };

/* ── rows ── */

static bool grow_rows(struct mk_counter_table *t)
{
    unsigned room = t->room ? t->room * 2 : ROWS_FIRST;
    struct mk_counter_table_row *rows = NULL;
    if (room <= MK_COUNTER_TABLE_ROWS_MAX)
        rows = mk_account_grow(NULL, t->rows, t->room * sizeof(*rows), room * sizeof(*rows));
    if (!rows)
        return false;
    t->rows = rows;
    t->room = room;
    return true;
}

static void set_label(struct mk_counter_table_row *row, unsigned i, struct mk_str value)
{
    if (value.len)
        memcpy(row->labels[i], value.p, value.len);
    row->label_lens[i] = (uint16_t)value.len;
}

static bool is_row_of(const struct mk_counter_table_row *row, struct mk_str plugin, const struct mk_str labels[2])
{
    return mk_str_eq(mk_str(row->plugin, row->plugin_len), plugin) &&
           mk_str_eq(mk_counter_table_label(row, 0), labels[0]) && mk_str_eq(mk_counter_table_label(row, 1), labels[1]);
}

/*
 * Returns the row of these labels, a new one if there is none yet; NULL: there are too many. The rows of one counter
 * mostly come in the order of those of another: the search begins after the row that was found last.
 */
static struct mk_counter_table_row *find_row(struct mk_counter_table *t, struct mk_str plugin,
                                             const struct mk_str labels[2])
{
    for (unsigned i = 0; i < t->n; i++) {
        t->last = t->last + 1 < t->n ? t->last + 1 : 0;
        if (is_row_of(&t->rows[t->last], plugin, labels))
            return &t->rows[t->last];
    }
    if (t->n == t->room && !grow_rows(t)) {
        t->omits_some = true;
        return NULL;
    }
    struct mk_counter_table_row *row = &t->rows[t->n++];
    memset(row, 0, sizeof(*row));
    assert(plugin.len <= sizeof(row->plugin));
    memcpy(row->plugin, plugin.p, plugin.len);
    row->plugin_len = (uint16_t)plugin.len;
    for (unsigned i = 0; i < 2; i++)
        set_label(row, i, labels[i]);
    return row;
}

void mk_counter_table_release(struct mk_counter_table *t)
{
    mk_account_free(NULL, t->rows, t->room * sizeof(*t->rows));
    *t = (struct mk_counter_table){.type = t->type};
}

/* ── counters ── */

static bool has_label(const struct mk_counter_value *v, const char *label, const char *value)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    return !label || mk_str_eq(mk_counter_label_get(v->labels, mk_str_c(label), storage), mk_str_c(value));
}

static void add_number(const struct mk_counter_table_number *numbers, struct mk_counter_table_row *row,
                       const struct mk_counter_value *v)
{
    for (unsigned i = 0; numbers[i].counter; i++)
        if (mk_str_eq(v->name, mk_str_c(numbers[i].counter)) && has_label(v, numbers[i].label, numbers[i].value))
            row->numbers[i] += v->value;
}

static void add_durations(const struct mk_counter_table_duration *durations, struct mk_counter_table_row *row,
                          const struct mk_counter_value *v)
{
    for (unsigned i = 0; durations[i].counter; i++) {
        if (!mk_str_eq(v->name, mk_str_c(durations[i].counter)))
            continue;
        row->durations[i].sum_us += v->sum_us;
        for (unsigned k = 0; k < MK_COUNTER_BUCKETS; k++)
            row->durations[i].buckets[k] += v->buckets[k];
    }
}

void mk_counter_table_add(struct mk_counter_table *t, const struct mk_counter_value *v)
{
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    const struct mk_counter_table_type *type = t->type;
    if (type->plugin && !mk_str_eq(v->plugin, mk_str_c(type->plugin)))
        return;
    const struct mk_str labels[2] = {mk_counter_label_get(v->labels, mk_str_c(type->labels[0]), storage[0]),
                                     mk_counter_label_get(v->labels, mk_str_c(type->labels[1]), storage[1])};
    struct mk_counter_table_row *row = labels[0].len ? find_row(t, v->plugin, labels) : NULL;
    if (!row)
        return;
    if (v->kind == MK_COUNTER_HISTOGRAM)
        add_durations(type->durations, row, v);
    else
        add_number(type->numbers, row, v);
}
