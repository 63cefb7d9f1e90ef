// SPDX-License-Identifier: Apache-2.0
/*
 * Packages of services, <duda/package.h>. One package is loaded once and has a reference of each service that uses it.
 */
#ifndef DUDA_CORE_SERVICE_PACKAGE_H
#define DUDA_CORE_SERVICE_PACKAGE_H

#include "service/service.h"

#include <duda/package.h>
#include <monkey/base/buf.h>

#include <stdbool.h>

struct package;
struct service;
struct service_worker;

/* One package of one service; in the service's arena. The one that was loaded last comes first. */
struct package_use {
    struct package_use *next;
    struct package *package;
    const struct duda_package *info;
    const char *name;
    bool started; /* service_stop() is to be called */
    void *state;  /* of service_start() */
};

/* One package in one worker of a service. */
struct package_worker {
    struct duda_package_worker base;
    struct service_worker *worker;
    const struct duda_package *info;
    bool started; /* worker_stop() is to be called */
};

/* Of a worker: in the order in which the packages were loaded. */
struct package_workers {
    struct package_worker *items;
    unsigned n;
};

/* Of a service. */
struct packages {
    struct package_use *first;
};

FEATURE_SLOT(packages_of, struct packages, service, FEATURE_PACKAGES)
FEATURE_SLOT(package_workers_of, struct package_workers, service_worker, FEATURE_PACKAGES)

extern const struct duda_api_package object_package;

/*
 * Calls duda_main() of a service. Returns its result; or -ENOENT with a sentence in `error`: a package that it needs
 * cannot be loaded, and duda_main() was left there.
 */
int package_run_main(struct service *s, struct mk_buf *error);

/* Hooks of features.c. Drops the references of a service, after its shared object was closed. */
void package_close_all(struct service *s);
/* Leaves them loaded, because threads of the service run on. */
void package_leave_all(struct service *s);

/* ── package_hooks.c ── */

/* Begins the use by the service. Returns 0, or -errno with a sentence in `error`. */
int package_start_service(struct package_use *use, struct mk_buf *error);
/* Ends the use of all packages. After duda_exit(). */
void package_stop_service(struct service *s);
/* Makes the states of a worker and calls worker_start(). Returns 0, or -errno, which is logged. */
int package_start_worker(struct service_worker *w);
/* Calls worker_stop() of the states that have started, and frees all, unless a task that was left may still use them.
 */
void package_stop_worker(struct service_worker *w);

void *package_service_state(const struct duda_package *package);
struct duda_package_worker *package_worker(const struct duda_package *package);
struct duda_package_worker *package_worker_of(const struct duda_package *package, duda_request_t *dr);
void package_call(struct duda_package_worker *state, void (*fn)(void *data), void *data);
void package_name_callback(struct duda_package_worker *state, void (*fn)(void));
const struct mk_counter *package_open_counter(const struct duda_package *package, const char *name, const char *help,
                                              bool is_level);
void package_count(struct duda_package_worker *state, const struct mk_counter *counter, int64_t n);
void package_log_api_error(const char *call, const char *reason);
void package_explain_crash(const char *sentence);
bool package_describe_call(const void *address, char *to, size_t size);

#endif
