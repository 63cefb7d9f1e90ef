// SPDX-License-Identifier: Apache-2.0
/*
 * The status as JSON, with counters of this test; totals of hosts; rates.
 */
#include "testing.h"

#include "plugins/status/report.h"

#include <errno.h>
#include <stdio.h>

/* ── counters ── */

static uint64_t buckets[MK_COUNTER_BUCKETS];

#define SERVER(counter, text, n) \
    { \
        .name = MK_STR(counter), .labels = MK_STR(text), .value = (n) \
    }
#define PROXY(counter, text, n) \
    { \
        .plugin = MK_STR("proxy"), .name = MK_STR("backend_" counter), .labels = MK_STR(text), .value = (n) \
    }
static const struct mk_counter_value counters[] = {
    SERVER("accepted_connections", "", 50),
    SERVER("refused_connections", "reason=\"plugin\"", 3),
    SERVER("refused_connections", "reason=\"evicted\"", 4),
    SERVER("connections", "state=\"idle\"", 5),
    SERVER("connections", "state=\"write\"", 1),
    SERVER("requests", "host=\"a\",protocol=\"1.1\",status=\"2xx\"", 10),
    SERVER("requests", "host=\"a\",protocol=\"2\",status=\"2xx\"", 20),
    SERVER("requests", "host=\"a\",protocol=\"1.1\",status=\"5xx\"", 2),
    SERVER("requests", "host=\"b\",protocol=\"1.1\",status=\"none\"", 100),
    SERVER("sent_body_bytes", "host=\"a\"", 1000),
    SERVER("sent_body_bytes", "host=\"b\"", 1),
    SERVER("responses_aborted", "host=\"a\"", 6),
    SERVER("responses_aborted", "host=\"b\"", 2),
    SERVER("received_body_bytes", "host=\"b\"", 77),
    SERVER("something_new", "host=\"b\"", 1),
    {.name = MK_STR("request_duration"),
     .labels = MK_STR("host=\"a\""),
     .kind = MK_COUNTER_HISTOGRAM,
     .value = 4,
     .sum_us = 8000,
     .buckets = buckets},
    {.plugin = MK_STR("cache"), .name = MK_STR("requests"), .labels = MK_STR("host=\"a\""), .value = 9},
    PROXY("requests", "backend=\"http://b\"", 7),
    PROXY("responses", "backend=\"http://b\",status=\"2xx\"", 6),
    PROXY("responses", "backend=\"http://a\",status=\"5xx\"", 1),
    PROXY("connections", "backend=\"http://b\",state=\"idle\"", 2),
    PROXY("connections", "backend=\"http://b\",state=\"busy\"", 3),
    {.plugin = MK_STR("upstream"),
     .name = MK_STR("server_requests"),
     .labels = MK_STR("upstream=\"app\",server=\"127.0.0.1:1\""),
     .value = 3},
    {.plugin = MK_STR("upstream"), .name = MK_STR("queued_requests"), .labels = MK_STR("upstream=\"app\""), .value = 2},
    {.plugin = MK_STR("proxy"),
     .name = MK_STR("backend_head_duration"),
     .labels = MK_STR("backend=\"http://a\""),
     .kind = MK_COUNTER_HISTOGRAM,
     .value = 4,
     .sum_us = 8000,
     .buckets = buckets},
};

static unsigned times_listed;

static int list_counters(mk_counter_fn fn, void *ctx)
{
    int err = 0;
    times_listed++;
    for (size_t i = 0; i < COUNT(counters) && err == 0; i++)
        err = fn(&counters[i], ctx);
    return err;
}

enum { MANY = TOTALS_HOSTS_MAX + 10 };

static int list_many_hosts(mk_counter_fn fn, void *ctx)
{
    char labels[64];
    struct mk_counter_value v = {.name = MK_STR("requests")};
    for (int i = 0; i < MANY; i++) {
        snprintf(labels, sizeof(labels), "host=\"%d\",status=\"2xx\"", i);
        v.labels = mk_str_c(labels);
        v.value = i;
        fn(&v, ctx);
    }
    return 0;
}

/* ── totals ── */

