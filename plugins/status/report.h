// SPDX-License-Identifier: Apache-2.0
#ifndef STATUS_REPORT_H
#define STATUS_REPORT_H

#include "state.h"

#include <monkey/base/buf.h>
#include <monkey/counters.h>
#include <monkey/kit/command.h>

/*
 * Durations of a histogram as a member of the document.
 */
/* Writes number, mean, percentiles and buckets of MK_COUNTER_BUCKETS numbers, whose sum is `sum_us`. */
void latency_write(struct mk_buf *out, const char *key, uint64_t sum_us, const uint64_t *buckets);

/*
 * Text for formats that want UTF-8: bytes that are no UTF-8 become U+FFFD.
 */
/*
 * Cuts the next character (RFC 3629) off `rest`, which is not empty.
 * Returns its bytes, or U+FFFD for one byte that begins none.
 */
struct mk_str text_next(struct mk_str *rest);

/* Appends a text in UTF-8. */
void text_write(struct mk_buf *out, struct mk_str text);

/*
 * Writes metrics for Prometheus: its text format 0.0.4, or OpenMetrics 1.0. Pure.
 *
 *     metrics_begin ─► metrics_counter for each counter ─► metrics_family, metrics_sample ... ─► metrics_end
 */
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

/*
 * The status of the server as JSON. Its fields are described in docs/guide/status.md.
 */
/* What the document is made of, except counters. */
struct document {
    const struct snapshot_worker *workers;
    unsigned n_workers;
    struct process process;
    uint64_t generation;
    double now; /* since 1970, in seconds */
    struct history_sample sample;
    const struct history *history;
    const struct sketch_lists *paths; /* NULL: paths are not counted */
    unsigned hosts_max;               /* 0: all */
};

/* Writes the document with its counters. */
void document_write(const struct document *d, const struct collected *c, struct mk_buf *out);

/*
 * Renders what a snapshot has found: as metrics, or as a document. In a disk thread.
 */
enum { RENDER_EVENT_HOSTS_MAX = 32 };

void render_metrics(const struct state_worker *w, enum metrics_format format, const struct snapshot_worker *workers,
                    unsigned n, struct mk_buf *out);
/* `brief`: for the live page. */
void render_document(const struct state_worker *w, bool brief, const struct snapshot_worker *workers, unsigned n,
                     struct mk_buf *out);

/*
 * Responses that a snapshot makes: metrics and the document.
 */
enum respond_kind { RESPOND_TEXT, RESPOND_OPENMETRICS, RESPOND_JSON };

/* Begins the snapshot, and responds when it is over. Sends 503 if too many are under way. */
void respond_start(struct mk_request *req, struct state_worker *w, enum respond_kind kind);

/*
 * The events of the live page: the document, each second (<monkey/kit/event_stream.h>). While a worker has a stream it
 * snapshots of the server once a second, for all of its streams.
 */
/* Prepares the worker for streams; in its worker_start. */
void stream_init(struct state_worker *w);
/* Responds with a stream, or with 503 if `MaxPages` are open. */
void stream_start(struct mk_request *req, struct state_worker *w);

/*
 * What the plugin adds to `monkey shell`: the command `traffic`.
 */
/* Ends with a row without a name. */
extern const struct mk_command status_commands[];

#endif
