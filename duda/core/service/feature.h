// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework: each has a row of hooks for services, their workers and requests, all optional, which
 * are called in the order of the rows. The table is handed to service_set_new(). What a feature keeps is a member of
 * struct service, service_worker or duda_request, zeroed before the hooks that initialize it.
 */
#ifndef DUDA_CORE_SERVICE_FEATURE_H
#define DUDA_CORE_SERVICE_FEATURE_H

struct duda_request;
struct service;
struct service_worker;

enum feature_id {
    FEATURE_EVERY,
    FEATURE_TUNNEL,
    FEATURE_CALLBACKS, /* on_leave(), on_done() */
    FEATURE_GC,
    FEATURE_DTHREADS,
    FEATURE_DESCRIPTORS,
    FEATURE_TIMERS,
    FEATURE_TASKS,
    FEATURE_TICKETS,
    FEATURE_SESSION,
    FEATURE_PACKAGES, /* behind those that may call one */
    FEATURE_SSE,
    FEATURE_RAW_HEAD,
    FEATURE_THREADS,
    FEATURE_TASK_POOL, /* behind the packages, which may have destructors */
    FEATURE_SIGNALS,
    FEATURE_PRIVATE_LOOPS,
    FEATURE_FOLDERS,
    FEATURES,
};

struct feature {
    /* A request ends that has used the feature: request_use(). */
    void (*request_end)(struct duda_request *dr);
    /* A service is made. Returns 0 or -errno; the other rows are called, too, and then the next two hooks of all. */
    int (*service_init)(struct service *s);
    /* It has ended, or could not be made: none of its code is called any more but what this calls. */
    void (*service_stop)(struct service *s);
    /* Frees what it has. Its code may have been unmapped. */
    void (*service_release)(struct service *s);
    /* The service ends in a worker: the loop does not call it any more. */
    void (*worker_stop)(struct service_worker *w);
    /* Frees what the worker has. In a call into the service; no other callback of it runs, and no task holds it. */
    void (*worker_release)(struct service_worker *w);
};

/* Calls a hook of all rows that have it. */
#define FEATURES_CALL(rows, hook, arg) \
    do { \
        for (const struct feature *row = (rows), *end = row + FEATURES; row < end; row++) \
            if (row->hook) \
                row->hook(arg); \
    } while (0)

#endif
