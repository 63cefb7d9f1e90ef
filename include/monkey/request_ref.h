// SPDX-License-Identifier: Apache-2.0
/*
 * Responses from other threads. A request reference names an exchange without pointing to it. It may be stored and
 * copied anywhere, and stays harmless after the exchange, or its worker's thread, has ended.
 *
 *     worker:  mk_request_ref() ─► reference, mk_worker_get()
 *     thread:  works ... mk_request_ref_call(call) ──► worker: call->fn(call, req or NULL), mk_worker_put()
 *
 * A worker that is held with mk_worker_get() (<monkey/plugin.h>) keeps the plugin's states while the thread uses them,
 * until worker_stop at the latest: a plugin waits for its threads there.
 */
#ifndef MONKEY_REQUEST_REF_H
#define MONKEY_REQUEST_REF_H

#include "request.h"

MK_C_BEGIN

/* Filled by mk_request_ref(); its fields are the server's. */
struct mk_request_ref {
    uint32_t entry, slot;
    uint64_t worker, exchange; /* numbers that are not used again */
};

struct mk_request_call;
/* Is called in the worker's thread; `req` is NULL if the exchange is over. */
typedef void (*mk_request_call_fn)(struct mk_request_call *call, struct mk_request *req);

/* A call on its way to the worker. The caller sets `ref` and `fn`, and keeps the memory until `fn` is called. */
struct mk_request_call {
    struct mk_message message; /* set by mk_request_ref_call() */
    struct mk_request_ref ref;
    mk_request_call_fn fn;
};

/*
 * Makes a reference to an exchange, which may have any number of them. In the worker's thread.
 * Returns 0 or -ENOMEM.
 */
MK_API int mk_request_ref(struct mk_request *req, struct mk_request_ref *ret);

/*
 * Has `call->fn` called in the worker of the reference, exactly once. Any thread; takes a lock that is held for moments
 * only.
 * Returns 0, or -ESRCH (the worker's thread has ended, by a reload with fewer workers or a stop): `fn` is not called.
 */
MK_API int mk_request_ref_call(struct mk_request_call *call);

MK_C_END

#endif
