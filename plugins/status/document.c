// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the status as JSON (document.h): one function for each member of the document.
 */
#include "document.h"

#include <monkey/monkey.h>

/* ── the process and its workers ── */

/* -1: unknown */
static void add_known(struct json *j, const char *key, int64_t value)
{
    if (value < 0)
        json_null(j, key);
    else
        json_number(j, key, value);
}

static void add_process(struct json *j, const struct process *p)
{
    json_open(j, "process", '{');
    json_number(j, "pid", p->pid);
    add_known(j, "threads", p->threads);
    add_known(j, "resident_bytes", p->resident_bytes);
    add_known(j, "virtual_bytes", p->virtual_bytes);
    add_known(j, "open_fds", p->open_fds);
    add_known(j, "max_fds", p->max_fds);
    json_real(j, "cpu_seconds", p->cpu_seconds);
    json_close(j, '}');
}

static void add_worker(struct json *j, const struct look_worker *w)
{
    json_open(j, NULL, '{');
    json_number(j, "index", w->index);
    json_bool(j, "up", w->up);
    if (w->up) {
        json_number(j, "memory_bytes", (int64_t)w->memory_bytes);
        json_number(j, "memory_limit_bytes", (int64_t)w->memory_bytes_max);
        json_number(j, "loop_turns", (int64_t)w->loop_turns);
        json_number(j, "connections", w->connections);
        json_number(j, "requests", (int64_t)w->requests);
    }
    json_close(j, '}');
}

/* By their indexes, of which there are few. */
static void add_workers(struct json *j, const struct document *d)
{
    json_open(j, "workers", '[');
    for (unsigned index = 0, left = d->n_workers; left; index++)
        for (unsigned i = 0; i < d->n_workers; i++)
            if (d->workers[i].index == index) {
                add_worker(j, &d->workers[i]);
                left--;
            }
    json_close(j, ']');
}

/* ── requests ── */

static void add_requests(struct json *j, const struct totals_host *h)
{
    json_number(j, "requests", (int64_t)h->requests);
    json_open(j, "status", '{');
    for (unsigned i = 0; i < TOTALS_CLASSES; i++)
        json_number(j, totals_class_names[i], (int64_t)h->classes[i]);
    json_close(j, '}');
    json_number(j, "received_body_bytes", (int64_t)h->received_body_bytes);
    json_number(j, "sent_body_bytes", (int64_t)h->sent_body_bytes);
    json_number(j, "responses_aborted", (int64_t)h->responses_aborted);
}

