// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the status as JSON (document.h): one function for each member of the document.
 */
#include "document.h"

#include "latency.h"

#include <monkey/json.h>
#include <monkey/monkey.h>

/* ── the process and its workers ── */

/* -1: unknown */
static void add_known(struct mk_buf *out, const char *key, int64_t value)
{
    if (value < 0)
        mk_json_null(out, key);
    else
        mk_json_number(out, key, value);
}

static void add_process(struct mk_buf *out, const struct process *p)
{
    mk_json_open(out, "process", '{');
    mk_json_number(out, "pid", p->pid);
    add_known(out, "threads", p->threads);
    add_known(out, "resident_bytes", p->resident_bytes);
    add_known(out, "virtual_bytes", p->virtual_bytes);
    add_known(out, "open_fds", p->open_fds);
    add_known(out, "max_fds", p->max_fds);
    mk_json_real(out, "cpu_seconds", p->cpu_seconds);
    mk_json_close(out, '}');
}

static void add_worker(struct mk_buf *out, const struct snapshot_worker *w)
{
    mk_json_open(out, NULL, '{');
    mk_json_number(out, "index", w->index);
    mk_json_bool(out, "up", w->up);
    if (w->up) {
        mk_json_number(out, "memory_bytes", (int64_t)w->memory_bytes);
        mk_json_number(out, "memory_limit_bytes", (int64_t)w->memory_bytes_max);
        mk_json_number(out, "loop_turns", (int64_t)w->loop_turns);
        mk_json_number(out, "connections", w->connections);
        mk_json_number(out, "requests", (int64_t)w->requests);
    }
    mk_json_close(out, '}');
}

/* By their indexes, of which there are few. */
static void add_workers(struct mk_buf *out, const struct document *d)
{
    mk_json_open(out, "workers", '[');
    for (unsigned index = 0, left = d->n_workers; left; index++)
        for (unsigned i = 0; i < d->n_workers; i++)
            if (d->workers[i].index == index) {
                add_worker(out, &d->workers[i]);
                left--;
            }
    mk_json_close(out, ']');
}

/* ── requests ── */

static void add_requests(struct mk_buf *out, const struct totals_host *h)
{
    mk_json_number(out, "requests", (int64_t)h->requests);
    mk_json_open(out, "status", '{');
    for (unsigned i = 0; i < TOTALS_CLASSES; i++)
        mk_json_number(out, totals_class_names[i], (int64_t)h->classes[i]);
    mk_json_close(out, '}');
    mk_json_number(out, "received_body_bytes", (int64_t)h->received_body_bytes);
    mk_json_number(out, "sent_body_bytes", (int64_t)h->sent_body_bytes);
    mk_json_number(out, "responses_aborted", (int64_t)h->responses_aborted);
}

static void add_totals(struct mk_buf *out, const struct totals *t)
{
    mk_json_open(out, "totals", '{');
    add_requests(out, &t->all);
    mk_json_number(out, "accepted_connections", (int64_t)t->accepted_connections);
    mk_json_number(out, "refused_connections", (int64_t)t->refused_connections);
    mk_json_number(out, "rejected_requests", (int64_t)t->rejected_requests);
    mk_json_number(out, "timeouts", (int64_t)t->timeouts);
    mk_json_number(out, "http2_floods", (int64_t)t->floods);
    mk_json_number(out, "connections", t->connections);
    latency_write(out, "latency", t->all.sum_us, t->all.buckets);
    mk_json_close(out, '}');
}

static void add_hosts(struct mk_buf *out, const struct document *d, const struct totals *t)
{
    unsigned n = d->hosts_max && d->hosts_max < t->n_hosts ? d->hosts_max : t->n_hosts;
    mk_json_open(out, "hosts", '[');
    for (unsigned i = 0; i < n; i++) {
        mk_json_open(out, NULL, '{');
        mk_json_str(out, "name", mk_str(t->hosts[i].name, t->hosts[i].name_len));
        add_requests(out, &t->hosts[i]);
        latency_write(out, "latency", t->hosts[i].sum_us, t->hosts[i].buckets);
        mk_json_close(out, '}');
    }
    mk_json_close(out, ']');
    mk_json_bool(out, "omits_hosts", t->omits_hosts || n < t->n_hosts);
}

