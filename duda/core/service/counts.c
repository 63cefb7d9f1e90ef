// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the counters of a service (counts.h).
 */
#include "service/counts.h"

#include "crash/crash_object.h"
#include "log/last_lines.h"
#include "route/router.h"

#include <errno.h>

enum family {
    REQUESTS,
    FAILED,
    DURATION,
    ACTIVE,
    CRASHES,
    REQUEST_MEMORY,
    TASKS_QUEUED,
    TASKS_RUNNING,
    TASKS_DONE,
    TASKS_REFUSED,
};

/* Without pointers, which would have to be relocated. */
static const struct {
    char name[24], help[96];
    enum mk_counter_kind kind;
} families[] = {
    [REQUESTS] = {"requests", "responses of a service, by host, service, method, route and class of the status",
                  MK_COUNTER_SUM},
    [FAILED] = {"failed_requests", "requests without a complete response, by host, service, method, route and reason",
                MK_COUNTER_SUM},
    [DURATION] = {"request_duration",
                  "time from the call of a service to the head of its response, by host, service and route",
                  MK_COUNTER_HISTOGRAM},
    [ACTIVE] = {"active_requests", "requests of a service that have not ended, by host and service", MK_COUNTER_LEVEL},
    [CRASHES] = {"crashes", "crashes inside a service, by host and service", MK_COUNTER_SUM},
    [REQUEST_MEMORY] = {"request_memory_bytes", "memory of a service's structs of requests, by host and service",
                        MK_COUNTER_LEVEL},
    [TASKS_QUEUED] = {"tasks_queued", "tasks of a service that wait for a thread, by host and service",
                      MK_COUNTER_LEVEL},
    [TASKS_RUNNING] = {"tasks_running", "tasks of a service that run, by host and service", MK_COUNTER_LEVEL},
    [TASKS_DONE] = {"tasks_done", "tasks of a service that have run, by host and service", MK_COUNTER_SUM},
    [TASKS_REFUSED] = {"tasks_refused", "tasks of a service for which its queue was full, by host and service",
                       MK_COUNTER_SUM},
};

enum { LABEL_HOST, LABEL_SERVICE, LABEL_METHOD, LABEL_ROUTE, LABEL_LAST, LABELS };

static const char class_names[COUNTS_CLASSES][4] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
const char counts_failure_names[COUNTS_FAILURES][16] = {"timeout", "aborted", "client_closed"};

/* ── opening ── */

static void set_labels(struct mk_counter_label *labels, const struct service *s)
{
    labels[LABEL_HOST] = (struct mk_counter_label){"host", s->host};
    labels[LABEL_SERVICE] = (struct mk_counter_label){"service", s->conf.name};
}

static const struct mk_counter *open_counter(enum family family, const struct mk_counter_label *labels, unsigned n)
{
    struct mk_counter_info info = {"duda", families[family].name, families[family].help, families[family].kind};
    return mk_counter_hold(&info, labels, n);
}

static void open_service(struct service *s)
{
    struct mk_counter_label labels[LABELS];
    set_labels(labels, s);
    struct counts *counts = counts_of(s);
    counts->active = open_counter(ACTIVE, labels, LABEL_METHOD);
    counts->crashes = open_counter(CRASHES, labels, LABEL_METHOD);
    counts->request_memory = open_counter(REQUEST_MEMORY, labels, LABEL_METHOD);
    if (s->object)
        s->object->crashes = counts->crashes;
}

static void open_row(const struct service *s, struct route_counts *row)
{
    struct mk_counter_label labels[LABELS];
    set_labels(labels, s);
    labels[LABEL_METHOD] = (struct mk_counter_label){"method", row->methods};
    labels[LABEL_ROUTE] = (struct mk_counter_label){"route", row->pattern};
    for (unsigned i = 0; i < COUNTS_CLASSES; i++) {
        labels[LABEL_LAST] = (struct mk_counter_label){"status", mk_str_c(class_names[i])};
        row->classes[i] = open_counter(REQUESTS, labels, LABELS);
    }
    for (unsigned i = 0; i < COUNTS_FAILURES; i++) {
        labels[LABEL_LAST] = (struct mk_counter_label){"reason", mk_str_c(counts_failure_names[i])};
        row->failures[i] = open_counter(FAILED, labels, LABELS);
    }
}

/* After the other counters of all routes, which so take few pages: durations are counted for some services only. */
static void open_durations(struct service *s)
{
    struct mk_counter_label labels[LABELS];
    set_labels(labels, s);
    const struct counts *counts = counts_of(s);
    for (struct route_counts *row = counts->rows; row < counts->rows + counts->n; row++) {
        labels[LABEL_METHOD] = (struct mk_counter_label){"method", row->methods};
        labels[LABEL_ROUTE] = (struct mk_counter_label){"route", row->pattern};
        row->duration = open_counter(DURATION, labels, LABEL_LAST);
    }
}

static void add_row(struct counts *counts, struct mk_str methods, struct mk_str pattern)
{
    counts->rows[counts->n++] = (struct route_counts){.methods = methods, .pattern = pattern};
}

struct listing {
    struct service *service;
    unsigned n;
    bool failed; /* there was no memory */
};

static void count_route(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx)
{
    struct listing *listing = ctx;
    (void)route, (void)methods, (void)pattern;
    listing->n++;
}

