// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to its handler:
 *
 *     match ─► before callbacks ─► body, up to the limit ─► handler (─► timeout) ─► after callbacks ─► head is sent
 *       │           └─ respond, or stop until router->next()
 *       └─► redirect, 404, 405, or the files of the service
 */
#ifndef DUDA_CORE_ROUTE_DISPATCH_H
#define DUDA_CORE_ROUTE_DISPATCH_H

#include "request/urlencoded.h"
#include "route/router.h"

struct service;
struct service_worker;
struct uploads;

/* The plugin's state of an exchange is its struct duda_request. */

/* What is known of a request by its route; in its arena. */
struct dispatch {
    struct duda_request *dr;
    const struct duda_route *route; /* NULL: none has matched */
    unsigned n;                     /* parameters */
    struct mk_str *values;          /* theirs, which end with a NUL */
    const struct route_hook *hook;  /* the next callback before the handler */
    bool is_own_hook;               /* it is one of the route's own */
    bool is_stopped;                /* waits for router->next() */
    bool is_resumed;                /* router->next() was called by the callback itself */
    bool is_in_hook, is_handled;
    uintptr_t called; /* the last function that was to respond, or to pass the request on; 0: that has passed it on */
    const struct route_counts *counts;
    uint64_t began_us; /* when it came to the service; 0: not measured */
    struct pairs query, raw_query, form;
    struct uploads *uploads; /* NULL: none were asked for, or there are none */
    struct mk_timer timer;
};

/*
 * Handles a request for a path below the URL of the worker's service. Returns as a plugin's on_content: MK_DECLINED if
 * it is for the files of the service.
 */
int dispatch_request(struct mk_request *req, struct service_worker *worker, struct mk_str path);

/* Returns whether a service leaves GET of a path below its URL to its files, or those of the host. */
bool dispatch_leaves_file(const struct service *s, struct mk_str path);

/* Redirects to the path with a slash after it; is_old: as the original did, to an absolute URI and without a page. */
void dispatch_redirect(struct mk_request *req, bool is_old);

/* The exchange of a request has ended: counts and releases it. */
void dispatch_finish(struct duda_request *dr);

/* Calls the callbacks after the handler of a request whose head is about to be sent. */
void dispatch_before_head(struct duda_request *dr);

/* Counts a response whose head is about to be sent. In the thread of its worker. */
void dispatch_count_response(struct duda_request *dr);

/* Continues with a request that a callback has stopped. Returns 0 or -EINVAL. */
int dispatch_next(struct duda_request *dr);

#endif
