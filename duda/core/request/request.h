// SPDX-License-Identifier: Apache-2.0
/*
 * A request of a service, from the call of its handler until the exchange ends.
 */
#ifndef DUDA_CORE_REQUEST_REQUEST_H
#define DUDA_CORE_REQUEST_REQUEST_H

#include "common/current.h"

#include <duda/compat/request.h>
#include <duda/request.h>
#include <duda/response.h>

struct dispatch;
struct heartbeat;
struct raw_head;
struct request_slab;
struct sse_subscription;
struct task;
struct tunnel;

/* ── the body of its response: output.h ── */

struct output_part;

enum output_state { OUTPUT_HELD, OUTPUT_SENDING, OUTPUT_ENDING, OUTPUT_ENDED };

/* A value of `length` that is no length. */
enum { OUTPUT_LENGTH_OMITTED = -1 };

struct output {
    enum output_state state;
    bool blocked;        /* the server has enough until continue_output() */
    bool has_parts;      /* something was added */
    bool is_unknown;     /* a generator was added: `bytes` is not the length */
    bool is_bodyless;    /* the server will drop the body (HEAD, 204 ...), which is known when it begins to be sent */
    bool is_fixed;       /* `length` is set */
    bool is_incomplete;  /* there was no memory for a part */
    int64_t length;      /* with `is_fixed`: Content-Length, or OUTPUT_LENGTH_OMITTED */
    uint64_t bytes;      /* of all parts that were added */
    unsigned parts_n;    /* that were allocated in the arena */
    unsigned text_bytes; /* of text in the arena */
    struct output_part *first, *last, *free;
};

/* ── the request ── */

/* Strings that are copied when they are first asked for. */
enum request_string {
    REQUEST_METHOD,
    REQUEST_TARGET,
    REQUEST_QUERY,
    REQUEST_HOST,
    REQUEST_CLIENT,
    REQUEST_STRINGS,
};

struct request_event {
    duda_event_fn fn; /* NULL: none */
    void *data;
};

/* In a slab of its worker, which outlives it: an access after its end is found, and harms no other memory. */
struct duda_request {
    struct duda_old_request old; /* what services of the original API see; first, see old.h */
    struct mk_request *req;      /* NULL: it has ended */
    struct service_worker *worker;
    struct request_slab *slab;
    struct mk_list node; /* in worker->requests */

    bool old_has_status; /* of such a service: response->http_status() was called */
    unsigned features;   /* those that it has used: a bit for each feature_id */
    struct mk_str body;
    bool has_body;   /* it was collected: `body` is valid, and followed by a NUL */
    bool is_read;    /* by request->read() */
    bool is_reading; /* which has not had the end yet */
    const char *strings[REQUEST_STRINGS];

    struct output output;
    const char *file_error;                 /* why response->sendfile() has failed; or NULL */
    struct raw_head *raw;                   /* the service prints status line and headers itself; or NULL */
    struct heartbeat *heartbeat;            /* of server-sent events; or NULL */
    struct sse_subscription *subscriptions; /* of channels (sse_channels.h); or NULL */
    struct tunnel *tunnel;                  /* the service has taken the exchange over (tunnel.h); or NULL */
    bool is_before_head; /* functions run that may still change the head, although the response has ended */
    bool is_page;        /* of an error of the server, whose response has ended (route/error_page.h) */
    bool answered;       /* the service has ended the response */
    bool is_complete;    /* the request has ended, and its client has the response */
    bool is_kept;        /* the service has said that the response comes later: wait(), ticket() */
    bool is_aborted;     /* the service, or a reload, has cut the response */
    duda_request_fn done;
    struct request_event leave, writable;
    struct gc_item *gc;            /* gc.h */
    struct session_state *session; /* session.h; NULL: it was not opened */
    struct dispatch *dispatch;     /* its route and what was read of it (dispatch.h) */
    struct dthread *dthreads;      /* those that run for it; or NULL */
    struct task *tasks;            /* of task->start() for it; or NULL */
};

/* Sets the collected body, which has a NUL after it and is valid until the exchange ends. */
void request_set_body(struct duda_request *dr, struct mk_str data);

/* Logs why `dr` cannot be used. Returns -EINVAL, -EPERM or -ESTALE. */
int request_report(const struct duda_request *dr, const char *call);

/*
 * Checks that `dr` is a request of the calling worker that has not ended; if not, logs that `call` ("request->body()")
 * was a mistake. Returns 0, -EINVAL (`dr` is NULL), -EPERM (another thread or service) or -ESTALE.
 */
