// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static long long get_number(const struct object *o, const char *key)
{
    const char *value = object_get(o, key);
    return value ? atoll(value) : 0;
}

static void copy_text(char *to, size_t size, const struct object *o, const char *key)
{
    const char *value = object_get(o, key);
    snprintf(to, size, "%s", value ? value : "");
}

static bool take_status(struct object *o, const char *line, void *ctx)
{
    struct sample *s = ctx;
    (void)line;
    if (object_get(o, "begin"))
        return true;
    if (object_get(o, "warning")) {
        copy_text(s->warning, sizeof(s->warning), o, "warning");
        return true;
    }
    copy_text(s->version, sizeof(s->version), o, "version");
    copy_text(s->state, sizeof(s->state), o, "state");
    s->process = get_number(o, "process");
    s->uptime_s = get_number(o, "uptime_s");
    s->workers = get_number(o, "worker_threads");
    s->connections = get_number(o, "connections");
    s->under_way = get_number(o, "requests_under_way");
    s->memory_bytes = get_number(o, "workers_memory_bytes");
    return true;
}

/* ── counters ── */

/* Copies the value of a label of a="x",b="y" without its backslashes; an empty one if there is none. */
static void get_label(const char *labels, const char *name, char *to, size_t size)
{
    size_t len = strlen(name), n = 0;
    while (*labels && !(strncmp(labels, name, len) == 0 && labels[len] == '=')) {
        for (bool quoted = false; *labels && (quoted || *labels != ','); labels++) {
            quoted ^= *labels == '"';
            labels += *labels == '\\' && labels[1];
        }
        labels += *labels == ',';
    }
    for (labels += *labels ? len + 2 : 0; *labels && *labels != '"' && n + 1 < size; labels++) {
        labels += *labels == '\\' && labels[1];
        to[n++] = *labels;
    }
    to[n] = '\0';
}

/* Returns the index of the host, or `n_hosts`. */
static unsigned find_index(const struct sample *s, const char *host)
{
    unsigned i = 0;
    while (i < s->n_hosts && strcmp(s->hosts[i].name, host) != 0)
        i++;
    return i;
}

const struct sample_counts *sample_find(const struct sample *s, const char *host)
{
    unsigned i = find_index(s, host);
    return i < s->n_hosts ? &s->hosts[i].counts : NULL;
}

/* Returns the counts of the host of the labels, which is added if it is new; NULL: there is no room. */
static struct sample_counts *get_host(struct sample *s, const char *labels)
{
    struct sample_host *last = s->n_hosts ? &s->hosts[s->n_hosts - 1] : NULL;
    char name[SAMPLE_HOST_BYTES];
    get_label(labels, "host", name, sizeof(name));
    if (last && strcmp(last->name, name) == 0)
        return &last->counts;
    unsigned i = find_index(s, name);
    if (i < s->n_hosts)
        return &s->hosts[i].counts;
    if (s->n_hosts == SAMPLE_HOSTS_MAX)
        return NULL;
    struct sample_host *host = &s->hosts[s->n_hosts++];
    memset(host, 0, sizeof(*host));
    memcpy(host->name, name, sizeof(name));
    return &host->counts;
}

static void add_requests(struct sample *s, const struct object *o, const char *labels, uint64_t value)
{
    struct sample_counts *host = get_host(s, labels);
    char class[8];
    (void)o;
    get_label(labels, "status", class, sizeof(class));
    unsigned i = class[0] >= '1' && class[0] <= '5' ? (unsigned)(class[0] - '0') : 0;
    s->total.classes[i] += value;
    if (host)
        host->classes[i] += value;
}

