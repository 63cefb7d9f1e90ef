// SPDX-License-Identifier: Apache-2.0
/*
 * A service: one shared object that runs for one virtual host. It lives as long as a generation uses it; a reload that
 * changes neither its file nor its section goes on with the same service.
 *
 *     service_open ─► service_run: duda_main() ─► service_worker_get (each worker) ─► requests
 *     service_put, the last one: duda_exit() ─► dlclose
 */
#ifndef DUDA_CORE_SERVICE_H
#define DUDA_CORE_SERVICE_H

#include <duda/service.h>
#include <monkey/plugin.h>

#include "watch.h"

#include <pthread.h>

struct crash_object;
struct router;

/* [WEB_SERVICE] */
struct service_conf {
    struct mk_str name, file, document_root, conf_dir, data_dir, log_dir;
    bool enabled, root;
};

/* One service in one worker's thread; it lives as long as a generation uses it there. */
struct service_worker {
    struct mk_list node; /* in service.workers */
    struct service *service;
    struct mk_loop *loop;
    unsigned refs;    /* generations; for the thread of the loop, as the next two */
    unsigned current; /* those that no newer one has replaced */
    struct mk_timer cut_timer;
    struct mk_list requests;
    struct watch_slot watch;
};

/* Identifies what a file holds. */
struct service_file {
    uint64_t bytes, sum;
};

enum service_state { SERVICE_LOADED, SERVICE_RUNS, SERVICE_FAILED };

struct service {
    struct mk_list node; /* in the list of all */
    unsigned refs;       /* hosts of generations; for the hooks of the configuration, which run one at a time */
    enum service_state state;
    struct mk_arena arena;
    struct mk_str host;       /* the first name of its host */
    struct service_conf conf; /* a copy */
    struct service_file file; /* what was loaded */
    void *handle;
    struct crash_object *object; /* may be NULL */
    const struct duda_service_info *info;
    struct duda_self self;
    int (*main)(void);
    void (*exit)(void); /* may be NULL */
    struct router *router;
    pthread_mutex_t lock; /* of `workers` */
    struct mk_list workers;
};

/*
 * Returns the service of a section with a reference: one that runs already for this host, section and file, or one that
 * is loaded but does not run yet. Returns NULL with a sentence in `error` if it cannot be loaded.
 */
struct service *service_open(struct mk_str host, const struct service_conf *conf, struct mk_buf *error);
/*
 * Returns the service that runs for this host and section, whatever the file is now, with a reference; NULL: none does.
 */
struct service *service_find(struct mk_str host, const struct service_conf *conf);
/* Calls duda_main() unless the service runs. Returns 0, or -1 with a sentence in `error`. */
int service_run(struct service *s, struct mk_buf *error);
/* Drops a reference; the last one ends the service. */
void service_put(struct service *s);

/*
 * Returns the service's part of the worker, which it makes if this is the first generation that uses it there; NULL
 * without memory. `index`: of the worker.
 */
struct service_worker *service_worker_get(struct service *s, struct mk_loop *loop, unsigned index);
/*
 * A generation that uses the service was replaced in this thread. If the newer ones do not use it, its requests are cut
 * after `timeout_ms`.
 */
void service_worker_retire(struct service_worker *w, uint32_t timeout_ms);
/* `retired`: service_worker_retire() was called for this generation. */
void service_worker_put(struct service_worker *w, bool retired);

#endif
