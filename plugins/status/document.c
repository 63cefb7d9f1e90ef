// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the status as JSON: one function for each member of the document.
 */
#include "report.h"
#include "state.h"

#include <monkey/base/str.h>
#include <monkey/kit/json.h>
#include <monkey/monkey.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct history_sample history_sample(const struct totals *t, uint64_t now_ms)
{
    return (struct history_sample){
        .ms = now_ms,
        .requests = t->all.requests,
        .errors = t->all.classes[TOTALS_5XX],
        .received_body_bytes = t->all.received_body_bytes,
        .sent_body_bytes = t->all.sent_body_bytes,
        .accepted_connections = t->accepted_connections,
    };
}

/* Returns the sample that is `i` samples older than the newest one. */
static const struct history_sample *get_sample(const struct history *h, unsigned i)
{
    return &h->samples[(h->next + HISTORY_SAMPLES - 1 - i) % HISTORY_SAMPLES];
}

void history_add(struct history *h, const struct history_sample *sample)
{
    if (h->n && sample->ms < get_sample(h, 0)->ms + HISTORY_INTERVAL_MS)
        return;
    h->samples[h->next] = *sample;
    h->next = (h->next + 1) % HISTORY_SAMPLES;
    h->n += h->n < HISTORY_SAMPLES;
}

const struct history_sample *history_find(const struct history *h, const struct history_sample *now, uint64_t window_ms)
{
    for (unsigned i = 0; i < h->n; i++) {
        const struct history_sample *sample = get_sample(h, i);
        uint64_t age = now->ms - sample->ms;
        if (sample->ms <= now->ms && age >= window_ms - window_ms / 10)
            return age <= 2 * window_ms ? sample : NULL;
    }
    return NULL;
}

enum { FILE_BYTES = 2048 };

/* Reads the beginning of a file, with a NUL after it. Returns false if it cannot be read. */
static bool read_file(const char *path, char *to, size_t size)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got = 1; n < size - 1 && got > 0; n += got > 0 ? (size_t)got : 0)
        got = read(fd, to + n, size - 1 - n);
    close(fd);
    to[n] = '\0';
    return n > 0;
}

/* Returns the second since 1970 at which the machine was started. */
static double read_boot_time(void)
{
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
}

/* The fields of proc(5), by their numbers there. */
enum { UTIME = 14, STIME = 15, NUM_THREADS = 20, STARTTIME = 22, VSIZE = 23, RSS = 24, FIELDS };

/* Reads those from the fourth one on: the second may have spaces, and the third is a letter. */
static bool read_stat(long long *fields)
{
    char text[FILE_BYTES];
    char *at = read_file("/proc/self/stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    if (!at || at[1] != ' ' || !at[2])
        return false;
    at += 3;
    for (int i = 4; i < FIELDS; i++)
        fields[i] = strtoll(at, &at, 10);
    return true;
}

static double get_ticks_per_second(void)
{
    return (double)sysconf(_SC_CLK_TCK);
}

double process_start_time(void)
{
    long long fields[FIELDS];
    return read_stat(fields) ? read_boot_time() + (double)fields[STARTTIME] / get_ticks_per_second() : -1;
}

static int64_t count_fds(void)
{
    int64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return -1;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* without that of `dir` */
}

void process_read(struct process *ret)
{
    struct rlimit limit;
    long long fields[FIELDS];
    bool known = read_stat(fields);
    ret->pid = getpid();
    ret->threads = known ? fields[NUM_THREADS] : -1;
    ret->virtual_bytes = known ? fields[VSIZE] : -1;
    ret->resident_bytes = known ? fields[RSS] * sysconf(_SC_PAGESIZE) : -1;
    ret->cpu_seconds = known ? (double)(fields[UTIME] + fields[STIME]) / get_ticks_per_second() : -1;
    ret->open_fds = count_fds();
    ret->max_fds =
        getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (int64_t)limit.rlim_cur : -1;
}

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
        mk_json_number(out, "connections", (int64_t)w->connections);
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
    for (unsigned i = 0; i < COLLECT_BREAKDOWNS; i++)
        add_part(out, collect_breakdown_keys[i], "{}", &c->breakdowns[i]);
    add_path_lists(out, d->paths);
    counted_write(&counted_backends, &c->backends, d->hosts_max, out);
    counted_write(&counted_servers, &c->servers, d->hosts_max, out);
    if (c->with_plugins)
        add_part(out, "plugins", "[]", &c->plugins);
    mk_json_close(out, '}');
}
