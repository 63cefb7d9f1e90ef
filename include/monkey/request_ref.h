// SPDX-License-Identifier: Apache-2.0
/*
 * Answers from other threads. A ticket names an exchange without pointing to it: it may be kept anywhere, and it does
 * no harm when the client has left, or the whole worker has gone, before it is used.
 *
 *     worker:  mk_request_ref() ─► ticket, mk_worker_get()
 *     thread:  works ... mk_request_ref_call(call) ──► worker: call->fn(call, req or NULL), mk_worker_put()
 *
 * What the thread uses of the plugin's state is kept by holding the worker (<monkey/plugin.h>), until the plugin's
 * worker_stop at the latest: that is where it waits for its threads.
 */
#ifndef MONKEY_REQUEST_REF_H
#define MONKEY_REQUEST_REF_H

#include "request.h"

struct mk_request_ref {
    uint32_t place, slot;
    uint64_t worker, exchange; /* numbers that are never given out again */
};

struct mk_request_call;
/* In the worker's thread; `req` is NULL when the exchange is over. */
typedef void (*mk_request_call_fn)(struct mk_request_call *call, struct mk_request *req);

/* The caller's memory, until `fn` has been called. */
struct mk_request_call {
    struct mk_message message; /* the way there; set by mk_request_ref_call */
    struct mk_request_ref ticket;
    mk_request_call_fn fn;
};

/* In the worker's thread. One exchange may have any number of tickets. 0 or -ENOMEM. */
MK_API int mk_request_ref(struct mk_request *req, struct mk_request_ref *ret);

/*
 * Has `call->fn` called in the worker of the ticket, exactly once. Any thread; never blocks for long. 0, or -ESRCH
 * when the worker is gone (a reload with fewer workers, a stop): nothing will be called.
 */
MK_API int mk_request_ref_call(struct mk_request_call *call);

#endif
