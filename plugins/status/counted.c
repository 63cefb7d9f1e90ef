// SPDX-License-Identifier: Apache-2.0
/*
 * Collects and writes tables of counters (counted.h).
 */
#include "counted.h"

#include "latency.h"

#include <monkey/arena.h>
#include <monkey/json.h>

enum { ROWS_FIRST = 8 };

/* ── types ── */

static const struct counted_number backend_numbers[] = {
    {"backend_requests", NULL, NULL, NULL, "requests"},
    {"backend_responses", "status", "1xx", "status", "1xx"},
    {"backend_responses", "status", "2xx", "status", "2xx"},
    {"backend_responses", "status", "3xx", "status", "3xx"},
    {"backend_responses", "status", "4xx", "status", "4xx"},
    {"backend_responses", "status", "5xx", "status", "5xx"},
    {"backend_retries", NULL, NULL, NULL, "retries"},
    {"backend_failures", NULL, NULL, NULL, "failures"},
    {"backend_timeouts", NULL, NULL, NULL, "timeouts"},
    {"backend_opened_connections", NULL, NULL, NULL, "opened_connections"},
    {"backend_connections", "state", "busy", NULL, "busy_connections"},
    {"backend_connections", "state", "idle", NULL, "idle_connections"},
    {"backend_sent_bytes", NULL, NULL, NULL, "sent_bytes"},
    {"backend_received_bytes", NULL, NULL, NULL, "received_bytes"},
    {0},
};

static const struct counted_duration backend_durations[] = {
    {"backend_connect_duration", "connect_latency"},
    {"backend_head_duration", "head_latency"},
    {"backend_duration", "latency"},
    {0},
};

const struct counted_type counted_backends = {
    .labels = {"backend", "server"},
    .keys = {"name", "server"},
    .name = "backends",
    .omits_name = "omits_backends",
    .numbers = backend_numbers,
    .durations = backend_durations,
};

/* A row without a server is the group itself. */
static const struct counted_number server_numbers[] = {
    {"server_requests", NULL, NULL, NULL, "requests"},
    {"server_active_requests", NULL, NULL, NULL, "active_requests"},
    {"server_waited_requests", NULL, NULL, NULL, "waited_requests"},
    {"server_failures", NULL, NULL, NULL, "failures"},
    {"server_ejections", NULL, NULL, NULL, "ejections"},
    {"server_up", NULL, NULL, NULL, "up"},
    {"server_ejected", NULL, NULL, NULL, "ejected"},
    {"server_draining", NULL, NULL, NULL, "draining"},
    {"server_taken_down", NULL, NULL, NULL, "taken_down"},
    {"server_checks", NULL, NULL, NULL, "checks"},
    {"server_failed_checks", NULL, NULL, NULL, "failed_checks"},
    {"queued_requests", NULL, NULL, NULL, "queued_requests"},
    {"held_requests", NULL, NULL, NULL, "held_requests"},
    {"refused_requests", NULL, NULL, NULL, "refused_requests"},
    {0},
};

static const struct counted_duration server_durations[] = {{"wait_duration", "wait_latency"}, {0}};

const struct counted_type counted_servers = {
    .plugin = "upstream",
    .labels = {"upstream", "server"},
    .keys = {"group", "server"},
    .name = "servers",
    .omits_name = "omits_servers",
    .numbers = server_numbers,
    .durations = server_durations,
};

/* ── rows ── */

static bool grow_rows(struct counted *all)
{
    unsigned room = all->room ? all->room * 2 : ROWS_FIRST;
    struct counted_row *rows = NULL;
    if (room <= COUNTED_ROWS_MAX)
        rows = mk_account_grow(NULL, all->rows, all->room * sizeof(*rows), room * sizeof(*rows));
    if (!rows)
        return false;
    all->rows = rows;
    all->room = room;
    return true;
}

static struct mk_str get_label(const struct counted_row *row, unsigned i)
{
    return mk_str(row->labels[i], row->label_lens[i]);
}

static void set_label(struct counted_row *row, unsigned i, struct mk_str value)
{
    if (value.len)
        memcpy(row->labels[i], value.p, value.len);
    row->label_lens[i] = (uint16_t)value.len;
}

static bool is_row_of(const struct counted_row *row, struct mk_str plugin, const struct mk_str labels[2])
{
    return mk_str_eq(mk_str(row->plugin, row->plugin_len), plugin) && mk_str_eq(get_label(row, 0), labels[0]) &&
           mk_str_eq(get_label(row, 1), labels[1]);
}

