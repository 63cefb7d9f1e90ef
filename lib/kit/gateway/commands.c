// SPDX-License-Identifier: Apache-2.0
/*
 * Lists backends for `monkey shell` (<monkey/gateway.h>): a row for each backend, and for each server of a group, from
 * the counters.
 */
#include <monkey/arena.h>
#include <monkey/command.h>
#include <monkey/gateway.h>
#include <monkey/json.h>

#include <errno.h>

enum { ROWS_MAX = 512 };
enum column { REQUESTS, S4XX, S5XX, RETRIES, FAILURES, TIMEOUTS, BUSY, IDLE, SENT, RECEIVED, NUMBERS };

/* The counters, those with a second label by that; the shell shows them under these keys. */
static const struct {
    struct mk_str counter, label, value;
    const char *key;
} columns[NUMBERS] = {
    [REQUESTS] = {MK_STR("backend_requests"), MK_STR(""), MK_STR(""), "requests"},
    [S4XX] = {MK_STR("backend_responses"), MK_STR("status"), MK_STR("4xx"), "4xx"},
    [S5XX] = {MK_STR("backend_responses"), MK_STR("status"), MK_STR("5xx"), "5xx"},
    [RETRIES] = {MK_STR("backend_retries"), MK_STR(""), MK_STR(""), "retries"},
    [FAILURES] = {MK_STR("backend_failures"), MK_STR(""), MK_STR(""), "failures"},
    [TIMEOUTS] = {MK_STR("backend_timeouts"), MK_STR(""), MK_STR(""), "timeouts"},
    [BUSY] = {MK_STR("backend_connections"), MK_STR("state"), MK_STR("busy"), "busy"},
    [IDLE] = {MK_STR("backend_connections"), MK_STR("state"), MK_STR("idle"), "idle"},
    [SENT] = {MK_STR("backend_sent_bytes"), MK_STR(""), MK_STR(""), "sent_bytes"},
    [RECEIVED] = {MK_STR("backend_received_bytes"), MK_STR(""), MK_STR(""), "received_bytes"},
};

struct row {
    char name[MK_COUNTER_LABEL_VALUE_BYTES], server[MK_COUNTER_LABEL_VALUE_BYTES]; /* `server`: of a group, or empty */
    size_t name_len, server_len;
    int64_t numbers[NUMBERS];
    uint64_t head_p50_us, head_p99_us;
};

struct table {
    struct mk_str plugin;
    unsigned n;
    bool is_truncated;
    struct row rows[ROWS_MAX];
};

static bool is_row_of(const struct row *row, struct mk_str name, struct mk_str server)
{
    return mk_str_eq(mk_str(row->name, row->name_len), name) && mk_str_eq(mk_str(row->server, row->server_len), server);
}

static struct row *find_row(struct table *t, struct mk_str name, struct mk_str server)
{
    for (unsigned i = 0; i < t->n; i++)
        if (is_row_of(&t->rows[i], name, server))
            return &t->rows[i];
    if (t->n == ROWS_MAX) {
        t->is_truncated = true;
        return NULL;
    }
    struct row *row = &t->rows[t->n++];
    *row = (struct row){.name_len = name.len, .server_len = server.len};
    memcpy(row->name, name.p, name.len);
    if (server.len)
        memcpy(row->server, server.p, server.len);
    return row;
}

static void add_counter(struct row *row, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (unsigned i = 0; i < NUMBERS; i++)
        if (mk_str_eq(v->name, columns[i].counter) &&
            mk_str_eq(mk_counter_label_get(v->labels, columns[i].label, storage), columns[i].value))
            row->numbers[i] += v->value; /* retries have reasons */
    if (mk_str_eq(v->name, MK_STR("backend_head_duration")) && v->buckets) {
        row->head_p50_us = mk_counter_quantile_us(v->buckets, 0.5);
        row->head_p99_us = mk_counter_quantile_us(v->buckets, 0.99);
    }
}

static int collect_value(const struct mk_counter_value *v, void *ctx)
{
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    const struct table *t = ctx;
    if (!mk_str_eq(v->plugin, t->plugin))
        return 0;
    struct mk_str name = mk_counter_label_get(v->labels, MK_STR("backend"), storage[0]);
    struct mk_str server = mk_counter_label_get(v->labels, MK_STR("server"), storage[1]);
    struct row *row = name.len ? find_row(ctx, name, server) : NULL;
    if (row)
        add_counter(row, v);
    return 0;
}

static void show_row(struct mk_command_call *call, const struct row *row)
{
    struct mk_buf *out = mk_command_begin_row(call);
    mk_json_str(out, "backend", mk_str(row->name, row->name_len));
    mk_json_str(out, "server", mk_str(row->server, row->server_len));
    for (unsigned i = 0; i < NUMBERS; i++)
        mk_json_number(out, columns[i].key, row->numbers[i]);
    mk_json_number(out, "head_p50_us", (int64_t)row->head_p50_us);
    mk_json_number(out, "head_p99_us", (int64_t)row->head_p99_us);
    mk_command_end_row(call);
}

/* All rows in one call, since another one would read the counters anew: there are few. */
int mk_gateway_list_backends(struct mk_command_call *call, const struct mk_plugin *plugin)
{
    struct table *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->plugin = mk_str_c(plugin->name);
    t->n = 0;
    t->is_truncated = false;
    mk_counters_each(collect_value, t);
    for (unsigned i = 0; i < t->n; i++)
        show_row(call, &t->rows[i]);
    if (t->is_truncated)
        mk_command_warn(call, "there are more than %d backends", ROWS_MAX);
    mk_account_free(NULL, t, sizeof(*t));
    return 0;
}
