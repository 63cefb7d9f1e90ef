// SPDX-License-Identifier: Apache-2.0
/*
 * Prints results; docs/internals/wr.md lists their members.
 */
#include "report.h"

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

static void add_string(struct mk_buf *out, const char *text)
{
    mk_buf_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            mk_buf_addf(out, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            mk_buf_addf(out, "\\u%04x", *p); /* a byte that is no ASCII becomes one of Latin-1 */
        else
            mk_buf_addc(out, (char)*p);
    }
    mk_buf_addc(out, '"');
}

static void add_counters(const struct report *r, struct mk_buf *out)
{
    const struct counts *c = &r->counts;
    const char *comma = "";
    mk_buf_addf(out, "\"seconds\": %.6f, \"answers\": %llu, \"bytes\": %llu, \"head_bytes\": %llu, \"statuses\": {",
                r->seconds, (unsigned long long)c->answers, (unsigned long long)c->bytes,
                (unsigned long long)c->head_bytes);
    for (unsigned i = 0; i < LOAD_STATUSES; i++) {
        if (!c->statuses[i])
            continue;
        mk_buf_addf(out, "%s\"%u\": %llu", comma, i, (unsigned long long)c->statuses[i]);
        comma = ", ";
    }
    mk_buf_adds(out, MK_STR("}, \"errors\": {"));
    for (unsigned i = 0; i < ERRORS; i++)
        mk_buf_addf(out, "%s\"%s\": %llu", i ? ", " : "", error_names[i], (unsigned long long)c->errors[i]);
    mk_buf_addf(
        out, "}, \"unanswered\": %llu, \"connections_opened\": %llu, \"connections_resumed\": %llu, \"hashed\": %llu, ",
        (unsigned long long)c->unanswered, (unsigned long long)c->opened, (unsigned long long)c->resumed,
        (unsigned long long)c->hashed);
}

static void add_latencies(const struct report *r, struct mk_buf *out)
{
    static const char *const percents[] = {"50", "75", "90", "99", "99.9", "99.99"};
    static const double values[] = {50, 75, 90, 99, 99.9, 99.99};
    const struct histogram *h = &r->latencies;
    mk_buf_addf(out, "\"latency_us\": {\"min\": %llu, \"mean\": %.2f, \"max\": %llu",
                (unsigned long long)(h->n ? h->min : 0), histogram_mean(h), (unsigned long long)h->max);
    for (unsigned i = 0; i < MK_COUNT_OF(values); i++)
        mk_buf_addf(out, ", \"p%s\": %llu", percents[i], (unsigned long long)histogram_percentile(h, values[i]));
    mk_buf_adds(out, MK_STR("}, "));
}

static void add_report(const struct report *r, struct mk_buf *out, const char *encoded)
{
    const struct plan *plan = r->plan;
    double spent = r->seconds * 1e6 * plan->threads;
    mk_buf_adds(out, MK_STR("{\"version\": \"" MK__VERSION "\", \"command\": ["));
    for (int i = 0; i < plan->argc; i++) {
        mk_buf_adds(out, i ? MK_STR(", ") : MK_STR(""));
        add_string(out, plan->argv[i]);
    }
    mk_buf_adds(out, MK_STR("], "));
    add_counters(r, out);
    add_latencies(r, out);
    mk_buf_addf(out, "\"loop\": \"%s\", \"rate\": %.10g, \"late_starts\": %llu, ", plan->rate > 0 ? "open" : "closed",
                plan->rate, (unsigned long long)r->counts.late_starts);
    mk_buf_addf(out, "\"cpu_us\": {\"user\": %.0f, \"system\": %.0f}, \"cpu_share\": %.4f, \"hdr\": ", r->user_us,
                r->system_us, spent > 0 ? (r->user_us + r->system_us) / spent : 0);
    add_string(out, encoded);
    mk_buf_adds(out, MK_STR("}\n"));
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
