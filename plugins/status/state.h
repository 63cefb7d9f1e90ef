// SPDX-License-Identifier: Apache-2.0
#ifndef STATUS_STATE_H
#define STATUS_STATE_H

#include <monkey/base/buf.h>
#include <monkey/base/str.h>
#include <monkey/counters.h>
#include <monkey/kit/counter_table.h>
#include <monkey/kit/event_stream.h>
#include <monkey/kit/threads.h>
#include <monkey/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The busiest and the slowest paths of the last minutes, in memory of a fixed size: SpaceSaving (Metwally, Agrawal, El
 * Abbadi: "Efficient computation of frequent and top-k elements in data streams", 2005), once for each minute.
 *
 *     minute 27: busiest [path ...] slowest [path ...]    minute 28: ...    minute 29 (now): ...
 *
 * A path that is among more than 1/SKETCH_BUSIEST of a minute's requests is certainly found. The number of its requests
 * is never too small, and at most `excess` too large. A sketch belongs to one thread at a time; a copy of its bytes is
 * a sketch, too.
 */
enum {
    SKETCH_MINUTES = 5,
    SKETCH_BUSIEST = 64,
    SKETCH_SLOWEST = 16,
    SKETCH_PATH_BYTES = 200, /* longer paths are cut */
    SKETCH_TOP = 20,         /* rows of a list */
};

struct sketch_path {
    uint64_t requests, excess; /* since the path was taken into the list; those of the path that it has replaced */
    uint64_t total_us, max_us;
    uint32_t hash;
    uint16_t len;
    char path[SKETCH_PATH_BYTES];
};

struct sketch_minute {
    uint64_t minute; /* its number */
    uint32_t n_busiest, n_slowest;
    struct sketch_path busiest[SKETCH_BUSIEST], slowest[SKETCH_SLOWEST];
};

/* Initialized with zeros. */
struct sketch {
    struct sketch_minute minutes[SKETCH_MINUTES];
};

/* Adds a request. `minute` counts up; `path` without query. */
void sketch_add(struct sketch *sketch, uint64_t minute, struct mk_str path, uint64_t us);

struct sketch_lists {
    unsigned n_busiest, n_slowest;
    struct sketch_path busiest[SKETCH_TOP]; /* by requests, the most first */
    struct sketch_path slowest[SKETCH_TOP]; /* by max_us, the slowest first */
};

/*
 * Makes the lists of the SKETCH_MINUTES up to `minute` from the sketches of `n` threads (NULL: none).
 * Returns 0 or -ENOMEM.
 */
int sketch_merge(struct sketch *const *sketches, unsigned n, uint64_t minute, struct sketch_lists *ret);

/*
 * What this plugin counts in each thread: the same under all generations, so that figures last over a reload.
 */
struct thread {
    struct mk_thread base;
    struct mk_account *account; /* of the worker */
    _Atomic unsigned waiting;   /* questions that it has not answered */
    struct sketch *sketch;      /* of the thread itself, as `requests`; NULL: paths are not counted */
    uint64_t requests;
};

extern const struct mk_thread_type thread_type;

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* Counts paths from now on. Returns 0 or -ENOMEM. */
int thread_count_paths(struct thread *t);

/*
 * One snapshot of the server: asks all workers for their figures, then renders a text from them and from the counters.
 *
 *     snapshot_start ─► a call to each thread ─► replies, or SNAPSHOT_WAIT_MS ─► job: render ─► done
 *
 * A worker that does not answer in time is marked. One that has SNAPSHOT_WAITING_MAX questions already is not asked
 * again.
 */
enum { SNAPSHOT_WAIT_MS = 1000, SNAPSHOT_WAITING_MAX = 4, SNAPSHOT_TEXT_BYTES_MAX = 64 * 1024 * 1024 };

/* What a worker answers. */
struct snapshot_worker {
    unsigned index;
    bool up; /* false: it has not answered, and the other fields are 0 */
    uint64_t memory_bytes, memory_bytes_max, loop_turns, requests, connections;
    struct sketch *sketch; /* a copy; NULL: none */
};

struct snapshot;
/* Renders into `out`, in a disk thread. `workers` are in no particular order. */
typedef void (*snapshot_render_fn)(const struct snapshot_worker *workers, unsigned n, struct mk_buf *out, void *ctx);
/* Is called in the worker's thread. `text` is empty after an error, which `err` tells; the callee takes the buffer. */
typedef void (*snapshot_done_fn)(struct mk_buf text, void *ctx);

struct snapshot_callbacks {
    snapshot_render_fn render;
    snapshot_done_fn done;
    void (*release)(void *ctx); /* the snapshot is over, also if it was cancelled: `ctx` is not used any more */
};

/*
 * Begins a snapshot for `worker`, whose thread calls this and is `thread`. `paths`: with copies of the sketches.
 * Returns the snapshot, which is valid until `done` is called or snapshot_cancel(); NULL without memory: nothing is
 * called.
 */
struct snapshot *snapshot_start(struct mk_thread *thread, struct mk_worker *worker, bool paths,
                                const struct snapshot_callbacks *callbacks, void *ctx);

/* Ends the snapshot; `done` is not called any more. In its thread. `release` is called now, or when the job has ended.
 */
void snapshot_cancel(struct snapshot *snapshot);

/*
 * Sums of the server's counters, for the whole server and for each host. Knows their names.
 */
enum { TOTALS_HOSTS_MAX = 1024 };
enum totals_class { TOTALS_NONE, TOTALS_1XX, TOTALS_2XX, TOTALS_3XX, TOTALS_4XX, TOTALS_5XX, TOTALS_CLASSES };

