// SPDX-License-Identifier: Apache-2.0
/*
 * Collects and writes the counters of backends (backends.h).
 */
#include "backends.h"

#include "latency.h"

#include <monkey/arena.h>
#include <monkey/json.h>

enum { ROWS_FIRST = 8 };

/* ── rows ── */

static bool grow_rows(struct backends *all)
{
    unsigned room = all->room ? all->room * 2 : ROWS_FIRST;
    struct backend_row *rows = room <= BACKENDS_MAX ? mk_account_alloc(NULL, room * sizeof(*rows)) : NULL;
    if (!rows)
        return false;
    if (all->n)
        memcpy(rows, all->rows, all->n * sizeof(*rows));
    mk_account_free(NULL, all->rows, all->room * sizeof(*rows));
    all->rows = rows;
    all->room = room;
    return true;
}

/* Returns the row of that name, a new one if there is none yet; NULL: there are too many. */
static struct backend_row *find_row(struct backends *all, struct mk_str name)
{
    for (unsigned i = all->n; i--;)
        if (mk_str_eq(mk_str(all->rows[i].name, all->rows[i].name_len), name))
            return &all->rows[i];
    if (all->n == all->room && !grow_rows(all)) {
        all->omits_some = true;
        return NULL;
    }
    struct backend_row *row = &all->rows[all->n++];
    memset(row, 0, sizeof(*row));
    memcpy(row->name, name.p, name.len);
    row->name_len = (uint16_t)name.len;
    return row;
}

void backends_release(struct backends *all)
{
    mk_account_free(NULL, all->rows, all->room * sizeof(*all->rows));
    all->rows = NULL;
}

/* ── counters ── */

/* By their names, and a label where there are several of a name. */
static const struct {
    struct mk_str name, label, value;
    enum backend_number number;
} number_rows[] = {
    {MK_STR("backend_requests"), MK_STR(""), MK_STR(""), BACKEND_REQUESTS},
    {MK_STR("backend_responses"), MK_STR("status"), MK_STR("1xx"), BACKEND_1XX},
    {MK_STR("backend_responses"), MK_STR("status"), MK_STR("2xx"), BACKEND_2XX},
    {MK_STR("backend_responses"), MK_STR("status"), MK_STR("3xx"), BACKEND_3XX},
    {MK_STR("backend_responses"), MK_STR("status"), MK_STR("4xx"), BACKEND_4XX},
    {MK_STR("backend_responses"), MK_STR("status"), MK_STR("5xx"), BACKEND_5XX},
    {MK_STR("backend_retries"), MK_STR(""), MK_STR(""), BACKEND_RETRIES},
    {MK_STR("backend_failures"), MK_STR(""), MK_STR(""), BACKEND_FAILURES},
    {MK_STR("backend_timeouts"), MK_STR(""), MK_STR(""), BACKEND_TIMEOUTS},
    {MK_STR("backend_opened_connections"), MK_STR(""), MK_STR(""), BACKEND_OPENED},
    {MK_STR("backend_connections"), MK_STR("state"), MK_STR("busy"), BACKEND_BUSY},
    {MK_STR("backend_connections"), MK_STR("state"), MK_STR("idle"), BACKEND_IDLE},
    {MK_STR("backend_sent_bytes"), MK_STR(""), MK_STR(""), BACKEND_SENT},
    {MK_STR("backend_received_bytes"), MK_STR(""), MK_STR(""), BACKEND_RECEIVED},
};

static const struct {
    struct mk_str name;
    size_t offset;
} duration_rows[] = {
    {MK_STR("backend_head_duration"), offsetof(struct backend_row, head)},
    {MK_STR("backend_duration"), offsetof(struct backend_row, whole)},
};

static void add_number(struct backend_row *row, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (size_t i = 0; i < MK_COUNT_OF(number_rows); i++)
        if (mk_str_eq(v->name, number_rows[i].name) &&
            mk_str_eq(mk_counter_label_get(v->labels, number_rows[i].label, storage), number_rows[i].value))
            row->numbers[number_rows[i].number] += v->value;
}

static void add_durations(struct backend_row *row, const struct mk_counter_value *v)
{
    for (size_t i = 0; i < MK_COUNT_OF(duration_rows); i++) {
        if (!mk_str_eq(v->name, duration_rows[i].name))
            continue;
        struct backend_durations *d = (void *)((char *)row + duration_rows[i].offset);
        d->sum_us += v->sum_us;
        for (unsigned k = 0; k < MK_COUNTER_BUCKETS; k++)
            d->buckets[k] += v->buckets[k];
    }
}

void backends_add(struct backends *all, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    if (!mk_str_eq(v->plugin, MK_STR("proxy")))
        return;
    struct mk_str name = mk_counter_label_get(v->labels, MK_STR("backend"), storage);
    struct backend_row *row = name.len ? find_row(all, name) : NULL;
    if (!row)
        return;
    if (v->kind == MK_COUNTER_HISTOGRAM)
        add_durations(row, v);
    else
        add_number(row, v);
}

/* ── the document ── */

static void write_row(const struct backend_row *row, struct mk_buf *out)
{
    static const struct {
        const char *key;
        enum backend_number number;
    } keys[] = {
        {"retries", BACKEND_RETRIES},       {"failures", BACKEND_FAILURES},
        {"timeouts", BACKEND_TIMEOUTS},     {"opened_connections", BACKEND_OPENED},
        {"busy_connections", BACKEND_BUSY}, {"idle_connections", BACKEND_IDLE},
        {"sent_bytes", BACKEND_SENT},       {"received_bytes", BACKEND_RECEIVED},
    };
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "name", mk_str(row->name, row->name_len));
    mk_json_number(out, "requests", row->numbers[BACKEND_REQUESTS]);
    mk_json_open(out, "status", '{');
    for (unsigned i = 0; i < MK_COUNT_OF(classes); i++)
        mk_json_number(out, classes[i], row->numbers[BACKEND_1XX + i]);
    mk_json_close(out, '}');
    for (unsigned i = 0; i < MK_COUNT_OF(keys); i++)
        mk_json_number(out, keys[i].key, row->numbers[keys[i].number]);
    latency_write(out, "head_latency", row->head.sum_us, row->head.buckets);
    latency_write(out, "latency", row->whole.sum_us, row->whole.buckets);
    mk_json_close(out, '}');
}

void backends_write(const struct backends *all, unsigned max, struct mk_buf *out)
{
    unsigned n = max && max < all->n ? max : all->n;
    mk_json_open(out, "backends", '[');
    for (unsigned i = 0; i < n; i++)
        write_row(&all->rows[i], out);
    mk_json_close(out, ']');
    mk_json_bool(out, "omits_backends", all->omits_some || n < all->n);
}
