// SPDX-License-Identifier: Apache-2.0
/*
 * A service: one shared object that runs for one virtual host. It lives as long as a generation uses it; a reload that
 * changes neither its file nor its section continues with the same service (services.h). What features keep of it, and
 * of each worker, is in their slots (feature.h): this header knows none of them.
 */
#ifndef DUDA_CORE_SERVICE_SERVICE_H
#define DUDA_CORE_SERVICE_SERVICE_H

#include "common/watch_slot.h"
#include "service/feature.h"

#include <duda/service.h>
#include <monkey/plugin.h>

#include <pthread.h>

struct crash_object;
struct current;
struct duda_service_info;

/*
 * Fills the pointers of a shared object whose `info` was checked: of a service, or of a package (`s` is NULL), whose
 * `self` is NULL. Returns 0, or -ENOEXEC with a sentence in `error`.
 */
typedef int objects_bind_fn(struct service *s, const struct duda_service_info *info, struct mk_buf *error);

/*
 * The services and packages of the process: the state of the plugin. For the hooks of the configuration and
 * duda_main(), which run one at a time.
 */
struct service_set {
    const struct mk_plugin *plugin; /* whose state of an exchange its request is */
    objects_bind_fn *bind;          /* objects_bind() */
    const struct feature *features; /* the rows of all */
    struct mk_list services;        /* those that generations use; the newest is the last */
    struct mk_list abandoned;       /* they have ended, but have threads that run on */
    struct mk_list packages;
    struct mk_list session_stores;
};

/* [WEB_SERVICE] */
struct service_conf {
    struct mk_str name, file, document_root, conf_dir, data_dir, log_dir;
    struct mk_str packages_root; /* of [DUDA] */
    bool enabled, root;
    struct mk_str console; /* this and the next are of a generation: a service continues if they change */
    struct mk_networks console_allow;
};

/* One service in one worker's thread; it lives as long as a generation uses it there, or a callback of it runs. */
struct service_worker {
    struct mk_list node;      /* in service.workers */
    struct mk_worker *worker; /* of the newest generation that uses it; NULL: that has ended */
    struct service *service;
    struct mk_loop *loop;
    struct mk_account *account; /* of the worker */
    unsigned refs;              /* generations; for the thread of the loop, as the next two */
    unsigned current;           /* those that no newer one has replaced */
    uint32_t abort_ms;          /* ShutdownTimeout of the newest one */
    struct mk_timer abort_timer;
    unsigned index;
    pthread_t thread;
    size_t bytes;            /* with the slots */
    unsigned calls;          /* callbacks of events on the stack */
    bool ended;              /* no generation is left; the service is not called any more. Under service.lock */
    struct mk_list requests; /* those that have not ended */
    struct watch_slot watch;
    bool is_pending;    /* it has ended, but something runs for it. Under service.lock */
    bool has_lost_task; /* one was left to its thread: what it uses stays in memory */
    void *slots[FEATURES];
};

/* Identifies what a file holds. */
struct service_file {
    uint64_t bytes, sum;
};

enum service_state { SERVICE_LOADED, SERVICE_RUNS, SERVICE_FAILED };

struct service {
    struct mk_list node; /* in a list of `set` */
    struct service_set *set;
    const struct feature *features; /* of the set, which may end before */
    unsigned refs; /* hosts of generations; for the hooks of the configuration, which run one at a time */
    enum service_state state;
    struct mk_arena arena;
    struct mk_str host;       /* the first name of its host */
    struct mk_str site;       /* of struct duda_host */
    struct service_conf conf; /* a copy */
    struct service_file file; /* what was loaded */
    void *handle;
    struct crash_object *object; /* may be NULL */
    const struct duda_service_info *info;
    struct duda_self self;
    int (*main)(void);
    void (*exit)(void);              /* may be NULL */
    int64_t started_s;               /* when duda_main() was called, in seconds since 1970 */
    size_t bytes;                    /* with the slots */
    size_t settings_bytes;           /* of `arena`, after duda_main() */
    _Atomic unsigned orphan_threads; /* features with threads, which a service without a set waits for */
    pthread_mutex_t lock;            /* of `workers` */
    pthread_cond_t idle;             /* a worker has left the list */
    struct mk_list workers;
    void *slots[FEATURES];
};

/*
 * Allocate a zeroed struct with the slots of its features, of which nothing is initialized. Return NULL without memory.
 * service_free() and service_worker_free() free the memory alone.
 */
struct service *service_new(const struct feature *rows);
void service_free(struct service *s);
struct service_worker *service_worker_new(struct service *s);
void service_worker_free(struct service_worker *w);

/* ── service_worker.c ── */

/*
 * Returns the service's part of the worker, which it makes if this is the first generation that uses it there; NULL
 * without memory.
 */
struct service_worker *service_worker_get(struct service *s, struct mk_worker *worker);
/* Returns the service's part of the worker whose thread this is, without a reference; NULL if it has none. */
struct service_worker *service_worker_find(struct service *s, const struct mk_loop *loop);
/*
 * A generation that uses the service was replaced in this thread. If no newer one uses it, its requests are cut after
 * ShutdownTimeout.
 */
void service_worker_retire(struct service_worker *w);
/* The generation of `worker` is in use now: it has called service_worker_get(). */
void service_worker_serve(struct service_worker *w, struct mk_worker *worker);
/* `retired`: service_worker_retire() was called for this generation. */
void service_worker_put(struct service_worker *w, const struct mk_worker *worker, bool retired);

/*
 * Begin and end a call of an event into the service: it stays until then, even if the callback ends the last exchange
 * of the last generation that uses it. service_worker_leave() may free `w`.
 */
struct current service_worker_enter(struct service_worker *w);
void service_worker_leave(struct service_worker *w, struct current outer);
/* Ends a worker that no generation uses any more. Its thread ends, and no task of it is left. */
void service_worker_end_pending(struct service_worker *w);
/* Returns whether the loop is still there: in this thread, because a worker that stops late is freed by another one. */
static inline bool service_worker_has_loop(const struct service_worker *w)
{
    return pthread_equal(w->thread, pthread_self());
}

#endif