extern const char *const totals_class_names[TOTALS_CLASSES];

struct totals_host {
    char name[MK_COUNTER_LABEL_VALUE_BYTES];
    uint16_t name_len;
    uint64_t requests, classes[TOTALS_CLASSES];
    uint64_t received_body_bytes, sent_body_bytes, responses_aborted;
    uint64_t sum_us, buckets[MK_COUNTER_BUCKETS];
};

struct totals {
    struct totals_host all; /* without a name */
    uint64_t accepted_connections, refused_connections, rejected_requests, timeouts, floods;
    int64_t connections;
    struct totals_host *hosts; /* by requests, the most first */
    unsigned n_hosts, room;
    bool omits_hosts; /* there are more of them, or no memory */
};

/* Adds one counter of the server to totals that were zeroed before the first one. totals_release() frees the hosts. */
void totals_add(struct totals *t, const struct mk_counter_value *v);
/* Sorts the hosts, when all counters were added. */
void totals_sort(struct totals *t);
void totals_release(struct totals *t);

/*
 * Tables of what other plugins count by labels, in the document: the backends of requests and the servers of groups.
 */
/* A table and its names in the document; constant. */
struct counted_type {
    struct mk_counter_table_type table;
    const char *keys[2]; /* of the labels */
    const char *name, *omits_name;
};

extern const struct counted_type counted_backends, counted_servers;

/* Writes the array, at most `max` rows (0: all), and whether it leaves some out. */
void counted_write(const struct counted_type *type, const struct mk_counter_table *all, unsigned max,
                   struct mk_buf *out);

/*
 * The counters that the document shows, read once: their sums, and those that are shown one by one, as JSON.
 */
/* As mk_counters_each(): tests have their own counters. */
typedef int (*collect_each_fn)(mk_counter_fn fn, void *ctx);

enum { COLLECT_BREAKDOWNS = 6 };

struct collected {
    struct totals totals;
    struct mk_counter_table backends, servers;
    struct mk_buf breakdowns[COLLECT_BREAKDOWNS]; /* members: counters of the server, by one label */
    struct mk_buf plugins;                        /* elements: counters of plugins */
    bool with_plugins;
};

/* The keys of the breakdowns. */
extern const char *const collect_breakdown_keys[COLLECT_BREAKDOWNS];

/*
 * Reads the counters, those of plugins only if that is wanted. The parts have up to `bytes_max` bytes each; their
 * sticky errors tell what is missing. Stays in place until collect_release().
 */
void collect_counters(struct collected *c, bool with_plugins, size_t bytes_max, collect_each_fn each);
void collect_release(struct collected *c);

/*
 * What the kernel says of this process, read from /proc. May block: for a job.
 */
/* A value that could not be read is -1. */
struct process {
    int64_t pid, threads;
    int64_t resident_bytes, virtual_bytes;
    int64_t open_fds, max_fds;
    double cpu_seconds;
    double start_time_seconds; /* since 1970 */
};

/*
 * Returns when this process was started, in seconds since 1970; -1: unknown. Two calls differ a little, because the
 * clocks that it is made of are read one after the other.
 */
double process_start_time(void);

/* Reads the other values. */
void process_read(struct process *ret);

/*
 * Rates of the last seconds, from samples that snapshots of the server leave behind. Nothing takes samples without
 * such snapshots: a rate is unknown then. Not for several threads at the same time.
 */
enum { HISTORY_SAMPLES = 128, HISTORY_INTERVAL_MS = 900 /* two samples are not closer */ };

struct history_sample {
    uint64_t ms; /* of a monotonic clock */
    uint64_t requests, errors, received_body_bytes, sent_body_bytes, accepted_connections;
};

/* Initialized with zeros. */
struct history {
    struct history_sample samples[HISTORY_SAMPLES]; /* a ring */
    unsigned n, next;
};

/* Makes a sample of totals. Errors are responses 5xx. */
struct history_sample history_sample(const struct totals *t, uint64_t now_ms);
/* Keeps the sample, unless the newest one is very young. */
void history_add(struct history *h, const struct history_sample *sample);
/*
 * Finds the sample from which a rate over `window_ms` up to `now` is computed: the youngest that is at least nine
 * tenths as old, and at most twice. NULL: there is none.
 */
const struct history_sample *history_find(const struct history *h, const struct history_sample *now,
                                          uint64_t window_ms);

/*
 * The section [STATUS].
 */
struct settings {
    bool enabled, paths;
    struct mk_str status_path, metrics_path; /* without a slash at the end */
    struct mk_conf_list listeners;
    int64_t streams_max;
};

extern const struct mk_conf_section section_status[];

/*
 * The states of the plugin: of the process, of a generation, and of a worker.
 */
enum { STATE_REPLIES_MAX = 16 /* at the same time, in the process */ };

struct state {
    struct mk_threads threads;
    double start_time;        /* of the process, since 1970 */
    _Atomic unsigned replies; /* now */
    unsigned streams;         /* now; changed atomically (<monkey/kit/event_stream.h>) */
    pthread_mutex_t lock;     /* of the history; held for moments only */
    struct history history;
};

struct state_generation {
    const struct settings *settings;
};

struct state_worker {
    struct state *state;
    struct state_generation *generation;
    uint32_t number; /* of the generation */
    struct mk_thread_worker own;
    /* of the live page (respond.c) */
    struct mk_event_streams streams;
    struct snapshot *snapshot; /* for the next event; NULL: none */
};

#endif
