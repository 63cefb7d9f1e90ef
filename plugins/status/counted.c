// SPDX-License-Identifier: Apache-2.0
/*
 * Writes tables of counters (counted.h).
 */
#include "counted.h"

#include "latency.h"

#include <monkey/json.h>

/* ── types ── */

static const struct mk_counter_table_number backend_numbers[] = {
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

static const struct mk_counter_table_duration backend_durations[] = {
    {"backend_connect_duration", "connect_latency"},
    {"backend_head_duration", "head_latency"},
    {"backend_duration", "latency"},
    {0},
};

const struct counted_type counted_backends = {
    .table = {.labels = {"backend", "server"}, .numbers = backend_numbers, .durations = backend_durations},
    .keys = {"name", "server"},
    .name = "backends",
    .omits_name = "omits_backends",
};

/* A row without a server is the group itself. */
static const struct mk_counter_table_number server_numbers[] = {
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

static const struct mk_counter_table_duration server_durations[] = {{"wait_duration", "wait_latency"}, {0}};

const struct counted_type counted_servers = {
    .table = {.plugin = "upstream",
              .labels = {"upstream", "server"},
              .numbers = server_numbers,
              .durations = server_durations},
    .keys = {"group", "server"},
    .name = "servers",
    .omits_name = "omits_servers",
};

/* ── the document ── */

/* Numbers of one object follow each other. */
static void write_numbers(const struct mk_counter_table_number *numbers, const struct mk_counter_table_row *row,
                          struct mk_buf *out)
{
    const char *object = NULL;
    for (unsigned i = 0; numbers[i].counter; i++) {
        const struct mk_counter_table_number *n = &numbers[i];
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

static void write_row(const struct counted_type *type, const struct mk_counter_table_row *row, struct mk_buf *out)
{
    const struct mk_counter_table_duration *durations = type->table.durations;
    mk_json_open(out, NULL, '{');
    if (!type->table.plugin)
        mk_json_str(out, "plugin", mk_str(row->plugin, row->plugin_len));
    for (unsigned i = 0; i < 2; i++)
        if (row->label_lens[i])
            mk_json_str(out, type->keys[i], mk_counter_table_label(row, i));
    write_numbers(type->table.numbers, row, out);
    for (unsigned i = 0; durations[i].counter; i++)
        latency_write(out, durations[i].key, row->durations[i].sum_us, row->durations[i].buckets);
    mk_json_close(out, '}');
}

void counted_write(const struct counted_type *type, const struct mk_counter_table *all, unsigned max,
                   struct mk_buf *out)
{
    unsigned n = max && max < all->n ? max : all->n;
    mk_json_open(out, type->name, '[');
    for (unsigned i = 0; i < n; i++)
        write_row(type, &all->rows[i], out);
    mk_json_close(out, ']');
    mk_json_bool(out, type->omits_name, all->omits_some || n < all->n);
}
