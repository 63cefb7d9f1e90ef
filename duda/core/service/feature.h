// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework: each has a row with the sizes of its slots and its hooks, all optional. Loading, the
 * start of workers, requests and the end walk the table (features.c), and know none of them.
 *
 * A slot is what a feature keeps of a service, or of a worker of it. It is zeroed, has its type only in the feature's
 * own header, FEATURE_SLOT(), and lasts as long as what it belongs to.
 *
 * Rows are in the order of shutdown. service_init, service_bind, service_complete, worker_init and worker_start are
 * called from the last row to the first, all others from the first to the last: what was begun last ends first.
 */
#ifndef DUDA_CORE_SERVICE_FEATURE_H
#define DUDA_CORE_SERVICE_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duda_request;
struct line;
struct mk_buf;
struct mk_request;
struct service;
struct service_worker;

enum feature_id {
    FEATURE_THREADS,
    FEATURE_LOG,
    FEATURE_COUNTS,
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
    FEATURE_PRE_LOOPS,
    FEATURE_PACKAGES, /* behind those that may call one */
    FEATURE_GLOBALS,
    FEATURE_INBOX,
    FEATURE_REQUESTS,
    FEATURE_SSE,
    FEATURE_RAW_HEAD,
    FEATURE_TASK_POOL, /* this and the next two behind the packages, which may have destructors */
    FEATURE_SIGNALS,
    FEATURE_PRIVATE_LOOPS,
    FEATURE_FOLDERS,
    FEATURE_ROUTER,
    FEATURE_MAP,
    FEATURE_CONSOLE,
    FEATURE_COMPAT,
    FEATURE_API_ERRORS,
    FEATURE_LAST_LINES,
    FEATURES,
};

struct feature {
    size_t service_bytes, worker_bytes; /* of its slots; 0: none */

    /*
     * A service is made, in an arena that lasts as long. Returns 0 or -errno; the other rows are called, too, and then
     * service_stop and service_release of all.
     */
    int (*service_init)(struct service *s);
    /* Its shared object was loaded; its objects are not bound yet. */
    void (*service_bind)(struct service *s);
    /* It takes the place of `before`, which runs. */
    void (*service_inherit)(struct service *s, struct service *before);
    /* duda_main() has returned 0. Returns 0, or -errno with a sentence in `error`; then no further row is called. */
    int (*service_complete)(struct service *s, struct mk_buf *error);
    /*
     * The service ends: asks its threads to return, and waits a second at most. Appends a clause to `left`, if some
     * still run and it is empty.
     */
    void (*threads_stop)(struct service *s, struct mk_buf *left);
    /* duda_exit() has returned; threads may still run. */
    void (*service_exit)(struct service *s);
    /* Returns whether all threads have ended, and joins them then. */
    bool (*threads_join)(struct service *s);
    /* Does not wait for the threads: `fn` is called once all have ended, by the last one or at once. */
    void (*threads_detach)(struct service *s, void (*fn)(struct service *s));
    /* The plugin has ended before the threads: what its code uses stays mapped. */
    void (*service_orphan)(struct service *s);
    /* It has ended, or could not be made: none of its code is called any more but what this calls. */
    void (*service_stop)(struct service *s);
    /* Frees what it has. Its code may have been unmapped. */
    void (*service_release)(struct service *s);

    /* A worker of it is made. Returns 0 or -errno; the other rows are called, too, and then worker_free of all. */
    int (*worker_init)(struct service_worker *w);
    /* The worker begins, in a call into the service. Returns 0, or -errno; then no further row is called. */
    int (*worker_start)(struct service_worker *w);
    /* A generation that uses it serves. */
    void (*worker_serve)(struct service_worker *w);
    /* Another thread has woken it, in a call into the service: inbox.h. */
    void (*worker_wake)(struct service_worker *w);
    /* No generation that serves has it any more. */
    void (*worker_retire)(struct service_worker *w);
    /* The service ends in it: the loop does not call it any more. */
    void (*worker_stop)(struct service_worker *w);
    /* Returns whether it must stay, because something runs for it in another thread. */
    bool (*worker_is_held)(const struct service_worker *w);
    /* It has ended, and stays for a while. */
    void (*worker_report_end)(struct service_worker *w);
    /* Its thread ends before worker_stop could be called in it: waits a second at most for what runs elsewhere. */
    void (*worker_wait)(struct service_worker *w);
    /* Frees what needs the service. In a call into it; no other callback of it runs, and nothing holds it. */
    void (*worker_release)(struct service_worker *w);
    /* Frees the rest. */
    void (*worker_free)(struct service_worker *w);

    /* A request ends that has used the feature: request_use(). */
    void (*request_end)(struct duda_request *dr);
    /* Its service was replaced: the next two only of requests that have used the feature. Returns whether it ends. */
    bool (*request_retire)(struct duda_request *dr);

    /* In the handler of a crash. Says what of the feature has run, `address` was at fault: appends ", in ...". */
    void (*crash_describe)(struct line *l, uintptr_t address);
    /* Returns the request for which code of the service has run; or NULL. */
    struct mk_request *(*crash_request)(void);
};

static_assert(FEATURES <= 32, "a request has a bit for each");

/* The rows of all, by their numbers (features.c). */
extern const struct feature features[FEATURES];

/* Each row, from the first to the last, or back. */
#define FEATURES_EACH(rows, row) \
    for (const struct feature *row = (rows), *row##_end = row + FEATURES; row < row##_end; row++)
#define FEATURES_EACH_BACK(rows, row) \
    for (const struct feature *row##_first = (rows), *row = row##_first + FEATURES; row-- > row##_first;)

/* Calls a hook of all rows that have it, from the first to the last. */
#define FEATURES_CALL(rows, hook, ...) \
    do { \
        FEATURES_EACH(rows, row) \
            if (row->hook) \
                row->hook(__VA_ARGS__); \
    } while (0)

/* Calls a hook that begins something of all rows that have it, from the last to the first. */
#define FEATURES_BEGIN(rows, hook, ...) \
    do { \
        FEATURES_EACH_BACK(rows, row) \
            if (row->hook) \
                row->hook(__VA_ARGS__); \
    } while (0)

/* The same of a hook that may fail: sets `result`, which is 0, to the first error. The other rows are called, too. */
#define FEATURES_INIT(result, rows, hook, ...) \
    FEATURES_EACH_BACK(rows, row) { \
        int failed = row->hook ? row->hook(__VA_ARGS__) : 0; \
        (result) = (result) ? (result) : failed; \
    }

/* Defines `name(owner)`, which returns the slot of a feature in a struct service or service_worker. */
#define FEATURE_SLOT(name, type, owner, id) \
    static inline type *name(const struct owner *of) \
    { \
        return of->slots[id]; \
    }

#endif