TEST(totals)
{
    struct collected c;
    collect_counters(&c, true, 1 << 20, list_counters);
    struct totals t = c.totals;
    assert_int_equal(t.all.requests, 132); /* not those of the plugin */
    assert_int_equal(t.all.classes[TOTALS_2XX], 30);
    assert_int_equal(t.all.classes[TOTALS_NONE], 100);
    assert_int_equal(t.refused_connections, 7);
    assert_int_equal(t.connections, 6);
    assert_int_equal(t.n_hosts, 2);
    assert_string_equal(t.hosts[0].name, "b");
    assert_int_equal(t.hosts[1].requests, 32);
    assert_int_equal(t.hosts[1].classes[TOTALS_5XX], 2);
    assert_int_equal(t.hosts[1].sent_body_bytes, 1000);
    assert_int_equal(t.hosts[0].received_body_bytes, 77);
    collect_release(&c);
}

TEST(many_hosts)
{
    struct collected c;
    collect_counters(&c, true, 1 << 20, list_many_hosts);
    struct totals t = c.totals;
    assert_int_equal(t.n_hosts, TOTALS_HOSTS_MAX);
    assert_true(t.omits_hosts);
    assert_int_equal(t.all.requests, (uint64_t)MANY * (MANY - 1) / 2); /* nothing is missing in the sum */
    assert_int_equal(t.hosts[0].requests, TOTALS_HOSTS_MAX - 1);
    collect_release(&c);
}

/* ── rates ── */

TEST(history)
{
    struct history h = {0};
    struct history_sample now = {.ms = 100000, .requests = 1000};
    assert_null(history_find(&h, &now, 1000));
    for (uint64_t ms = 100000; ms <= 200000; ms += 1000)
        history_add(&h, &(struct history_sample){.ms = ms, .requests = ms});
    history_add(&h, &(struct history_sample){.ms = 200500}); /* too young */
    now.ms = 201000;
    assert_int_equal(history_find(&h, &now, 1000)->ms, 200000);
    assert_int_equal(history_find(&h, &now, 10000)->ms, 192000);
    assert_int_equal(history_find(&h, &now, 60000)->ms, 147000);
    now.ms = 202100;
    assert_null(history_find(&h, &now, 1000)); /* the newest one is too old */
    assert_int_equal(history_find(&h, &now, 10000)->ms, 193000);
    for (uint64_t ms = 300000; ms < 300000 + 1000 * HISTORY_SAMPLES; ms += 1000)
        history_add(&h, &(struct history_sample){.ms = ms});
    now.ms = 300000 + 1000 * HISTORY_SAMPLES;
    assert_int_equal(history_find(&h, &now, 60000)->ms, now.ms - 54000);
    assert_int_equal(history_find(&h, &now, 128000)->ms, now.ms - 116000);
}

/* ── the document ── */

static bool has(struct mk_str text, const char *part)
{
    return memmem(text.p, text.len, part, strlen(part)) != NULL;
}

static struct mk_buf write_document(const struct document *d, bool with_plugins)
{
    struct collected c;
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    collect_counters(&c, with_plugins, 1 << 20, list_counters);
    document_write(d, &c, &out);
    collect_release(&c);
    assert_int_equal(out.err, 0);
    return out;
}