static inline int request_check(const struct duda_request *dr, const char *call)
{
    if (MK_LIKELY(dr && current.worker && dr->worker == current.worker && dr->req))
        return 0;
    return request_report(dr, call);
}

/* Logs why a call is a mistake. Returns `err`. */
int request_refuse(const struct duda_request *dr, const char *call, int err, const char *reason);

/* The same as request_check() for calls whose effect comes later: -EPERM also for a page, which is logged. */
int request_check_lasting(const struct duda_request *dr, const char *call);

/*
 * Defines a function of an object that checks its request once, by `check(dr, call)`: it returns `value`, or `failure`
 * after the error `err`, which was logged. For example:
 *
 *     REQUEST_CALL(int count(duda_request_t *dr), request_check, "param->count()", 0, (int)dr->dispatch->n)
 */
#define REQUEST_CALL(function, check, call, failure, value) \
    static function \
    { \
        int err = check(dr, call); \
        return MK_LIKELY(err == 0) ? (value) : (failure); \
    }

/* Returns whether the response has ended, or its end is under way. */
static inline bool request_is_answered(const struct duda_request *dr)
{
    return dr->output.state >= OUTPUT_ENDING;
}

/* Returns whether the body has a media type, whatever its parameters. */
bool request_has_type(const struct duda_request *dr, struct mk_str media_type);

/* Compares a value of a request, as cmp() of objects does. Returns 0 if it exists and is equal to `text`, or -1. */
static inline int request_compare(struct mk_str value, const char *text)
{
    return value.p && mk_str_eq(value, mk_str_c(text)) ? 0 : -1;
}

/* Begins a call into the service for a request; current_leave() ends it. */
static inline struct current request_enter(struct duda_request *dr)
{
    assert(dr->req);
    struct current outer = current_enter(dr->worker->service, dr->worker);
    current.request = dr;
    return outer;
}

/* Call a function of the service. */
void request_call(struct duda_request *dr, duda_request_fn fn);
void request_call_event(struct duda_request *dr, struct request_event event);
/* Calls the functions of the service for the end of a request. */
void request_call_end(struct duda_request *dr);

/* Has the end of the request call the hook of a feature. */
static inline void request_use(struct duda_request *dr, enum feature_id id)
{
    assert((unsigned)id < FEATURES && dr->worker);
    dr->features |= 1U << id;
}

/* Copies a string into the arena of the exchange. Returns NULL for a string without address, or without memory. */
const char *request_dup(struct duda_request *dr, struct mk_str s);

/* ── lifetime.c ── */

/* Makes the request of an exchange, which is found by mk_request_state(). Returns NULL without memory. */
struct duda_request *request_new(struct mk_request *req, struct service_worker *worker);
/* Releases a request and what it has, after its functions for that. */
void request_release(struct duda_request *dr);
/* Its service was replaced. Returns whether a feature ends it soon; else the caller aborts it. */
bool request_retire(struct duda_request *dr);

/*
 * Returns whether a response is missing, and nothing is known that would send it: a ticket, a task, a session or a body
 * that is read ...; dthreads are not looked at.
 */
bool request_is_forgotten(struct duda_request *dr);

/* ── request_pool.c ── */

/* Returns a zeroed request of the worker's slabs, or NULL without memory. */
struct duda_request *request_pool_get(struct service_worker *w);
void request_pool_put(struct duda_request *dr);
/* Returns whether `dr`, any address, is a request that was got and not put. */
bool request_pool_has(const struct service_worker *w, const struct duda_request *dr);

/* Of a worker: the memory of its requests. */
struct request_slabs {
    struct mk_list list;
};

FEATURE_SLOT(request_slabs_of, struct request_slabs, service_worker, FEATURE_REQUESTS)

/* Hooks of features.c. The slabs of a worker are freed that has no requests any more. */
int request_pool_init(struct service_worker *w);
void request_pool_release(struct service_worker *w);

/* ── body.c ── */

int body_read(duda_request_t *dr, uint64_t bytes_max, duda_piece_fn fn, void *data);
/* Checks that `call` can read the body now, and has its functions. Returns 0 or as request->read(). */
int body_check(const struct duda_request *dr, const char *call, bool has_functions);
/* Ends the request, whose body is not as it should be, with an error of the server. */
void body_reject(struct duda_request *dr, int status);
void body_pause(duda_request_t *dr);
void body_resume(duda_request_t *dr);

#endif
