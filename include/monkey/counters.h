// SPDX-License-Identifier: Apache-2.0
/*
 * Counters: what the server and its plugins count, for pages and programs that watch it.
 *
 *     static const struct mk_counter_info hits_info = {"cache", "hits", "requests answered from the cache"};
 *
 *     state->hits = mk_counter_open(&hits_info, labels, 1);    once, in a start of the plugin
 *     mk_counter_add(state->hits, mk_request_worker(req), 1);  then wherever it happens
 *
 * Each worker has its own memory for all counters, so that adding takes no lock and no atomic read-modify-write; a
 * reader adds up what the workers have. Values are those of the process: they last over reloads, over workers that
 * come and go, over an upgrade (the old and the new process count in the same memory) and over a crash that the
 * supervisor answers with a new process.
 *
 * A counter is identified by its plugin, name and labels; opening it again returns the same counter with its value.
 * Their number is bounded (MK_COUNTERS_MAX): labels come from the configuration, never from clients.
 */
#ifndef MONKEY_COUNTERS_H
#define MONKEY_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "status.h"

MK_C_BEGIN

struct mk_counter;
struct mk_worker;

enum mk_counter_kind {
    MK_COUNTER_SUM,       /* only grows: requests, bytes */
    MK_COUNTER_LEVEL,     /* goes up and down: open connections; what a process held that has crashed is taken off */
    MK_COUNTER_HISTOGRAM, /* of durations in microseconds */
    MK_COUNTER_VALUE,     /* is set, and stays until it is set again, by this process or another: a date */
};

/* What is the same for all counters of one name. */
struct mk_counter_info {
    const char *plugin; /* the plugin's name; NULL: the server */
    const char *name;   /* lower case and underscores, with the unit last: "requests", "sent_bytes", "duration" */
    const char *help;   /* one line, without a full stop */
    enum mk_counter_kind kind;
};

struct mk_counter_label {
    const char *name;    /* as the counter's name */
    struct mk_str value; /* any text without control characters, up to MK_COUNTER_LABEL_MAX bytes; the rest is cut */
};

enum {
    MK_COUNTERS_MAX = 16384,       /* with different labels counted apart */
    MK_COUNTER_FAMILIES_MAX = 512, /* with different plugins and names */
    MK_COUNTER_LABELS_MAX = 6,
    MK_COUNTER_LABEL_MAX = 255,
    MK_COUNTER_BUCKETS = 104, /* of a histogram: see mk_counter_bucket() */
};

/*
 * Returns the counter of this plugin, name and labels, and makes it if there is none. It is valid as long as the
 * process has a server. Copies all strings. Takes a lock: for the hooks of the configuration, not for requests.
 * Never returns NULL: if there are too many counters, or a name is invalid, it logs that once and returns a counter
 * that is not shown.
 */
MK_API const struct mk_counter *mk_counter_open(const struct mk_counter_info *info,
                                                const struct mk_counter_label *labels, unsigned n_labels);

enum { MK_COUNTER_ROW_LABELS_MAX = 3 };

/* A counter in the table of a plugin. */
struct mk_counter_row {
    const struct mk_counter_info *info;
    const char *labels[2 * MK_COUNTER_ROW_LABELS_MAX]; /* names, each with its value; NULL: no more */
};

/*
 * Opens the counters of a table and stores each at its place in `to`, a variable of the plugin. For its start,
 * any number of times: what has not changed is not written, since requests that have outlived a stop may be reading.
 */
MK_API void mk_counters_open(const struct mk_counter_row *rows, unsigned n, const struct mk_counter **to);

/*
 * As mk_counter_open(), for labels that a configuration names and a later one may not name: a backend, a service. The
 * counter is shown as long as anything holds it, and when it is held again it has all that it has counted. Once there
 * is no room for new counters, one with other labels takes the place of a hidden one of its name, so nothing may add to
 * it after its last mk_counter_put(). Call it in worker_serve at the latest: what a former process has left and this
 * one does not hold is hidden then. Counters of one plugin and name are all held, or none is.
 */
MK_API const struct mk_counter *mk_counter_hold(const struct mk_counter_info *info,
                                                const struct mk_counter_label *labels, unsigned n_labels);
/*
 * Ends a hold. The last one hides the counter, but not in a process that does not serve yet, nor in the former one of
 * an upgrade, whose successor may use it. Any thread; takes a lock.
 */
MK_API void mk_counter_put(const struct mk_counter *counter);

/* Sets a value. Any thread. Takes a lock of the process and of the memory. */
MK_API void mk_counter_set(const struct mk_counter *counter, int64_t value);

/*
 * Adds to a sum, or to a level (a negative number as well). `worker` is the worker in whose thread the caller runs.
 * NULL: another thread, which takes an atomic operation. Any thread; no system call.
 */
