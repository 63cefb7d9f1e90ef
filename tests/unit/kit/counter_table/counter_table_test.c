// SPDX-License-Identifier: Apache-2.0
/* Rows of counters by their labels. */
#include "testing.h"

#include "counters_memory.h"

#include <monkey/kit/counter_table.h>

#include <stdio.h>

static const struct mk_counter_info requests = {"proxy", "requests", "requests", MK_COUNTER_SUM};
static const struct mk_counter_info responses = {"proxy", "responses", "responses", MK_COUNTER_SUM};
static const struct mk_counter_info times = {"proxy", "times", "times", MK_COUNTER_HISTOGRAM};
static const struct mk_counter_info foreign = {"other", "requests", "of another plugin", MK_COUNTER_SUM};

static const struct mk_counter_table_number numbers[] = {
    {"requests", NULL, NULL, NULL, NULL},
    {"responses", NULL, NULL, NULL, NULL},
    {"responses", "status", "5xx", NULL, NULL},
    {0},
};
static const struct mk_counter_table_duration durations[] = {{"times", NULL}, {0}};
static const struct mk_counter_table_type of_proxy = {.plugin = "proxy",
                                                      .labels = {"backend", "server"},
                                                      .numbers = numbers,
                                                      .durations = durations},
                                          of_all = {.labels = {"backend", "server"},
                                                    .numbers = numbers,
                                                    .durations = durations};

static const struct mk_counter *open_counter(const struct mk_counter_info *info, const char *backend,
                                             const char *server, const char *status)
{
    struct mk_counter_label labels[3];
    unsigned n = 0;
    if (backend)
        labels[n++] = (struct mk_counter_label){"backend", mk_str_c(backend)};
    if (server)
        labels[n++] = (struct mk_counter_label){"server", mk_str_c(server)};
    if (status)
        labels[n++] = (struct mk_counter_label){"status", mk_str_c(status)};
    return mk_counter_open(info, labels, n);
}

static int add(const struct mk_counter_value *v, void *ctx)
{
    mk_counter_table_add(ctx, v);
    return 0;
}

static const struct mk_counter_table_row *find_row(const struct mk_counter_table *t, const char *plugin,
                                                   const char *backend, const char *server)
{
    for (unsigned i = 0; i < t->n; i++)
        if (mk_str_eq(mk_str(t->rows[i].plugin, t->rows[i].plugin_len), mk_str_c(plugin)) &&
            mk_str_eq(mk_counter_table_label(&t->rows[i], 0), mk_str_c(backend)) &&
            mk_str_eq(mk_counter_table_label(&t->rows[i], 1), mk_str_c(server)))
            return &t->rows[i];
    return NULL;
}

static void count_some(void)
{
    mk_counter_add(open_counter(&requests, "a", NULL, NULL), NULL, 7);
    mk_counter_add(open_counter(&requests, "a", "one", NULL), NULL, 1);
    mk_counter_add(open_counter(&requests, NULL, "one", NULL), NULL, 9); /* in no row */
    mk_counter_add(open_counter(&responses, "a", NULL, "2xx"), NULL, 4);
    mk_counter_add(open_counter(&responses, "a", NULL, "5xx"), NULL, 2);
    mk_counter_observe(open_counter(&times, "a", NULL, NULL), NULL, 1000);
    mk_counter_observe(open_counter(&times, "a", NULL, "2xx"), NULL, 3000);
    mk_counter_add(open_counter(&foreign, "a", NULL, NULL), NULL, 5);
}

TEST(rows_of_a_plugin, mk_test_counters_open, mk_test_counters_close)
{
    struct mk_counter_table t = {.type = &of_proxy};
    uint64_t observed = 0;
    count_some();
    mk_counters_each(add, &t);
    assert_int_equal(t.n, 2);
    const struct mk_counter_table_row *a = find_row(&t, "proxy", "a", ""), *one = find_row(&t, "proxy", "a", "one");
    assert_true(a && one && !t.omits_some);
    assert_int_equal(a->numbers[0], 7);
    assert_int_equal(a->numbers[1], 6);
    assert_int_equal(a->numbers[2], 2);
    assert_int_equal(a->durations[0].sum_us, 4000);
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        observed += a->durations[0].buckets[i];
    assert_int_equal(observed, 2);
    assert_int_equal(one->numbers[0], 1);
    assert_int_equal(one->durations[0].sum_us, 0);
    mk_counter_table_release(&t);
}

TEST(plugins_have_their_own_rows, mk_test_counters_open, mk_test_counters_close)
{
    struct mk_counter_table t = {.type = &of_all};
    count_some();
    mk_counters_each(add, &t);
    assert_int_equal(t.n, 3);
    assert_int_equal(find_row(&t, "proxy", "a", "")->numbers[0], 7);
    assert_int_equal(find_row(&t, "other", "a", "")->numbers[0], 5);
    mk_counter_table_release(&t);
}

TEST(too_many_rows, mk_test_counters_open, mk_test_counters_close)
{
    struct mk_counter_table t = {.type = &of_proxy};
    for (unsigned i = 0; i <= MK_COUNTER_TABLE_ROWS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "b%u", i);
        mk_counter_add(open_counter(&requests, name, NULL, NULL), NULL, 1);
    }
    mk_counters_each(add, &t);
    assert_int_equal(t.n, MK_COUNTER_TABLE_ROWS_MAX);
    assert_true(t.omits_some);
    mk_counter_table_release(&t);
}

TEST(no_rows, mk_test_counters_open, mk_test_counters_close)
{
    struct mk_counter_table t = {.type = &of_all};
    mk_counters_each(add, &t);
    assert_true(t.n == 0 && !t.omits_some);
    mk_counter_table_release(&t);
}