/* Returns the row of these labels, a new one if there is none yet; NULL: there are too many. */
static struct counted_row *find_row(struct counted *all, struct mk_str plugin, const struct mk_str labels[2])
{
    for (unsigned i = all->n; i--;)
        if (is_row_of(&all->rows[i], plugin, labels))
            return &all->rows[i];
    if (all->n == all->room && !grow_rows(all)) {
        all->omits_some = true;
        return NULL;
    }
    struct counted_row *row = &all->rows[all->n++];
    memset(row, 0, sizeof(*row));
    row->plugin_len = (uint16_t)(plugin.len < sizeof(row->plugin) ? plugin.len : sizeof(row->plugin));
    memcpy(row->plugin, plugin.p, row->plugin_len);
    for (unsigned i = 0; i < 2; i++)
        set_label(row, i, labels[i]);
    return row;
}

void counted_release(struct counted *all)
{
    mk_account_free(NULL, all->rows, all->room * sizeof(*all->rows));
    all->rows = NULL;
}

/* ── counters ── */

static bool has_label(const struct mk_counter_value *v, const char *label, const char *value)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    return !label || mk_str_eq(mk_counter_label_get(v->labels, mk_str_c(label), storage), mk_str_c(value));
}

static void add_number(const struct counted_type *type, struct counted_row *row, const struct mk_counter_value *v)
{
    for (unsigned i = 0; type->numbers[i].counter; i++) {
        const struct counted_number *n = &type->numbers[i];
        if (mk_str_eq(v->name, mk_str_c(n->counter)) && has_label(v, n->label, n->value))
            row->numbers[i] += v->value;
    }
}

static void add_durations(const struct counted_type *type, struct counted_row *row, const struct mk_counter_value *v)
{
    for (unsigned i = 0; type->durations[i].counter; i++) {
        if (!mk_str_eq(v->name, mk_str_c(type->durations[i].counter)))
            continue;
        row->durations[i].sum_us += v->sum_us;
        for (unsigned k = 0; k < MK_COUNTER_BUCKETS; k++)
            row->durations[i].buckets[k] += v->buckets[k];
    }
}

void counted_add(struct counted *all, const struct mk_counter_value *v)
{
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    const struct counted_type *type = all->type;
    if (type->plugin && !mk_str_eq(v->plugin, mk_str_c(type->plugin)))
        return;
    const struct mk_str labels[2] = {mk_counter_label_get(v->labels, mk_str_c(type->labels[0]), storage[0]),
                                     mk_counter_label_get(v->labels, mk_str_c(type->labels[1]), storage[1])};
    struct counted_row *row = labels[0].len ? find_row(all, v->plugin, labels) : NULL;
    if (!row)
        return;
    if (v->kind == MK_COUNTER_HISTOGRAM)
        add_durations(type, row, v);
    else
        add_number(type, row, v);
}

/* ── the document ── */

/* Numbers of one object follow each other. */
static void write_numbers(const struct counted_number *numbers, const struct counted_row *row, struct mk_buf *out)
{
    const char *object = NULL;
    for (unsigned i = 0; numbers[i].counter; i++) {
        const struct counted_number *n = &numbers[i];
        if (n->object != object && object)
            mk_json_close(out, '}');
        if (n->object != object && n->object)
            mk_json_open(out, n->object, '{');
        object = n->object;
        mk_json_number(out, n->key, row->numbers[i]);
    }
    if (object)
        mk_json_close(out, '}');
}

static void write_row(const struct counted_type *type, const struct counted_row *row, struct mk_buf *out)
{
    mk_json_open(out, NULL, '{');
    if (!type->plugin)
        mk_json_str(out, "plugin", mk_str(row->plugin, row->plugin_len));
    for (unsigned i = 0; i < 2; i++)
        if (row->label_lens[i])
            mk_json_str(out, type->keys[i], get_label(row, i));
    write_numbers(type->numbers, row, out);
    for (unsigned i = 0; type->durations[i].counter; i++)
        latency_write(out, type->durations[i].key, row->durations[i].sum_us, row->durations[i].buckets);
    mk_json_close(out, '}');
}

void counted_write(const struct counted *all, unsigned max, struct mk_buf *out)
{
    unsigned n = max && max < all->n ? max : all->n;
    mk_json_open(out, all->type->name, '[');
    for (unsigned i = 0; i < n; i++)
        write_row(all->type, &all->rows[i], out);
    mk_json_close(out, ']');
    mk_json_bool(out, all->type->omits_name, all->omits_some || n < all->n);
}