MK_API void mk_counter_add(const struct mk_counter *counter, const struct mk_worker *worker, int64_t n);
/* Counts one duration in a histogram; otherwise the same. */
MK_API void mk_counter_observe(const struct mk_counter *counter, const struct mk_worker *worker, uint64_t us);

/* ── for readers ── */

/* One counter as it was read. The strings and `buckets` are valid until the callback returns. */
struct mk_counter_value {
    struct mk_str plugin; /* empty: the server */
    struct mk_str name, help;
    struct mk_str labels; /* host="example.org",status="2xx", with \\, \" and \n escaped; may be empty */
    enum mk_counter_kind kind;
    int64_t value;           /* of a sum or level; of a histogram the number of durations */
    uint64_t sum_us;         /* of a histogram: all durations together */
    const uint64_t *buckets; /* of a histogram: MK_COUNTER_BUCKETS numbers, not cumulative */
};

/* Opens no counter. Returns 0 to continue; another value ends mk_counters_each(), which returns it. */
typedef int (*mk_counter_fn)(const struct mk_counter_value *value, void *ctx);
/*
 * Calls `fn` for all counters: those of one plugin and name one after the other, in the order in which they were
 * opened. Any thread, without a lock: workers continue counting meanwhile. With thousands of counters it takes
 * milliseconds: call it in a job (<monkey/loop.h>) then. Returns 0 or what `fn` returned.
 */
MK_API int mk_counters_each(mk_counter_fn fn, void *ctx);
enum { MK_COUNTER_LABEL_VALUE_BYTES = MK_COUNTER_LABEL_MAX + 1 };
/*
 * Returns the value of a label of mk_counter_value.labels without its escapes, in `storage` of
 * MK_COUNTER_LABEL_VALUE_BYTES; empty: there is no such label. Any thread.
 */
MK_API struct mk_str mk_counter_label_get(struct mk_str labels, struct mk_str name, char *storage);
/* Returns what a label shows of a value: its first MK_COUNTER_LABEL_MAX bytes. Any thread. */
static inline struct mk_str mk_counter_label_truncate(struct mk_str value)
{
    return mk_str_truncate(value, MK_COUNTER_LABEL_MAX);
}
/* Reads one counter; 0 for a histogram. Any thread. */
MK_API int64_t mk_counter_read(const struct mk_counter *counter);
/*
 * Reads one histogram: adds its buckets to `buckets`, MK_COUNTER_BUCKETS numbers, so that several can be summed up.
 * Returns the sum of its durations in microseconds. Any thread.
 */
MK_API uint64_t mk_counter_read_histogram(const struct mk_counter *counter, uint64_t *buckets);

/*
 * The buckets of a histogram: four for each power of two, so that a bound is at most a fifth above the one before it.
 * Returns the bucket of a duration.
 */
static inline unsigned mk_counter_bucket(uint64_t us)
{
    if (us < 4)
        return (unsigned)us;
    unsigned power = 63 - (unsigned)__builtin_clzll(us); /* at least 2 */
    unsigned bucket = (power - 1) * 4 + (unsigned)(us >> (power - 2) & 3);
    return bucket < MK_COUNTER_BUCKETS ? bucket : MK_COUNTER_BUCKETS - 1;
}
/* Returns the first duration after a bucket; UINT64_MAX for the last one. */
static inline uint64_t mk_counter_bucket_end_us(unsigned bucket)
{
    if (bucket >= MK_COUNTER_BUCKETS - 1)
        return UINT64_MAX;
    if (bucket < 4)
        return bucket + 1;
    return (uint64_t)(5 + bucket % 4) << (bucket / 4 - 1);
}
/*
 * Returns the duration that `share` (0 to 1) of the durations of a histogram do not exceed, by the end of its bucket;
 * 0 if there are none. For the last bucket, which has no end, its beginning.
 */
MK_API uint64_t mk_counter_quantile_us(const uint64_t *buckets, double share);

/* ── for programs that start another process (bin/monkey) ── */

/*
 * The memory of the counters, for a process that is to continue with them: an upgrade, or the next one after a crash.
 * mk_counters_fd() returns its descriptor, which stays the library's (close-on-exec), or -ENOENT: there is no server.
 * mk_counters_inherit() takes a descriptor of that kind, before the first server is made. Returns 0 or, with the
 * descriptor closed, -EINVAL (it is that of another version: counters begin at 0) or -errno. A descriptor that is not
 * such memory (memfd_create(2), open for seals) is left as it is: -EINVAL.
 */
MK_API int mk_counters_fd(void);
MK_API int mk_counters_inherit(int fd);

MK_C_END

#endif