TEST(document)
{
    static const struct snapshot_worker workers[] = {
        {.index = 2},
        {.index = 0, .up = true, .memory_bytes = 11, .loop_turns = 12, .requests = 13, .connections = 14},
    };
    static struct sketch_lists lists = {
        .n_busiest = 1,
        .busiest[0] = {.requests = 5,
                       .excess = 1,
                       .total_us = 8000,
                       .max_us = 3000,
                       .len = 9,
                       .path = "/<b>\"\n\xc3"
                               "  "},
    };
    struct history history = {0};
    struct document d = {
        .workers = workers,
        .n_workers = COUNT(workers),
        .process = {.pid = 1, .threads = -1, .resident_bytes = 4096, .start_time_seconds = 1000},
        .generation = 3,
        .now = 1060.5,
        .sample = {.ms = 11000, .requests = 132},
        .history = &history,
        .paths = &lists,
    };
    times_listed = 0;
    memset(buckets, 0, sizeof(buckets));
    buckets[mk_counter_bucket(1000)] = 3;
    buckets[MK_COUNTER_BUCKETS - 1] = 1;
    history_add(&history, &(struct history_sample){.ms = 1000, .requests = 32});
    struct mk_buf out = write_document(&d, true);
    struct mk_str text = mk_buf_str(&out);
    static const char *const parts[] = {
        "\"started\":1000,\"uptime\":60.5,\"generation\":3,\"process\":{\"pid\":1,\"threads\":null,",
        "\"workers\":[{\"index\":0,\"up\":true,\"memory_bytes\":11,\"memory_limit_bytes\":0,\"loop_turns\":12,"
        "\"connections\":14,\"requests\":13},{\"index\":2,\"up\":false}]",
        "\"totals\":{\"requests\":132,\"status\":{\"none\":100,\"1xx\":0,\"2xx\":30,\"3xx\":0,\"4xx\":0,\"5xx\":2},",
        "\"responses_aborted\":8,\"accepted_connections\":50,\"refused_connections\":7,",
        "\"rates\":{\"1s\":null,\"10s\":{\"seconds\":10,\"requests\":10,\"errors\":0,",
        "\"60s\":null}",
        "\"latency\":{\"count\":4,\"mean_ms\":2,\"p50_ms\":1.024,",
        "\"buckets\":[[1.024,3],[null,1]]}",
        "\"hosts\":[{\"name\":\"b\",\"requests\":100,",
        "\"omits_hosts\":false,\"connections\":{\"idle\":5,\"write\":1},"
        "\"refused_connections\":{\"plugin\":3,\"evicted\":4},",
        "{\"minutes\":5,\"busiest\":[{\"path\":\"/<b>\\\"\\u000a\xef\xbf\xbd  \",\"requests\":5,\"excess\":1,"
        "\"mean_ms\":2,\"max_ms\":3}],\"slowest\":[]}",
        "\"backends\":[{\"plugin\":\"proxy\",\"name\":\"http://b\","
        "\"requests\":7,\"status\":{\"1xx\":0,\"2xx\":6,\"3xx\":0,\"4xx\":0,"
        "\"5xx\":0},\"retries\":0,\"failures\":0,\"timeouts\":0,\"opened_connections\":0,\"busy_connections\":3,"
        "\"idle_connections\":2,",
        "{\"plugin\":\"proxy\",\"name\":\"http://a\","
        "\"requests\":0,\"status\":{\"1xx\":0,\"2xx\":0,\"3xx\":0,\"4xx\":0,\"5xx\":1},",
        "\"head_latency\":{\"count\":4,\"mean_ms\":2,",
        "\"omits_backends\":false,\"servers\":[{\"group\":\"app\",\"server\":\"127.0.0.1:1\",\"requests\":3,"
        "\"active_requests\":0,",
        "{\"group\":\"app\",\"requests\":0,\"active_requests\":0,\"waited_requests\":0,\"failures\":0,"
        "\"ejections\":0,\"up\":0,\"ejected\":0,\"draining\":0,\"taken_down\":0,\"checks\":0,\"failed_checks\":0,"
        "\"queued_requests\":2,"
        "\"held_requests\":0,",
        "\"omits_servers\":false,\"plugins\":[{\"plugin\":\"cache\",\"name\":\"requests\","
        "\"labels\":\"host=\\\"a\\\"\",\"value\":9},",
    };
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!has(text, parts[i]))
            fail_msg("%s\nis not in\n%.*s", parts[i], MK_STR_ARG(text));
    mk_buf_release(&out);
    assert_int_equal(times_listed, 1);

    d.hosts_max = 1;
    d.paths = NULL;
    out = write_document(&d, false);
    text = mk_buf_str(&out);
    assert_true(has(text, "\"omits_hosts\":true") && !has(text, "\"name\":\"a\"") && !has(text, "plugins"));
    assert_true(has(text, "\"paths\":null,\"backends\":[{"));
    mk_buf_release(&out);
}

/* What does not fit makes the document fail; it is not cut. */
TEST(too_many_counters)
{
    struct history history = {0};
    struct document d = {.history = &history};
    struct collected c;
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    collect_counters(&c, true, 10, list_counters);
    document_write(&d, &c, &out);
    collect_release(&c);
    assert_int_equal(out.err, -ENOBUFS);
    mk_buf_release(&out);
}
