// SPDX-License-Identifier: Apache-2.0
/* What `top` makes of two samples. */
#include "testing.h"

#include "bin/shell/shell.h"

#include <stdio.h>

static char storage[256 * 1024];
static struct sample before, now;
static struct paths paths;
static struct top_view view;
static struct mk_buf out;

static int open_view(void **state)
{
    (void)state;
    memset(&before, 0, sizeof(before));
    memset(&now, 0, sizeof(now));
    memset(&paths, 0, sizeof(paths));
    view = (struct top_view){.before = &before, .now = &now, .paths = &paths, .rows = 24, .interval_s = 1};
    view.style = (struct text_style){.terminal = true, .unicode = true, .columns = 80};
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    before.at = 10;
    now.at = 12;
    return 0;
}

static void add_host(const char *name, uint64_t requests, uint64_t us)
{
    struct sample *samples[] = {&before, &now};
    for (unsigned i = 0; i < 2; i++) {
        struct sample_host *host = &samples[i]->hosts[samples[i]->n_hosts++];
        snprintf(host->name, sizeof(host->name), "%s", name);
    }
    struct sample_counts *all[] = {&now.hosts[now.n_hosts - 1].counts, &now.total};
    for (unsigned i = 0; i < 2; i++) {
        all[i]->classes[2] += requests;
        all[i]->durations += requests;
        all[i]->buckets[mk_counter_bucket(us)] += requests;
        all[i]->sent += requests * 1024;
    }
}

static const char *draw(void)
{
    out.len = 0;
    top_screen_draw(&view, &out);
    assert_int_equal(out.err, 0);
    return mk_buf_cstr(&out);
}

static void check_size(const char *text)
{
    size_t rows = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1, rows++) {
        char line[4096];
        snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
        if (text_width(line) > view.style.columns)
            fail_msg("wider than %zu: %s", view.style.columns, line);
    }
    assert_int_equal(rows, view.rows);
}

TEST(rates, open_view)
{
    struct sample_counts a = {.classes = {0, 0, 10, 0, 5, 0}, .sent = 1000}, b = a;
    struct sample_rates r;
    b.classes[2] += 20;
    b.classes[5] += 2;
    b.sent += 500;
    sample_compare(&a, &b, 2, &r);
    assert_true(r.requests == 11 && r.classes[2] == 10 && r.classes[4] == 0 && r.classes[5] == 1 && r.sent == 250);
    assert_false(r.timed);
    sample_compare(&b, &a, 2, &r); /* another process: from 0 */
    assert_true(r.classes[2] == 5 && r.sent == 500);
    sample_compare(&a, &a, 0, &r);
    assert_true(r.requests == 0);
}

TEST(latency, open_view)
{
    struct sample_counts a = {.durations = 1}, b = {.durations = 100};
    struct sample_rates r;
    a.buckets[mk_counter_bucket(5000000)] = 1000; /* before the interval */
    memcpy(b.buckets, a.buckets, sizeof(b.buckets));
    b.buckets[mk_counter_bucket(100)] = 98;
    b.buckets[mk_counter_bucket(30000)] = 2;
    sample_compare(&a, &b, 1, &r);
    assert_true(r.timed && r.p50_us >= 100 && r.p50_us < 130 && r.p99_us >= 30000 && r.p99_us < 37000);
}

TEST(paths, open_view)
{
    for (unsigned i = 0; i < 3; i++)
        paths_add(&paths, "GET", "a", "/busy");
    paths_add(&paths, "POST", "a", "/busy");
    paths_sort(&paths);
    assert_int_equal(paths.n, 2);
    assert_string_equal(paths.rows[0].method, "GET");
    assert_true(paths.rows[0].weight == 3 && paths.total == 4);
    for (unsigned i = 0; i < 2 * PATHS_MAX; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/%u", i);
        paths_add(&paths, "GET", "a", path);
    }
    paths_sort(&paths);
    assert_int_equal(paths.n, PATHS_MAX);
    assert_string_equal(paths.rows[0].path, "/busy");
    for (unsigned i = 0; i < 2000; i++)
        paths_age(&paths);
    assert_int_equal(paths.n, 0);
    assert_true(paths.total < 0.001);
}

TEST(screen, open_view)
{
    snprintf(now.version, sizeof(now.version), "2.0.0");
    now.connections = 12;
    add_host("quiet.example.org", 0, 0);
    add_host("www.example.org", 600, 200);
    add_host("evil\x1b[31m", 200, 200);
    paths_add(&paths, "GET", "www.example.org", "/a\x1b[2J");
    top_view_compare(&view);
    const char *text = draw();
    check_size(text);
    static const char *const parts[] = {
        " monkey 2.0.0 ",
        "Requests            400/s  █\n",
        "Sent             400 KB/s  █\n",
        "p50 0.22 ms  p99 0.22 ms\n",
        "Errors               0.0%  2xx 100.0%",
        " www.example.org           300      -    300 KB  0.22 ms  0.22 ms  ██████    75%\n evil\\x1b[31m ",
        " GET     www.example.org   /a\\x1b[2J ",
        " q ends   every 1 s   \n",
    };
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is not in\n%s", parts[i], text);
    assert_null(strchr(text, '\x1b')); /* no colours, and nothing of a client */
}

TEST(sizes, open_view)
{
    for (unsigned i = 0; i < 40; i++) {
        char name[200];
        snprintf(name, sizeof(name), "%u.%.*s", i, 4 * (int)i,
                 "a-very-long-name.of-a-host.example.org-中文-and-more-of-it-and-yet-more");
        add_host(name, i + 1, 100 * i);
        paths_add(&paths, "PROPPATCH", name, name);
    }
    snprintf(now.state, sizeof(now.state), "serving");
    top_view_compare(&view);
    for (view.rows = 3; view.rows < 60; view.rows += view.rows < 12 ? 1 : 7)
        for (view.style.columns = 1; view.style.columns < 200; view.style.columns += 7)
            check_size(draw());
    view.rows = 24;
    view.style.columns = 80;
    assert_non_null(strstr(draw(), "HOST (5 of 40)"));
    view.late_s = 5;
    assert_non_null(strstr(draw(), "NO ANSWER FOR 5 s"));
    snprintf(now.warning, sizeof(now.warning), "worker 1 does not answer");
    assert_non_null(strstr(draw(), "   worker 1 does not answer\n"));
}

TEST(lines, open_view)
{
    add_host("a", 100, 200);
    now.connections = 3;
    snprintf(now.state, sizeof(now.state), "serving");
    top_view_compare(&view);
    top_view_add_line(&view, &out);
    assert_str_equal(mk_buf_str(&out), "50 requests/s, 3 connections, 0 requests under way, sent 50.0 KB/s, received "
                                       "0 B/s, p50 0.22 ms, p99 0.22 ms, memory 0 B, serving\n");
    out.len = 0;
    top_view_add_json(&view, &out);
    assert_str_equal(mk_buf_str(&out), "{\"requests_per_s\":50,\"sent_bytes_per_s\":51200,\"received_bytes_per_s\":0,"
                                       "\"p50_us\":224,\"p99_us\":224,\"connections\":3,\"requests_under_way\":0,"
                                       "\"memory_bytes\":0}\n");
}