static void add_percentiles(struct json *j, const struct totals_host *h)
{
    static const struct {
        const char *key;
        double share;
    } rows[] = {{"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};
    uint64_t n = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        n += h->buckets[i];
    json_number(j, "count", (int64_t)n);
    json_real(j, "mean_ms", n ? (double)h->sum_us / (double)n / 1e3 : 0);
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++)
        json_real(j, rows[i].key, (double)mk_counter_quantile_us(h->buckets, rows[i].share) / 1e3);
}

/* Each bucket that is not empty: its end in milliseconds (null: none) and its number. */
static void add_buckets(struct json *j, const struct totals_host *h)
{
    json_open(j, "buckets", '[');
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        if (!h->buckets[i])
            continue;
        json_open(j, NULL, '[');
        if (i == MK_COUNTER_BUCKETS - 1)
            json_null(j, NULL);
        else
            json_real(j, NULL, (double)mk_counter_bucket_end_us(i) / 1e3);
        json_number(j, NULL, (int64_t)h->buckets[i]);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void add_latency(struct json *j, const struct totals_host *h)
{
    json_open(j, "latency", '{');
    add_percentiles(j, h);
    add_buckets(j, h);
    json_close(j, '}');
}

static void add_totals(struct json *j, const struct totals *t)
{
    json_open(j, "totals", '{');
    add_requests(j, &t->all);
    json_number(j, "accepted_connections", (int64_t)t->accepted_connections);
    json_number(j, "refused_connections", (int64_t)t->refused_connections);
    json_number(j, "rejected_requests", (int64_t)t->rejected_requests);
    json_number(j, "timeouts", (int64_t)t->timeouts);
    json_number(j, "http2_floods", (int64_t)t->floods);
    json_number(j, "connections", t->connections);
    add_latency(j, &t->all);
    json_close(j, '}');
}

static void add_hosts(struct json *j, const struct document *d, const struct totals *t)
{
    unsigned n = d->hosts_max && d->hosts_max < t->n_hosts ? d->hosts_max : t->n_hosts;
    json_open(j, "hosts", '[');
    for (unsigned i = 0; i < n; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", mk_str(t->hosts[i].name, t->hosts[i].name_len));
        add_requests(j, &t->hosts[i]);
        add_latency(j, &t->hosts[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_bool(j, "omits_hosts", t->omits_hosts || n < t->n_hosts);
}

/* ── rates ── */

static void add_rate(struct json *j, const char *key, const struct history_sample *old,
                     const struct history_sample *now)
{
    static const struct {
        const char *key;
        size_t offset;
    } rows[] = {
        {"requests", offsetof(struct history_sample, requests)},
        {"errors", offsetof(struct history_sample, errors)},
        {"received_body_bytes", offsetof(struct history_sample, received_body_bytes)},
        {"sent_body_bytes", offsetof(struct history_sample, sent_body_bytes)},
        {"accepted_connections", offsetof(struct history_sample, accepted_connections)},
    };
    if (!old) {
        json_null(j, key);
        return;
    }
    double seconds = (double)(now->ms - old->ms) / 1e3;
    json_open(j, key, '{');
    json_real(j, "seconds", seconds);
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++) {
        uint64_t before = *(const uint64_t *)(const void *)((const char *)old + rows[i].offset);
        uint64_t after = *(const uint64_t *)(const void *)((const char *)now + rows[i].offset);
        json_real(j, rows[i].key, after > before ? (double)(after - before) / seconds : 0);
    }
    json_close(j, '}');
}

static void add_rates(struct json *j, const struct document *d)
{
    static const struct {
        const char *key;
        uint64_t ms;
    } windows[] = {{"1s", 1000}, {"10s", 10000}, {"60s", 60000}};
    json_open(j, "rates", '{');
    for (unsigned i = 0; i < MK_COUNT_OF(windows); i++)
        add_rate(j, windows[i].key, history_find(d->history, &d->sample, windows[i].ms), &d->sample);
    json_close(j, '}');
}

/* ── counters one by one ── */

static void add_part(struct json *j, const char *key, const char brackets[2], const struct collect_part *part)
{
    json_open(j, key, brackets[0]);
    mk_buf_adds(j->out, mk_buf_str(&part->text));
    if (part->text.err)
        j->out->err = part->text.err;
    json_close(j, brackets[1]);
}

static void add_breakdowns(struct json *j, const struct collected *c)
{
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++)
        add_part(j, collect_breakdown_keys[i], "{}", &c->breakdowns[i]);
}

/* ── paths ── */

static void add_paths(struct json *j, const char *key, const struct sketch_path *paths, unsigned n)
{
    json_open(j, key, '[');
    for (unsigned i = 0; i < n; i++) {
        const struct sketch_path *p = &paths[i];
        uint64_t counted = p->requests - p->excess;
        json_open(j, NULL, '{');
        json_text(j, "path", mk_str(p->path, p->len));
        json_number(j, "requests", (int64_t)p->requests);
        json_number(j, "excess", (int64_t)p->excess);
        json_real(j, "mean_ms", counted ? (double)p->total_us / (double)counted / 1e3 : 0);
        json_real(j, "max_ms", (double)p->max_us / 1e3);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void add_path_lists(struct json *j, const struct sketch_lists *lists)
{
    if (!lists) {
        json_null(j, "paths");
        return;
    }
    json_open(j, "paths", '{');
    json_number(j, "minutes", SKETCH_MINUTES);
    add_paths(j, "busiest", lists->busiest, lists->n_busiest);
    add_paths(j, "slowest", lists->slowest, lists->n_slowest);
    json_close(j, '}');
}

/* ── the document ── */

void document_write(const struct document *d, const struct collected *c, struct mk_buf *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "version", mk_str_c(mk_version()));
    json_real(&j, "time", d->now);
    json_real(&j, "started", d->process.start_time_seconds);
    json_real(&j, "uptime", d->now - d->process.start_time_seconds);
    json_number(&j, "generation", (int64_t)d->generation);
    add_process(&j, &d->process);
    add_workers(&j, d);
    add_totals(&j, &c->totals);
    add_rates(&j, d);
    add_hosts(&j, d, &c->totals);
    add_breakdowns(&j, c);
    add_path_lists(&j, d->paths);
    if (c->with_plugins)
        add_part(&j, "plugins", "[]", &c->plugins);
    json_close(&j, '}');
}
