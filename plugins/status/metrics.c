// SPDX-License-Identifier: Apache-2.0
/*
 * Writes families and samples. The formats differ in the names of counters and in the end.
 */
#include "report.h"

#include <monkey/base/utf8.h>

#include <errno.h>
#include <stdio.h>

struct mk_str text_next(struct mk_str *rest)
{
    size_t n = mk_utf8_length(*rest);
    struct mk_str character = n ? mk_str(rest->p, n) : MK_UTF8_REPLACEMENT;
    n += !n;
    *rest = mk_str_after(*rest, n);
    return character;
}

void text_write(struct mk_buf *out, struct mk_str text)
{
    while (text.len)
        mk_buf_adds(out, text_next(&text));
}

enum { OCTAVE = 4 }; /* buckets for each power of two */

static const char *const type_names[] = {
    [MK_COUNTER_SUM] = "counter",
    [MK_COUNTER_LEVEL] = "gauge",
    [MK_COUNTER_HISTOGRAM] = "histogram",
    [MK_COUNTER_VALUE] = "gauge",
};

struct mk_str metrics_type(enum metrics_format format)
{
    return format == METRICS_OPENMETRICS ? MK_STR("application/openmetrics-text; version=1.0.0; charset=utf-8")
                                         : MK_STR("text/plain; version=0.0.4; charset=utf-8");
}

void metrics_begin(struct metrics *m, enum metrics_format format, struct mk_buf *out)
{
    *m = (struct metrics){.out = out, .format = format};
}

/* ── names ── */

static void add_name(struct mk_buf *out, struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        mk_buf_addc(out, mk_is_name_byte(name.p[i], "") ? name.p[i] : '_');
}

/* Writes a NUL at the end; an empty name if it is too long. */
static void make_name(const struct mk_counter_value *v, char *name)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, name, METRICS_NAME_BYTES);
    mk_buf_adds(&out, MK_STR("monkey_"));
    add_name(&out, v->plugin);
    if (v->plugin.len)
        mk_buf_addc(&out, '_');
    add_name(&out, v->name);
    if (v->kind == MK_COUNTER_HISTOGRAM)
        mk_buf_adds(&out, MK_STR("_seconds"));
    if (out.len == METRICS_NAME_BYTES)
        out.err = -ENOBUFS;
    name[out.err ? 0 : out.len] = '\0';
}

/* ── families ── */

static void write_help(struct metrics *m, struct mk_str help)
{
    while (help.len) {
        struct mk_str character = text_next(&help);
        if (character.p[0] == '\n')
            mk_buf_adds(m->out, MK_STR("\\n"));
        else if (character.p[0] == '\\' || (character.p[0] == '"' && m->format == METRICS_OPENMETRICS))
            mk_buf_addf(m->out, "\\%c", character.p[0]);
        else
            mk_buf_adds(m->out, character);
    }
}

static void begin_family(struct metrics *m, enum mk_counter_kind kind, struct mk_str help)
{
    const char *suffix = kind == MK_COUNTER_SUM && m->format == METRICS_TEXT ? "_total" : "";
    mk_buf_addf(m->out, "# HELP %s%s ", m->family, suffix);
    write_help(m, help);
    mk_buf_addf(m->out, "\n# TYPE %s%s %s\n", m->family, suffix, type_names[kind]);
}

void metrics_family(struct metrics *m, const char *name, enum mk_counter_kind kind, const char *help)
{
    snprintf(m->family, sizeof(m->family), "%s", name);
    begin_family(m, kind, mk_str_c(help));
}

/* ── samples ── */

static void write_labels(struct metrics *m, struct mk_str labels, const char *le)
{
    if (!labels.len && !le)
        return;
    mk_buf_addc(m->out, '{');
    text_write(m->out, labels);
    if (le)
        mk_buf_addf(m->out, "%sle=\"%s\"", labels.len ? "," : "", le);
    mk_buf_addc(m->out, '}');
}

static void write_integer(struct metrics *m, const char *suffix, struct mk_str labels, const char *le, int64_t value)
{
    mk_buf_addf(m->out, "%s%s", m->family, suffix);
    write_labels(m, labels, le);
    mk_buf_addf(m->out, " %lld\n", (long long)value);
}

void metrics_sample(struct metrics *m, enum mk_counter_kind kind, const char *labels, double value)
{
    mk_buf_addf(m->out, "%s%s", m->family, kind == MK_COUNTER_SUM ? "_total" : "");
    write_labels(m, mk_str_c(labels), NULL);
    mk_buf_addf(m->out, " %.15g\n", value);
}

/* The buckets of an octave become one. The last bucket has no end: it is +Inf. */
static void write_histogram(struct metrics *m, const struct mk_counter_value *v)
{
    char le[32];
    uint64_t n = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        n += v->buckets[i];
        if (i % OCTAVE != OCTAVE - 1 || i == MK_COUNTER_BUCKETS - 1)
            continue;
        snprintf(le, sizeof(le), "%.9g", (double)mk_counter_bucket_end_us(i) / 1e6);
        write_integer(m, "_bucket", v->labels, le, (int64_t)n);
    }
    write_integer(m, "_bucket", v->labels, "+Inf", (int64_t)n);
    mk_buf_addf(m->out, "%s_sum", m->family);
    write_labels(m, v->labels, NULL);
    mk_buf_addf(m->out, " %llu.%06u\n", (unsigned long long)(v->sum_us / 1000000), (unsigned)(v->sum_us % 1000000));
    write_integer(m, "_count", v->labels, NULL, (int64_t)n);
}

int metrics_counter(const struct mk_counter_value *value, void *metrics)
{
    struct metrics *m = metrics;
    char name[METRICS_NAME_BYTES];
    make_name(value, name);
    if (!*name)
        return 0;
    if (strcmp(name, m->family) != 0) {
        memcpy(m->family, name, strlen(name) + 1);
        begin_family(m, value->kind, value->help);
    }
    if (value->kind == MK_COUNTER_HISTOGRAM)
        write_histogram(m, value);
    else
        write_integer(m, value->kind == MK_COUNTER_SUM ? "_total" : "", value->labels, NULL, value->value);
    return m->out->err;
}

void metrics_end(struct metrics *m)
{
    if (m->format == METRICS_OPENMETRICS)
        mk_buf_adds(m->out, MK_STR("# EOF\n"));
}
