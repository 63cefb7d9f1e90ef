// SPDX-License-Identifier: Apache-2.0
/*
 * A service: one shared object that runs for one virtual host. It lives as long as a generation uses it; a reload that
 * changes neither its file nor its section continues with the same service.
 *
 *     service_open ─► service_run: duda_main() ─► service_worker_get (each worker) ─► requests
 *     service_put, the last one: duda_exit() ─► dlclose
 */
#ifndef DUDA_CORE_SERVICE_SERVICE_H
#define DUDA_CORE_SERVICE_SERVICE_H

#include "common/api_error.h"
#include "common/slots.h"
#include "compat/old.h"
#include "crash/watch.h"
#include "dthread/dthread.h"
#include "event/descriptor.h"
#include "event/every.h"
#include "event/private_loop.h"
#include "event/signals.h"
#include "event/timer.h"
#include "log/log.h"
#include "request/sse_channels.h"
#include "service/counts.h"
#include "service/feature.h"
#include "service/folder.h"
#include "service/global.h"
#include "service/inbox.h"
#include "service/package.h"
#include "service/thread.h"
#include "session/session.h"

#include <duda/service.h>
#include <duda/task.h>
#include <monkey/plugin.h>

#include <pthread.h>

struct crash_object;
struct current;
struct duda_service_info;
struct last_lines;
struct router;
struct task_pool;
struct tasks;
struct ticket_gate;

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

/* A function that each worker calls before it serves (worker->pre_loop()). */
struct pre_loop {
    struct pre_loop *next;
    void (*fn)(void *data);
    void *data;
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
    unsigned calls;          /* callbacks of events on the stack */
    bool ended;              /* no generation is left; the service is not called any more. Under service.lock */
    struct mk_list requests; /* those that have not ended */
    struct mk_list slabs;    /* their memory: request_pool.c */
    struct api_errors api_errors;
    struct watch_slot watch;
    struct inbox inbox;
    struct sse_channels channels; /* changed under service.lock */
    struct descriptors descriptors;
    struct slots timers; /* struct service_timer */
    struct global_values values;
    struct package_workers packages;
    struct dthreads dthreads;
    struct tasks *tasks; /* NULL: it has had none */
    bool is_pending;     /* it has ended, but tasks of it run on. Under service.lock */
    bool has_lost_task;  /* one was left to its thread: what it uses stays in memory */
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
    void (*exit)(void); /* may be NULL */
    struct router *router;
    struct package_use *packages;
    struct old_service old;
    _Atomic(struct folders *) folders; /* NULL: no callback has set one */
    struct ticket_gate *gate;
    struct globals globals;
    struct pre_loop *pre_loops;
    struct thread_set threads;
    struct signals signals;
    struct everies everies;
    struct private_loops loops;
    struct sse_service sse;
    struct logs logs;
    struct counts counts;
    _Atomic(struct last_lines *) last_lines; /* its last messages; NULL: no console is enabled. Set once */
    struct mk_str console;                   /* the path of console->dashboard(); empty: it was not called */
    int64_t started_s;                       /* when duda_main() was called, in seconds since 1970 */
    size_t settings_bytes;                   /* of `arena`, after duda_main() */
    struct service_sessions sessions;
    struct duda_task_conf *task_conf;  /* of task->init(); or NULL */
    _Atomic(struct task_pool *) tasks; /* NULL: it has had no task. Set once */
    _Atomic unsigned orphan_threads;   /* threads and pool, which a service without a set waits for */
    pthread_mutex_t lock;              /* of `workers` */
    pthread_cond_t idle;               /* a worker has left the list */
    struct mk_list workers;
};

/* Returns an empty set, or NULL without memory. */
struct service_set *service_set_new(const struct mk_plugin *plugin, objects_bind_fn *bind,
                                    const struct feature *features);
/* Frees the services that were kept because of threads which have ended meanwhile. */
void service_set_reap(struct service_set *set);
/* Frees a set that no generation uses. Services with threads that run on stay in memory until these end. */
void service_set_free(struct service_set *set);

/*
 * Returns the service of a section with a reference: one that runs already for this host, section and file, or one that
 * is loaded but does not run yet. Returns NULL with a sentence in `error` if it cannot be loaded.
 */
struct service *service_open(struct service_set *set, const struct mk_host *host, struct mk_str site,
                             const struct service_conf *conf, struct mk_buf *error);
/*
 * Returns the service that runs for this host and section, whatever the file is now, with a reference; NULL: none does.
 */
struct service *service_find(struct service_set *set, struct mk_str site, const struct service_conf *conf);
/* Calls duda_main() unless the service runs. Returns 0, or -1 with a sentence in `error`. */
int service_run(struct service *s, struct mk_buf *error);
/* Keeps the last messages of the service from now on. In the hooks of the configuration. */
void service_keep_messages(struct service *s);
/* Adds a message of the service, if they are kept. Any thread. */
void service_add_message(struct service *s, const char *kind, struct mk_str text);
/* Drops a reference; the last one ends the service. */
void service_put(struct service *s);

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
