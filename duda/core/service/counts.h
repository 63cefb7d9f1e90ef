// SPDX-License-Identifier: Apache-2.0
/*
 * What is counted of a service (<monkey/counters.h>), by the names of its host, itself and its routes: so counts last
 * over reloads and new versions. Packages have their own counters.
 *
 *     duda_main() is over: counts_make() ─► the first worker serves: counts_open() ─► requests
 */
#ifndef DUDA_CORE_SERVICE_COUNTS_H
#define DUDA_CORE_SERVICE_COUNTS_H

#include "service/service.h"

#include <monkey/counters.h>

#include <stdint.h>

struct duda_route;
struct mk_request;
struct service;

/* Further routes of a service have one more row together, "other", and requests without a route another one, "none". */
enum { COUNTS_ROUTES_MAX = 64, COUNTS_ROWS_MAX = COUNTS_ROUTES_MAX + 2, COUNTS_CLASSES = 5 };

/* Why a request has no complete response of the service. */
enum counts_failure {
    COUNTS_TIMEOUT,       /* the server has answered in its place */
    COUNTS_ABORTED,       /* the service, or a reload that has replaced it, has ended the response early */
    COUNTS_CLIENT_CLOSED, /* the connection or stream has ended before */
    COUNTS_FAILURES,
};

extern const char counts_failure_names[COUNTS_FAILURES][16];

struct route_counts {
    struct mk_str methods, pattern; /* "GET, POST", or "ANY"; both are "" and the row's name for "other" and "none" */
    const struct mk_counter *classes[COUNTS_CLASSES]; /* responses, by class of the status: 1xx to 5xx */
    const struct mk_counter *failures[COUNTS_FAILURES];
    const struct mk_counter *duration; /* from the call of the service to the head of its response */
};

/* Of the tasks of a service; NULL: it has had none. */
struct task_counts {
    const struct mk_counter *queued, *running; /* levels */
    const struct mk_counter *done, *refused;   /* refused: the queue was full */
};

/* A counter of a package. */
struct package_counts {
    struct package_counts *next; /* in the order in which they were opened */
    const char *package, *name, *help;
    const struct mk_counter *counter;
};

/* Of a service; constant after duda_main() and counts_open(). In its arena. */
struct counts {
    bool is_open;              /* under service.lock */
    struct route_counts *rows; /* the routes in the order of registration, "other" if there are too many, "none" */
    unsigned n;
    const struct mk_counter *active; /* requests that have not ended */
    const struct mk_counter *crashes;
    const struct mk_counter *request_memory; /* of its requests' structs, which are kept */
    struct package_counts *packages;
};

FEATURE_SLOT(counts_of, struct counts, service, FEATURE_COUNTS)

/* Names the rows of its routes; after duda_main(). Returns 0, or -ENOMEM with a sentence in `error`. */
int counts_make(struct service *s, struct mk_buf *error);
/*
 * Opens the counters of a service and its routes when it begins to serve: a configuration that is refused has none. Any
 * thread.
 */
void counts_open(struct service *s);
/* The service is freed: counters that no other one of its names holds are hidden. */
void counts_close(struct service *s);
/* The same for the worker that serves: the hook of features.c. */
void counts_serve(struct service_worker *w);
/* Opens those of its tasks, for the first one. Any thread. */
void counts_open_tasks(const struct service *s, struct task_counts *ret);
/* When the service is freed. */
void counts_close_tasks(const struct task_counts *counts);
/* Opens a counter of a package for a service, in its service_start(). Returns NULL without memory. */
const struct mk_counter *counts_open_package(struct service *s, const char *package, const char *name, const char *help,
                                             bool is_level);

/* Returns the row of a route, or that of requests without one (NULL). */
const struct route_counts *counts_find(const struct service *s, const struct duda_route *route);

/* Returns whether the durations of requests are wanted: the service has a console, or a plugin wants times. */
bool counts_wants_time(const struct service *s, const struct mk_request *req);

#endif