/* ── rates ── */

static void add_rate(struct mk_buf *out, const char *key, const struct history_sample *old,
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
        mk_json_null(out, key);
        return;
    }
    double seconds = (double)(now->ms - old->ms) / 1e3;
    mk_json_open(out, key, '{');
    mk_json_real(out, "seconds", seconds);
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++) {
        uint64_t before = *(const uint64_t *)(const void *)((const char *)old + rows[i].offset);
        uint64_t after = *(const uint64_t *)(const void *)((const char *)now + rows[i].offset);
        mk_json_real(out, rows[i].key, after > before ? (double)(after - before) / seconds : 0);
    }
    mk_json_close(out, '}');
}

static void add_rates(struct mk_buf *out, const struct document *d)
{
    static const struct {
        const char *key;
        uint64_t ms;
    } windows[] = {{"1s", 1000}, {"10s", 10000}, {"60s", 60000}};
    mk_json_open(out, "rates", '{');
    for (unsigned i = 0; i < MK_COUNT_OF(windows); i++)
        add_rate(out, windows[i].key, history_find(d->history, &d->sample, windows[i].ms), &d->sample);
    mk_json_close(out, '}');
}

/* ── counters one by one ── */

static void add_part(struct mk_buf *out, const char *key, const char brackets[2], const struct mk_buf *part)
{
    mk_json_open(out, key, brackets[0]);
    mk_buf_adds(out, mk_buf_str(part));
    if (part->err)
        out->err = part->err;
    mk_json_close(out, brackets[1]);
}

static void add_breakdowns(struct mk_buf *out, const struct collected *c)
{
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++)
        add_part(out, collect_breakdown_keys[i], "{}", &c->breakdowns[i]);
}

/* ── paths ── */

static void add_paths(struct mk_buf *out, const char *key, const struct sketch_path *paths, unsigned n)
{
    mk_json_open(out, key, '[');
    for (unsigned i = 0; i < n; i++) {
        const struct sketch_path *p = &paths[i];
        uint64_t counted = p->requests - p->excess;
        mk_json_open(out, NULL, '{');
        mk_json_str(out, "path", mk_str(p->path, p->len));
        mk_json_number(out, "requests", (int64_t)p->requests);
        mk_json_number(out, "excess", (int64_t)p->excess);
        mk_json_real(out, "mean_ms", counted ? (double)p->total_us / (double)counted / 1e3 : 0);
        mk_json_real(out, "max_ms", (double)p->max_us / 1e3);
        mk_json_close(out, '}');
    }
    mk_json_close(out, ']');
}

static void add_path_lists(struct mk_buf *out, const struct sketch_lists *lists)
{
    if (!lists) {
        mk_json_null(out, "paths");
        return;
    }
    mk_json_open(out, "paths", '{');
    mk_json_number(out, "minutes", SKETCH_MINUTES);
    add_paths(out, "busiest", lists->busiest, lists->n_busiest);
    add_paths(out, "slowest", lists->slowest, lists->n_slowest);
    mk_json_close(out, '}');
}

/* ── the document ── */

void document_write(const struct document *d, const struct collected *c, struct mk_buf *out)
{
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "version", mk_str_c(mk_version()));
    mk_json_real(out, "time", d->now);
    mk_json_real(out, "started", d->process.start_time_seconds);
    mk_json_real(out, "uptime", d->now - d->process.start_time_seconds);
    mk_json_number(out, "generation", (int64_t)d->generation);
    add_process(out, &d->process);
    add_workers(out, d);
    add_totals(out, &c->totals);
    add_rates(out, d);
    add_hosts(out, d, &c->totals);
    add_breakdowns(out, c);
    add_path_lists(out, d->paths);
    counted_write(&counted_backends, &c->backends, d->hosts_max, out);
    counted_write(&counted_servers, &c->servers, d->hosts_max, out);
    if (c->with_plugins)
        add_part(out, "plugins", "[]", &c->plugins);
    mk_json_close(out, '}');
}
