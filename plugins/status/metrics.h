// SPDX-License-Identifier: Apache-2.0
/*
 * Writes metrics for Prometheus: its text format 0.0.4, or OpenMetrics 1.0. Pure.
 *
 *     metrics_begin ─► metrics_counter for each counter ─► metrics_family, metrics_sample ... ─► metrics_end
 */
#ifndef STATUS_METRICS_H
#define STATUS_METRICS_H

#include <monkey/buf.h>
#include <monkey/counters.h>

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };
enum { METRICS_NAME_BYTES = 200 };

struct metrics {
    struct mk_buf *out;
    enum metrics_format format;
    char family[METRICS_NAME_BYTES]; /* the current one */
};

/* Returns the Content-Type of a format; a literal. */
struct mk_str metrics_type(enum metrics_format format);

void metrics_begin(struct metrics *m, enum metrics_format format, struct mk_buf *out);
/*
 * Writes a counter as monkey_<name> or monkey_<plugin>_<name>, with the head of its family before the first one. An
 * mk_counter_fn for mk_counters_each(), whose context is the struct metrics. Returns 0, or the error of the buffer.
 */
int metrics_counter(const struct mk_counter_value *value, void *metrics);

/* Begins a family whose samples are not counters. `name` without "_total", which a sum gets. */
void metrics_family(struct metrics *m, const char *name, enum mk_counter_kind kind, const char *help);
/* Writes a sample of that family. `labels`: as written, or empty. */
void metrics_sample(struct metrics *m, enum mk_counter_kind kind, const char *labels, double value);

void metrics_end(struct metrics *m);

#endif
