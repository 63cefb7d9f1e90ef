// SPDX-License-Identifier: Apache-2.0
/*
 * Reads counters (collect.h).
 */
#include "collect.h"

#include <monkey/json.h>

/* Counters of the server that are shown by one label. */
static const struct {
    struct mk_str name, label;
} breakdowns[COLLECT_BREAKDOWNS] = {
    {MK_STR("connections"), MK_STR("state")},        {MK_STR("refused_connections"), MK_STR("reason")},
    {MK_STR("rejected_requests"), MK_STR("reason")}, {MK_STR("timeouts"), MK_STR("state")},
    {MK_STR("http2_floods"), MK_STR("kind")},        {MK_STR("reloads"), MK_STR("result")},
};

const char *const collect_breakdown_keys[COLLECT_BREAKDOWNS] = {
    "connections", "refused_connections", "rejected_requests", "timeouts", "http2_floods", "reloads",
};

static void add_to_breakdowns(struct collected *c, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++) {
        if (!mk_str_eq(v->name, breakdowns[i].name))
            continue;
        mk_json_key(&c->breakdowns[i], mk_counter_label_get(v->labels, breakdowns[i].label, storage));
        mk_json_number(&c->breakdowns[i], NULL, v->value);
    }
}

static void add_plugin_counter(struct mk_buf *out, const struct mk_counter_value *v)
{
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "plugin", v->plugin);
    mk_json_str(out, "name", v->name);
    mk_json_str(out, "labels", v->labels);
    mk_json_number(out, "value", v->value);
    if (v->kind == MK_COUNTER_HISTOGRAM)
        mk_json_real(out, "sum_ms", (double)v->sum_us / 1e3);
    mk_json_close(out, '}');
}

static int add_counter(const struct mk_counter_value *v, void *ctx)
{
    struct collected *c = ctx;
    if (!v->plugin.len) {
        totals_add(&c->totals, v);
        add_to_breakdowns(c, v);
        return 0;
    }
    mk_counter_table_add(&c->backends, v);
    mk_counter_table_add(&c->servers, v);
    if (c->with_plugins && !c->plugins.err)
        add_plugin_counter(&c->plugins, v);
    return 0;
}

void collect_counters(struct collected *c, bool with_plugins, size_t bytes_max, collect_each_fn each)
{
    *c = (struct collected){.with_plugins = with_plugins,
                            .backends.type = &counted_backends.table,
                            .servers.type = &counted_servers.table};
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++)
        mk_buf_init(&c->breakdowns[i], bytes_max);
    mk_buf_init(&c->plugins, bytes_max);
    each(add_counter, c);
    totals_sort(&c->totals);
}

void collect_release(struct collected *c)
{
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++)
        mk_buf_release(&c->breakdowns[i]);
    mk_buf_release(&c->plugins);
    totals_release(&c->totals);
    mk_counter_table_release(&c->backends);
    mk_counter_table_release(&c->servers);
}
