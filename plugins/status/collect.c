// SPDX-License-Identifier: Apache-2.0
#include "report.h"
#include "state.h"

#include <monkey/base/arena.h>
#include <monkey/kit/json.h>

#include <stdlib.h>

static void add_percentiles(struct mk_buf *out, uint64_t sum_us, const uint64_t *buckets)
{
    static const struct {
        const char *key;
        double share;
    } rows[] = {{"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};
    uint64_t n = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        n += buckets[i];
    mk_json_number(out, "count", (int64_t)n);
    mk_json_real(out, "mean_ms", n ? (double)sum_us / (double)n / 1e3 : 0);
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++)
        mk_json_real(out, rows[i].key, (double)mk_counter_quantile_us(buckets, rows[i].share) / 1e3);
}

/* Each bucket that is not empty: its end in milliseconds (null: none) and its number. */
static void add_buckets(struct mk_buf *out, const uint64_t *buckets)
{
    mk_json_open(out, "buckets", '[');
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        if (!buckets[i])
            continue;
        mk_json_open(out, NULL, '[');
        if (i == MK_COUNTER_BUCKETS - 1)
            mk_json_null(out, NULL);
        else
            mk_json_real(out, NULL, (double)mk_counter_bucket_end_us(i) / 1e3);
        mk_json_number(out, NULL, (int64_t)buckets[i]);
        mk_json_close(out, ']');
    }
    mk_json_close(out, ']');
}

void latency_write(struct mk_buf *out, const char *key, uint64_t sum_us, const uint64_t *buckets)
{
    mk_json_open(out, key, '{');
    add_percentiles(out, sum_us, buckets);
    add_buckets(out, buckets);
    mk_json_close(out, '}');
}

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

enum { HOSTS_FIRST = 16 };

const char *const totals_class_names[TOTALS_CLASSES] = {
    [TOTALS_NONE] = "none", [TOTALS_1XX] = "1xx", [TOTALS_2XX] = "2xx",
    [TOTALS_3XX] = "3xx",   [TOTALS_4XX] = "4xx", [TOTALS_5XX] = "5xx",
};

/* ── hosts ── */

static bool grow_hosts(struct totals *t)
{
    unsigned room = t->room ? t->room * 2 : HOSTS_FIRST;
    struct totals_host *hosts = NULL;
    if (room <= TOTALS_HOSTS_MAX)
        hosts = mk_account_grow(NULL, t->hosts, t->room * sizeof(*hosts), room * sizeof(*hosts));
    if (!hosts)
        return false;
    t->hosts = hosts;
    t->room = room;
    return true;
}

/* Returns the host of that name, a new one if there is none yet; NULL: there are too many. */
static struct totals_host *find_host(struct totals *t, struct mk_str name)
{
    for (unsigned i = t->n_hosts; i--;) /* the counters of a host stand next to each other */
        if (mk_str_eq(mk_str(t->hosts[i].name, t->hosts[i].name_len), name))
            return &t->hosts[i];
    if (t->n_hosts == t->room && !grow_hosts(t)) {
        t->omits_hosts = true;
        return NULL;
    }
    struct totals_host *host = &t->hosts[t->n_hosts++];
    memset(host, 0, sizeof(*host));
    memcpy(host->name, name.p, name.len);
    host->name_len = (uint16_t)name.len;
    return host;
}

static int compare_hosts(const void *a, const void *b)
{
    const struct totals_host *x = a, *y = b;
    if (x->requests != y->requests)
        return x->requests > y->requests ? -1 : 1;
    int order = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);
    return order ? order : (int)x->name_len - (int)y->name_len;
}

/* ── counters ── */

static void add_requests(struct totals_host *host, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_str class = mk_counter_label_get(v->labels, MK_STR("status"), storage);
    host->requests += (uint64_t)v->value;
    for (unsigned i = 0; i < TOTALS_CLASSES; i++)
        if (mk_str_eq(class, mk_str_c(totals_class_names[i])))
            host->classes[i] += (uint64_t)v->value;
}

static void add_received(struct totals_host *host, const struct mk_counter_value *v)
{
    host->received_body_bytes += (uint64_t)v->value;
}

static void add_sent(struct totals_host *host, const struct mk_counter_value *v)
{
    host->sent_body_bytes += (uint64_t)v->value;
}

static void add_aborted(struct totals_host *host, const struct mk_counter_value *v)
{
    host->responses_aborted += (uint64_t)v->value;
}

static void add_durations(struct totals_host *host, const struct mk_counter_value *v)
{
    host->sum_us += v->sum_us;
    for (unsigned i = 0; v->buckets && i < MK_COUNTER_BUCKETS; i++)
        host->buckets[i] += v->buckets[i];
}

/* Counters of hosts. */
static const struct {
    struct mk_str name;
    void (*add)(struct totals_host *host, const struct mk_counter_value *v);
} host_rows[] = {
    {MK_STR("requests"), add_requests},          {MK_STR("received_body_bytes"), add_received},
    {MK_STR("sent_body_bytes"), add_sent},       {MK_STR("responses_aborted"), add_aborted},
    {MK_STR("request_duration"), add_durations},
};

/* Counters of the server, whose labels are added up. */
static const struct {
    struct mk_str name;
    size_t offset;
} server_rows[] = {
    {MK_STR("accepted_connections"), offsetof(struct totals, accepted_connections)},
    {MK_STR("refused_connections"), offsetof(struct totals, refused_connections)},
    {MK_STR("rejected_requests"), offsetof(struct totals, rejected_requests)},
    {MK_STR("timeouts"), offsetof(struct totals, timeouts)},
    {MK_STR("http2_floods"), offsetof(struct totals, floods)},
    {MK_STR("connections"), offsetof(struct totals, connections)},
};

void totals_add(struct totals *t, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (unsigned i = 0; i < MK_COUNT_OF(server_rows); i++)
        if (mk_str_eq(v->name, server_rows[i].name))
            *(int64_t *)(void *)((char *)t + server_rows[i].offset) += v->value;
    for (unsigned i = 0; i < MK_COUNT_OF(host_rows); i++) {
        if (!mk_str_eq(v->name, host_rows[i].name))
            continue;
        struct totals_host *host = find_host(t, mk_counter_label_get(v->labels, MK_STR("host"), storage));
        host_rows[i].add(&t->all, v);
        if (host)
            host_rows[i].add(host, v);
    }
}

void totals_sort(struct totals *t)
{
    if (t->n_hosts)
        qsort(t->hosts, t->n_hosts, sizeof(*t->hosts), compare_hosts);
}

void totals_release(struct totals *t)
{
    mk_account_free(NULL, t->hosts, t->room * sizeof(*t->hosts));
    t->hosts = NULL;
}

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
