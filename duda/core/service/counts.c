// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the counters of a service, and counts its requests (counts.h).
 */
#include "service/counts.h"

#include "crash/crash_object.h"
#include "request/request.h"
#include "route/dispatch.h"
#include "service/service.h"

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
    return mk_counter_open(&info, labels, n);
}

static void open_service(struct service *s)
{
    struct mk_counter_label labels[LABELS];
    set_labels(labels, s);
    s->counts.active = open_counter(ACTIVE, labels, LABEL_METHOD);
    s->counts.crashes = open_counter(CRASHES, labels, LABEL_METHOD);
    s->counts.request_memory = open_counter(REQUEST_MEMORY, labels, LABEL_METHOD);
    if (s->object)
        s->object->crashes = s->counts.crashes;
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
    for (struct route_counts *row = s->counts.rows; row < s->counts.rows + s->counts.n; row++) {
        labels[LABEL_METHOD] = (struct mk_counter_label){"method", row->methods};
        labels[LABEL_ROUTE] = (struct mk_counter_label){"route", row->pattern};
        row->duration = open_counter(DURATION, labels, LABEL_LAST);
    }
}

static void add_row(struct service *s, struct mk_str methods, struct mk_str pattern)
{
    s->counts.rows[s->counts.n++] = (struct route_counts){.methods = methods, .pattern = pattern};
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
    if (route->row || listing->failed)
        return;
    if (s->counts.n >= COUNTS_ROUTES_MAX) {
        if (s->counts.n == COUNTS_ROUTES_MAX)
            add_row(s, MK_STR(""), MK_STR("other"));
        route->row = COUNTS_ROUTES_MAX + 1;
        return;
    }
    methods = mk_arena_dup(&s->arena, methods);
    pattern = mk_arena_dup(&s->arena, pattern);
    listing->failed = !methods.p || !pattern.p;
    if (listing->failed)
        return;
    add_row(s, methods, pattern);
    route->row = (uint16_t)s->counts.n;
}

int counts_make(struct service *s)
{
    struct listing listing = {.service = s};
    router_list(s->router, count_route, &listing);
    unsigned n = listing.n <= COUNTS_ROUTES_MAX ? listing.n + 1 : COUNTS_ROWS_MAX;
    s->counts.rows = mk_arena_alloc(&s->arena, n * sizeof(*s->counts.rows));
    if (!s->counts.rows)
        return -ENOMEM;
    router_list(s->router, name_route, &listing);
    if (listing.failed)
        return -ENOMEM;
    add_row(s, MK_STR(""), MK_STR("none"));
    return 0;
}

void counts_open(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->counts.is_open) {
        open_service(s);
        for (unsigned i = 0; i < s->counts.n; i++)
            open_row(s, &s->counts.rows[i]);
        open_durations(s);
        s->counts.is_open = true;
    }
    pthread_mutex_unlock(&s->lock);
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

/* ── packages ── */

static struct package_counts *append_package(struct service *s, struct package_counts *row)
{
    struct package_counts **end = &s->counts.packages;
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
                                   .help = mk_arena_dup(&s->arena, mk_str_c(help)).p,
                                   .counter = mk_counter_open(&info, labels, LABEL_METHOD)};
    if (!row->package || !row->name || !row->help)
        return NULL;
    return append_package(s, row)->counter;
}

/* ── counting ── */

const struct route_counts *counts_find(const struct service *s, const struct duda_route *route)
{
    assert(s->counts.n && (!route || (route->row && route->row <= s->counts.n)));
    return &s->counts.rows[route ? route->row - 1u : s->counts.n - 1];
}

bool counts_wants_time(const struct service *s, const struct mk_request *req)
{
    return atomic_load_explicit(&s->last_lines, memory_order_relaxed) || mk_request_began_us(req);
}

static void add_to_counter(const struct duda_request *dr, const struct mk_counter *counter, int64_t n)
{
    mk_counter_add(counter, mk_request_worker(dr->req), n);
}

void counts_begin(struct duda_request *dr)
{
    add_to_counter(dr, dr->worker->service->counts.active, 1);
}

void counts_respond(struct duda_request *dr)
{
    const struct dispatch *d = dr->dispatch;
    assert(d && d->counts);
    const struct mk_worker *worker = mk_request_worker(dr->req);
    unsigned class = (unsigned)mk_response_get_status(dr->req) / 100 - 1;
    if (class < COUNTS_CLASSES)
        mk_counter_add(d->counts->classes[class], worker, 1);
    if (d->began_us)
        mk_counter_observe(d->counts->duration, worker, mk_loop_now_us(mk_request_loop(dr->req)) - d->began_us);
}

/* Returns why a request has failed, or COUNTS_FAILURES. A tunnel may end in any way. */
static enum counts_failure find_failure(const struct duda_request *dr)
{
    if (dr->tunnel)
        return COUNTS_FAILURES;
    if (mk_request_aborted(dr->req))
        return dr->is_aborted ? COUNTS_ABORTED : COUNTS_CLIENT_CLOSED;
    return dr->dispatch->is_handled && !dr->answered ? COUNTS_TIMEOUT : COUNTS_FAILURES;
}

void counts_end(struct duda_request *dr)
{
    assert(dr->dispatch && dr->dispatch->counts);
    enum counts_failure failure = find_failure(dr);
    add_to_counter(dr, dr->worker->service->counts.active, -1);
    if (MK_UNLIKELY(failure != COUNTS_FAILURES))
        add_to_counter(dr, dr->dispatch->counts->failures[failure], 1);
}