/* Buckets are "END:NUMBER END:NUMBER ...", with the microseconds after the bucket, or inf. */
static void add_durations(struct sample *s, const struct object *o, const char *labels, uint64_t value)
{
    struct sample_counts *host = get_host(s, labels);
    const char *at = object_get(o, "_buckets");
    s->total.durations += value;
    if (host)
        host->durations += value;
    while (at && *at) {
        char *behind;
        uint64_t end = strncmp(at, "inf", 3) == 0 ? UINT64_MAX : strtoull(at, NULL, 10);
        at = strchr(at, ':');
        uint64_t n = at ? strtoull(at + 1, &behind, 10) : 0;
        unsigned i = mk_counter_bucket(end ? end - 1 : 0);
        s->total.buckets[i] += n;
        if (host)
            host->buckets[i] += n;
        at = at && *behind == ' ' ? behind + 1 : NULL;
    }
}

static void add_state(struct sample *s, const struct object *o, const char *labels, uint64_t value)
{
    (void)o;
    if (!value || s->n_states == SAMPLE_STATES_MAX)
        return;
    struct sample_state *state = &s->states[s->n_states++];
    get_label(labels, "state", state->name, sizeof(state->name));
    state->connections = (long long)value;
}

/* A counter that is read: by a function, or into the number at an offset. */
struct counter_row {
    const char *name;
    void (*add)(struct sample *s, const struct object *o, const char *labels, uint64_t value);
    size_t offset; /* in struct sample; `by_host`: in the counts of all, and in those of its host */
    bool by_host;
};

static void add_number(struct sample *s, const struct counter_row *row, const char *labels, uint64_t value)
{
    struct sample_counts *host = row->by_host ? get_host(s, labels) : NULL;
    char *all = row->by_host ? (char *)&s->total : (char *)s;
    *(uint64_t *)(void *)(all + row->offset) += value;
    if (host)
        *(uint64_t *)(void *)((char *)host + row->offset) += value;
}

static bool take_counter(struct object *o, const char *line, void *ctx)
{
    static const struct counter_row counters[] = {
        {"requests", .add = add_requests},
        {"request_duration", .add = add_durations},
        {"connections", .add = add_state},
        {"sent_body_bytes", .offset = offsetof(struct sample_counts, sent), .by_host = true},
        {"received_body_bytes", .offset = offsetof(struct sample_counts, received), .by_host = true},
        {"accepted_connections", .offset = offsetof(struct sample, accepted)},
        {"refused_connections", .offset = offsetof(struct sample, refused)},
        {"timeouts", .offset = offsetof(struct sample, timeouts)},
    };
    const char *name = object_get(o, "counter"), *labels = object_get(o, "labels");
    size_t i = 0;
    (void)line;
    while (name && i < MK_COUNT_OF(counters) && strcmp(counters[i].name, name) != 0)
        i++;
    if (!name || i == MK_COUNT_OF(counters))
        return true;
    uint64_t value = (uint64_t)get_number(o, "value");
    if (counters[i].add)
        counters[i].add(ctx, o, labels ? labels : "", value);
    else
        add_number(ctx, &counters[i], labels ? labels : "", value);
    return true;
}

/* ── asking ── */

static int ask_into_sample(struct link *l, const char *line, link_fn fn, struct sample *s)
{
    struct mk_buf error;
    mk_buf_init(&error, 4096);
    int result = link_ask(l, mk_str_c(line), -1, fn, s, &error);
    mk_buf_release(&error);
    return result;
}

int sample_take(struct link *l, struct sample *ret)
{
    /* what is read here, and little more: a server may have thousands of counters */
    static const char *const patterns[] = {"counters requests", "counters _body_bytes", "counters request_duration",
                                           "counters connections", "counters timeouts"};
    ret->n_hosts = ret->n_states = 0;
    ret->warning[0] = '\0';
    ret->accepted = ret->refused = ret->timeouts = 0;
    ret->total = (struct sample_counts){.sent = 0};
    int result = ask_into_sample(l, "status", take_status, ret);
    for (size_t i = 0; result > 0 && i < MK_COUNT_OF(patterns); i++)
        result = ask_into_sample(l, patterns[i], take_counter, ret);
    ret->at = screen_time();
    return result;
}

/* ── comparing ── */