/* A method of several interfaces is one route, which the first of them names. */
static void name_route(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx)
{
    struct listing *listing = ctx;
    struct service *s = listing->service;
    struct counts *counts = counts_of(s);
    if (route->row || listing->failed)
        return;
    if (counts->n >= COUNTS_ROUTES_MAX) {
        if (counts->n == COUNTS_ROUTES_MAX)
            add_row(counts, MK_STR(""), MK_STR("other"));
        route->row = COUNTS_ROUTES_MAX + 1;
        return;
    }
    methods = mk_arena_dup(&s->arena, methods);
    pattern = mk_arena_dup(&s->arena, pattern);
    listing->failed = !methods.p || !pattern.p;
    if (listing->failed)
        return;
    add_row(counts, methods, pattern);
    route->row = (uint16_t)counts->n;
}

static int make_rows(struct service *s)
{
    struct listing listing = {.service = s};
    struct counts *counts = counts_of(s);
    router_list(s, count_route, &listing);
    unsigned n = listing.n <= COUNTS_ROUTES_MAX ? listing.n + 1 : COUNTS_ROWS_MAX;
    counts->rows = mk_arena_alloc(&s->arena, n * sizeof(*counts->rows));
    if (!counts->rows)
        return -ENOMEM;
    router_list(s, name_route, &listing);
    if (listing.failed)
        return -ENOMEM;
    add_row(counts, MK_STR(""), MK_STR("none"));
    return 0;
}

int counts_make(struct service *s, struct mk_buf *error)
{
    int err = make_rows(s);
    if (err < 0)
        mk_buf_addf(error, "%s", strerror(-err));
    return err;
}

void counts_open(struct service *s)
{
    struct counts *counts = counts_of(s);
    pthread_mutex_lock(&s->lock);
    if (!counts->is_open) {
        open_service(s);
        for (unsigned i = 0; i < counts->n; i++)
            open_row(s, &counts->rows[i]);
        open_durations(s);
        counts->is_open = true;
    }
    pthread_mutex_unlock(&s->lock);
}

void counts_serve(struct service_worker *w)
{
    counts_open(w->service);
}

void counts_open_tasks(const struct service *s, struct task_counts *ret)
{
    struct mk_counter_label labels[LABELS];
    set_labels(labels, s);
    ret->queued = open_counter(TASKS_QUEUED, labels, LABEL_METHOD);
    ret->running = open_counter(TASKS_RUNNING, labels, LABEL_METHOD);
    ret->done = open_counter(TASKS_DONE, labels, LABEL_METHOD);
    ret->refused = open_counter(TASKS_REFUSED, labels, LABEL_METHOD);
}

/* ── closing ── */

static void put_counters(const struct mk_counter *const *counters, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        mk_counter_put(counters[i]);
}

static void put_row(const struct route_counts *row)
{
    put_counters(row->classes, COUNTS_CLASSES);
    put_counters(row->failures, COUNTS_FAILURES);
    put_counters(&row->duration, 1);
}

void counts_close_tasks(const struct task_counts *counts)
{
    const struct mk_counter *all[] = {counts->queued, counts->running, counts->done, counts->refused};
    put_counters(all, MK_COUNT_OF(all));
}

void counts_close(struct service *s)
{
    const struct counts *counts = counts_of(s);
    const struct mk_counter *own[] = {counts->active, counts->crashes, counts->request_memory};
    for (const struct package_counts *row = counts->packages; row; row = row->next)
        put_counters(&row->counter, 1);
    if (!counts->is_open)
        return;
    put_counters(own, MK_COUNT_OF(own));
    for (unsigned i = 0; i < counts->n; i++)
        put_row(&counts->rows[i]);
}

/* ── packages ── */

static struct package_counts *append_package(struct service *s, struct package_counts *row)
{
    struct package_counts **end = &counts_of(s)->packages;
    while (*end)
        end = &(*end)->next;
    return *end = row;
}

const struct mk_counter *counts_open_package(struct service *s, const char *package, const char *name, const char *help,
                                             bool is_level)
{
    struct mk_counter_info info = {"duda", name, help, is_level ? MK_COUNTER_LEVEL : MK_COUNTER_SUM};
    struct mk_counter_label labels[LABELS];
    struct package_counts *row = mk_arena_alloc(&s->arena, sizeof(*row));
    set_labels(labels, s);
    if (!row)
        return NULL;
    *row = (struct package_counts){.package = mk_arena_dup(&s->arena, mk_str_c(package)).p,
                                   .name = mk_arena_dup(&s->arena, mk_str_c(name)).p,
                                   .help = mk_arena_dup(&s->arena, mk_str_c(help)).p};
    if (!row->package || !row->name || !row->help)
        return NULL;
    row->counter = mk_counter_hold(&info, labels, LABEL_METHOD);
    return append_package(s, row)->counter;
}

/* ── what is counted ── */

const struct route_counts *counts_find(const struct service *s, const struct duda_route *route)
{
    const struct counts *counts = counts_of(s);
    assert(counts->n && (!route || (route->row && route->row <= counts->n)));
    return &counts->rows[route ? route->row - 1u : counts->n - 1];
}

bool counts_wants_time(const struct service *s, const struct mk_request *req)
{
    return last_lines_are_kept(s) || mk_request_began_us(req);
}
