// SPDX-License-Identifier: Apache-2.0
/*
 * Prints results; docs/internals/wr.md lists their members.
 */
#include "report.h"

#include <monkey/kit/json.h>

#include <stdio.h>
#include <string.h>

#include "version.h"

enum { REPORT_BYTES_MAX = 16 << 20 };

static const char *const error_names[ERRORS] = {
    [ERROR_CONNECT] = "connect", [ERROR_READ] = "read", [ERROR_TIMEOUT] = "timeout",     [ERROR_STATUS] = "status",
    [ERROR_LENGTH] = "length",   [ERROR_HASH] = "hash", [ERROR_MALFORMED] = "malformed",
};

/* ── adding up ── */

static double usage_us(const struct timeval *to, const struct timeval *from)
{
    return (double)(to->tv_sec - from->tv_sec) * 1e6 + (double)(to->tv_usec - from->tv_usec);
}

/* All members of struct counts are numbers of one type. */
static void add_counts(struct counts *to, const struct counts *from)
{
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof(*to) / sizeof(*a); i++)
        a[i] += b[i];
}

void report_collect(struct report *r, const struct plan *plan, const struct loader *loaders, unsigned n)
{
    r->plan = plan;
    histogram_init(&r->latencies);
    for (unsigned i = 0; i < n; i++) {
        const struct loader *l = &loaders[i];
        bool counted = l->count_from_ns != UINT64_MAX;
        double seconds = counted ? (double)(l->end_ns - l->count_from_ns) / 1e9 : 0;
        r->seconds = seconds > r->seconds ? seconds : r->seconds;
        r->user_us += counted ? usage_us(&l->usage_to.ru_utime, &l->usage_from.ru_utime) : 0;
        r->system_us += counted ? usage_us(&l->usage_to.ru_stime, &l->usage_from.ru_stime) : 0;
        r->gave_up |= l->gave_up;
        if (!r->first_error && l->first_error[0])
            r->first_error = l->first_error;
        add_counts(&r->counts, &l->counts);
        histogram_add(&r->latencies, &l->latencies);
    }
}

/* ── printing ── */

static void add_counters(const struct report *r, struct mk_buf *out)
{
    const struct counts *c = &r->counts;
    char status[8];
    mk_json_real(out, "seconds", r->seconds);
    mk_json_number(out, "answers", (int64_t)c->answers);
    mk_json_number(out, "bytes", (int64_t)c->bytes);
    mk_json_number(out, "head_bytes", (int64_t)c->head_bytes);
    mk_json_open(out, "statuses", '{');
    for (unsigned i = 0; i < LOAD_STATUSES; i++) {
        if (!c->statuses[i])
            continue;
        snprintf(status, sizeof(status), "%u", i);
        mk_json_number(out, status, (int64_t)c->statuses[i]);
    }
    mk_json_close(out, '}');
    mk_json_open(out, "errors", '{');
    for (unsigned i = 0; i < ERRORS; i++)
        mk_json_number(out, error_names[i], (int64_t)c->errors[i]);
    mk_json_close(out, '}');
    mk_json_number(out, "unanswered", (int64_t)c->unanswered);
    mk_json_number(out, "connections_opened", (int64_t)c->opened);
    mk_json_number(out, "connections_resumed", (int64_t)c->resumed);
    mk_json_number(out, "hashed", (int64_t)c->hashed);
    mk_json_number(out, "late_starts", (int64_t)c->late_starts);
}

static void add_latencies(const struct report *r, struct mk_buf *out)
{
    static const char *const names[] = {"p50", "p75", "p90", "p99", "p99.9", "p99.99"};
    static const double values[] = {50, 75, 90, 99, 99.9, 99.99};
    const struct histogram *h = &r->latencies;
    mk_json_open(out, "latency_us", '{');
    mk_json_number(out, "min", (int64_t)(h->n ? h->min : 0));
    mk_json_real(out, "mean", histogram_mean(h));
    mk_json_number(out, "max", (int64_t)h->max);
    for (unsigned i = 0; i < MK_COUNT_OF(values); i++)
        mk_json_number(out, names[i], (int64_t)histogram_percentile(h, values[i]));
    mk_json_close(out, '}');
}

static void add_report(const struct report *r, struct mk_buf *out, const char *encoded)
{
    const struct plan *plan = r->plan;
    double spent = r->seconds * 1e6 * plan->threads;
    mk_json_open(out, NULL, '{');
    mk_json_cstr(out, "version", MK__VERSION);
    mk_json_open(out, "command", '[');
    for (int i = 0; i < plan->argc; i++)
        mk_json_cstr(out, NULL, plan->argv[i]);
    mk_json_close(out, ']');
    add_counters(r, out);
    add_latencies(r, out);
    mk_json_cstr(out, "loop", plan->rate > 0 ? "open" : "closed");
    mk_json_real(out, "rate", plan->rate);
    mk_json_open(out, "cpu_us", '{');
    mk_json_real(out, "user", r->user_us);
    mk_json_real(out, "system", r->system_us);
    mk_json_close(out, '}');
    mk_json_real(out, "cpu_share", spent > 0 ? (r->user_us + r->system_us) / spent : 0);
    mk_json_cstr(out, "hdr", encoded);
    mk_json_close_line(out);
}

static int write_log(const struct report *r, const char *encoded)
{
    const char *path = r->plan->hdr;
    int err = path ? histogram_write_log(path, r->started, r->seconds, r->latencies.max, encoded) : 0;
    if (err < 0)
        fprintf(stderr, "wr-load: %s: %s\n", path, strerror(-err));
    return err;
}

int report_print(struct report *r)
{
    const uint64_t *errors = r->counts.errors;
    struct mk_buf out, encoded;
    mk_buf_init(&out, REPORT_BYTES_MAX);
    mk_buf_init(&encoded, REPORT_BYTES_MAX);
    int err = histogram_encode(&r->latencies, &encoded);
    add_report(r, &out, mk_buf_cstr(&encoded));
    fwrite(out.data, 1, out.len, stdout);
    if (err < 0 || out.err || fflush(stdout) != 0) {
        fputs("wr-load: the result cannot be written\n", stderr);
        err = -1;
    }
    if (r->first_error)
        fprintf(stderr, "wr-load: %s:%s: %s%s\n", r->plan->target.host, r->plan->target.port, r->first_error,
                r->gave_up ? "; no connection was possible, is the server running?" : "");
    if (err == 0)
        err = write_log(r, mk_buf_cstr(&encoded));
    mk_buf_release(&out);
    mk_buf_release(&encoded);
    bool wrong = errors[ERROR_STATUS] || errors[ERROR_LENGTH] || errors[ERROR_HASH] || errors[ERROR_MALFORMED];
    return err < 0 || wrong || !r->counts.answers;
}

void report_print_progress(const struct loader *loaders, unsigned n, double seconds)
{
    uint64_t answers = 0, errors = 0;
    for (unsigned i = 0; i < n; i++) {
        answers += atomic_load_explicit(&loaders[i].seen_answers, memory_order_relaxed);
        errors += atomic_load_explicit(&loaders[i].seen_errors, memory_order_relaxed);
    }
    fprintf(stderr, "{\"t\": %.1f, \"answers\": %llu, \"errors\": %llu}\n", seconds, (unsigned long long)answers,
            (unsigned long long)errors);
}
