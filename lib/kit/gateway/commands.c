// SPDX-License-Identifier: Apache-2.0
/*
 * Lists backends for `monkey shell` (<monkey/kit/gateway.h>): a row for each backend, and for each server of a group,
 * from the counters.
 */
#include <monkey/kit/command.h>
#include <monkey/kit/counter_table.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/json.h>

#include <errno.h>

static const struct mk_counter_table_number numbers[] = {
    {"backend_requests", NULL, NULL, NULL, "requests"},
    {"backend_responses", "status", "4xx", NULL, "4xx"},
    {"backend_responses", "status", "5xx", NULL, "5xx"},
    {"backend_retries", NULL, NULL, NULL, "retries"}, /* retries have reasons */
    {"backend_failures", NULL, NULL, NULL, "failures"},
    {"backend_timeouts", NULL, NULL, NULL, "timeouts"},
    {"backend_connections", "state", "busy", NULL, "busy"},
    {"backend_connections", "state", "idle", NULL, "idle"},
    {"backend_sent_bytes", NULL, NULL, NULL, "sent_bytes"},
    {"backend_received_bytes", NULL, NULL, NULL, "received_bytes"},
    {0},
};

static const struct mk_counter_table_duration durations[] = {{"backend_head_duration", NULL}, {0}};

static int add_counter(const struct mk_counter_value *v, void *ctx)
{
    mk_counter_table_add(ctx, v);
    return 0;
}

static void show_row(struct mk_command_call *call, const struct mk_counter_table_row *row)
{
    struct mk_buf *out = mk_command_begin_row(call);
    mk_json_str(out, "backend", mk_counter_table_label(row, 0));
    mk_json_str(out, "server", mk_counter_table_label(row, 1));
    for (unsigned i = 0; numbers[i].counter; i++)
        mk_json_number(out, numbers[i].key, row->numbers[i]);
    mk_json_number(out, "head_p50_us", (int64_t)mk_counter_quantile_us(row->durations[0].buckets, 0.5));
    mk_json_number(out, "head_p99_us", (int64_t)mk_counter_quantile_us(row->durations[0].buckets, 0.99));
    mk_command_end_row(call);
}

/* All rows in one call, since another one would read the counters anew: there are few. */
int mk_gateway_list_backends(struct mk_command_call *call, const struct mk_plugin *plugin)
{
    const struct mk_counter_table_type type = {.plugin = plugin->name,
                                               .labels = {"backend", "server"},
                                               .numbers = numbers,
                                               .durations = durations};
    struct mk_counter_table table = {.type = &type};
    mk_counters_each(add_counter, &table);
    for (unsigned i = 0; i < table.n; i++)
        show_row(call, &table.rows[i]);
    int err = table.omits_some && !table.n ? -ENOMEM : 0;
    if (table.omits_some)
        mk_command_warn(call, "there are more than %u backends", table.n);
    mk_counter_table_release(&table);
    return err;
}
