// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework: each has a row of hooks for the ends of requests and workers, all optional, which are
 * called in the order of the rows. The table is handed to service_set_new().
 */
#ifndef DUDA_CORE_SERVICE_FEATURE_H
#define DUDA_CORE_SERVICE_FEATURE_H

struct duda_request;
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
    FEATURE_PACKAGES,
    FEATURE_SESSION,
    FEATURE_SSE,
    FEATURE_RAW_HEAD,
    FEATURES,
};

struct feature {
    /* A request ends that has used the feature: request_use(). */
    void (*request_end)(struct duda_request *dr);
    /* The service ends in a worker: the loop does not call it any more. */
    void (*worker_stop)(struct service_worker *w);
    /* Frees what the worker has. In a call into the service; no other callback of it runs, and no task holds it. */
    void (*worker_release)(struct service_worker *w);
};

#endif
