// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <monkey/monkey.h>

#include <stdio.h>
#include <time.h>

static struct process read_process(const struct state_worker *w)
{
    struct process p;
    process_read(&p);
    p.start_time_seconds = w->state->start_time;
    return p;
}

/* ── metrics ── */

/* A value that is not a counter. */
struct value {
    const char *name;
    enum mk_counter_kind kind;
    const char *help;
    size_t offset; /* of the number in its struct */
};

/* Numbers of struct process that are int64_t; -1: unknown. The names are those of Prometheus' client libraries. */
static const struct value process_values[] = {
    {"process_threads", MK_COUNTER_LEVEL, "threads of the process", offsetof(struct process, threads)},
    {"process_resident_memory_bytes", MK_COUNTER_LEVEL, "memory of the process that is in RAM",
     offsetof(struct process, resident_bytes)},
    {"process_virtual_memory_bytes", MK_COUNTER_LEVEL, "address space of the process",
     offsetof(struct process, virtual_bytes)},
    {"process_open_fds", MK_COUNTER_LEVEL, "open descriptors", offsetof(struct process, open_fds)},
    {"process_max_fds", MK_COUNTER_LEVEL, "limit of open descriptors", offsetof(struct process, max_fds)},
};

static void add_one(struct metrics *m, const char *name, enum mk_counter_kind kind, const char *help,
                    const char *labels, double value)
{
    metrics_family(m, name, kind, help);
    metrics_sample(m, kind, labels, value);
}

static void add_process(struct metrics *m, const struct process *p)
{
    for (unsigned i = 0; i < MK_COUNT_OF(process_values); i++) {
        const struct value *v = &process_values[i];
        int64_t number = *(const int64_t *)(const void *)((const char *)p + v->offset);
        if (number >= 0)
            add_one(m, v->name, v->kind, v->help, NULL, (double)number);
    }
    if (p->cpu_seconds >= 0)
        add_one(m, "process_cpu_seconds", MK_COUNTER_SUM, "CPU time of the process", NULL, p->cpu_seconds);
    if (p->start_time_seconds >= 0)
        add_one(m, "process_start_time_seconds", MK_COUNTER_LEVEL, "start of the process, in seconds since 1970", NULL,
                p->start_time_seconds);
}

/* Numbers of struct snapshot_worker that are uint64_t. */
static const struct value worker_values[] = {
    {"monkey_worker_memory_bytes", MK_COUNTER_LEVEL, "memory of the account of the worker",
     offsetof(struct snapshot_worker, memory_bytes)},
    {"monkey_worker_memory_limit_bytes", MK_COUNTER_LEVEL, "MemoryLimit of the worker, 0: none",
     offsetof(struct snapshot_worker, memory_bytes_max)},
    {"monkey_worker_loop_turns", MK_COUNTER_SUM, "turns of the event loop of the worker",
     offsetof(struct snapshot_worker, loop_turns)},
    {"monkey_worker_connections", MK_COUNTER_LEVEL, "open connections of the worker",
     offsetof(struct snapshot_worker, connections)},
    {"monkey_worker_requests", MK_COUNTER_SUM, "requests that the worker has ended",
     offsetof(struct snapshot_worker, requests)},
};

static void add_worker(struct metrics *m, enum mk_counter_kind kind, const struct snapshot_worker *w, double value)
{
    char labels[32];
    snprintf(labels, sizeof(labels), "worker=\"%u\"", w->index);
    metrics_sample(m, kind, labels, value);
}

static void add_workers(struct metrics *m, const struct snapshot_worker *workers, unsigned n)
{
    metrics_family(m, "monkey_worker_up", MK_COUNTER_LEVEL, "whether the worker answers: 1 or 0");
    for (unsigned k = 0; k < n; k++)
        add_worker(m, MK_COUNTER_LEVEL, &workers[k], workers[k].up);
    for (unsigned i = 0; i < MK_COUNT_OF(worker_values); i++) {
        const struct value *v = &worker_values[i];
        metrics_family(m, v->name, v->kind, v->help);
        for (unsigned k = 0; k < n; k++)
            if (workers[k].up)
                add_worker(m, v->kind, &workers[k],
                           (double)*(const uint64_t *)(const void *)((const char *)&workers[k] + v->offset));
    }
}

void render_metrics(const struct state_worker *w, enum metrics_format format, const struct snapshot_worker *workers,
                    unsigned n, struct mk_buf *out)
{
    struct metrics m;
    struct process p = read_process(w);
    char version[64];
    snprintf(version, sizeof(version), "version=\"%s\"", mk_version());
    metrics_begin(&m, format, out);
    mk_counters_each(metrics_counter, &m);
    add_one(&m, "monkey_build_info", MK_COUNTER_LEVEL, "always 1, with the version of the server", version, 1);
    add_one(&m, "monkey_generation", MK_COUNTER_LEVEL, "number of the configuration in use, counted from 1", NULL,
            (double)w->number);
    add_workers(&m, workers, n);
    add_process(&m, &p);
    metrics_end(&m);
}

/* ── the document ── */

static uint64_t get_milliseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_nsec / 1000000;
}

/* Keeps a sample of the totals. Returns the history with it. */
static struct history add_sample(struct state *state, const struct history_sample *sample)
{
    pthread_mutex_lock(&state->lock);
    history_add(&state->history, sample);
    struct history copy = state->history;
    pthread_mutex_unlock(&state->lock);
    return copy;
}

/* Returns false if no worker counts paths, or without memory. */
static bool merge_paths(const struct snapshot_worker *workers, unsigned n, uint64_t minute, struct sketch_lists *ret)
{
    size_t bytes = n * sizeof(struct sketch *);
    struct sketch **sketches = n ? mk_account_alloc(NULL, bytes) : NULL;
    bool some = false;
    if (!sketches)
        return false;
    for (unsigned i = 0; i < n; i++) {
        sketches[i] = workers[i].sketch;
        some |= sketches[i] != NULL;
    }
    some = some && sketch_merge(sketches, n, minute, ret) == 0;
    mk_account_free(NULL, sketches, bytes);
    return some;
}

void render_document(const struct state_worker *w, bool brief, const struct snapshot_worker *workers, unsigned n,
                     struct mk_buf *out)
{
    struct timespec wall, monotonic;
    struct collected counters;
    struct sketch_lists lists;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    collect_counters(&counters, !brief, SNAPSHOT_TEXT_BYTES_MAX, mk_counters_each);
    struct document d = {.workers = workers,
                         .n_workers = n,
                         .process = read_process(w),
                         .generation = w->number,
                         .now = (double)get_milliseconds(&wall) / 1e3,
                         .sample = history_sample(&counters.totals, get_milliseconds(&monotonic)),
                         .hosts_max = brief ? RENDER_EVENT_HOSTS_MAX : 0};
    struct history history = add_sample(w->state, &d.sample);
    d.history = &history;
    if (w->generation->settings->paths && merge_paths(workers, n, (uint64_t)wall.tv_sec / 60, &lists))
        d.paths = &lists;
    document_write(&d, &counters, out);
    collect_release(&counters);
}