static uint64_t get_growth(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

void sample_compare(const struct sample_counts *before, const struct sample_counts *now, double seconds,
                    struct sample_rates *ret)
{
    static const struct sample_counts nothing;
    uint64_t buckets[MK_COUNTER_BUCKETS];
    double share = seconds > 0 ? 1 / seconds : 0;
    before = before ? before : &nothing;
    *ret = (struct sample_rates){.timed = now->durations > 0};
    for (unsigned i = 0; i < SAMPLE_CLASSES; i++) {
        ret->classes[i] = (double)get_growth(before->classes[i], now->classes[i]) * share;
        ret->requests += ret->classes[i];
    }
    ret->sent = (double)get_growth(before->sent, now->sent) * share;
    ret->received = (double)get_growth(before->received, now->received) * share;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        buckets[i] = get_growth(before->buckets[i], now->buckets[i]);
    ret->p50_us = mk_counter_quantile_us(buckets, 0.5);
    ret->p99_us = mk_counter_quantile_us(buckets, 0.99);
}

/*
 * A second has up to ten samples. The server's workers list connections for a fiftieth of their time at most. A sample
 * counts half after 14 seconds, and not at all when less than a hundredth is left of it.
 */
static const double period_s = 0.1, times_idle = 50, age_factor = 0.995, weight_min = 0.01;

static void drop_row(struct paths *paths, unsigned i)
{
    paths->total -= paths->rows[i].weight;
    paths->rows[i] = paths->rows[--paths->n];
}

void paths_age(struct paths *paths)
{
    paths->total = 0;
    for (unsigned i = 0; i < paths->n; i++) {
        paths->rows[i].weight *= age_factor;
        paths->total += paths->rows[i].weight;
    }
    for (unsigned i = paths->n; i-- > 0;)
        if (paths->rows[i].weight < weight_min)
            drop_row(paths, i);
}

static unsigned find_least(const struct paths *paths)
{
    unsigned least = 0;
    for (unsigned i = 1; i < paths->n; i++)
        if (paths->rows[i].weight < paths->rows[least].weight)
            least = i;
    return least;
}

void paths_add(struct paths *paths, const char *method, const char *host, const char *path)
{
    struct paths_row row = {.weight = 1};
    snprintf(row.method, sizeof(row.method), "%s", method);
    snprintf(row.host, sizeof(row.host), "%s", host);
    snprintf(row.path, sizeof(row.path), "%s", path);
    paths->total++;
    for (unsigned i = 0; i < paths->n; i++) {
        struct paths_row *each = &paths->rows[i];
        if (strcmp(each->path, row.path) == 0 && strcmp(each->host, row.host) == 0 &&
            strcmp(each->method, row.method) == 0) {
            each->weight++;
            return;
        }
    }
    if (paths->n == PATHS_MAX)
        drop_row(paths, find_least(paths));
    paths->rows[paths->n++] = row;
}

static int compare_rows(const void *left, const void *right)
{
    const struct paths_row *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    int order = strcmp(a->path, b->path);
    return order ? order : strcmp(a->host, b->host);
}

void paths_sort(struct paths *paths)
{
    qsort(paths->rows, paths->n, sizeof(paths->rows[0]), compare_rows);
}

static bool take_connection(struct object *o, const char *line, void *ctx)
{
    const char *method = object_get(o, "method"), *host = object_get(o, "host"), *path = object_get(o, "path");
    (void)line;
    if (method && host && path)
        paths_add(ctx, method, host, path);
    return true;
}

int paths_sample(struct link *l, struct paths *paths)
{
    char line[64];
    struct mk_buf error;
    double start = screen_time();
    mk_buf_init(&error, 4096);
    paths_age(paths);
    snprintf(line, sizeof(line), "connections request=yes limit=%d", PATHS_CONNECTIONS_MAX);
    int result = link_ask(l, mk_str_c(line), -1, take_connection, paths, &error);
    mk_buf_release(&error);
    double took = screen_time() - start;
    paths->n_samples++;
    paths->next_at = start + (took * times_idle > period_s ? took * times_idle : period_s);
    return result;
}
