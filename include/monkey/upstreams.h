// SPDX-License-Identifier: Apache-2.0
/*
 * Between plugins that pass requests to other servers and the one that knows groups of them (`upstream`): several
 * servers behind one name, of which each request gets one.
 *
 *     host_start   find(name) ─► group
 *     request      choose(group) ─► server ─► begin ─► connection, exchange ─► report ─► end
 *                       ▲                                                          │
 *                       └────── another server, if this one has failed ────────────┘
 *
 * A group belongs to a generation. What is known of a server (its load, failures, whether it is ejected) belongs to the
 * process: a reload that leaves it in its group keeps all of it. Builds for small devices have no groups.
 */
#ifndef MONKEY_UPSTREAMS_H
#define MONKEY_UPSTREAMS_H

#include "dial.h"
#include "plugin.h"

MK_C_BEGIN

enum { MK_UPSTREAM_TRIES_MAX = 8 };

struct mk_upstream_group;

/* A server; the rest of it is private to the plugin that knows the groups. */
struct mk_upstream_server {
    const struct mk_dial_target *target;
    struct mk_str group, name; /* of the group; and as its line `Server` names it */
};

enum mk_upstream_loss {
    MK_UPSTREAM_NOT_REACHED, /* it has none of the request */
    MK_UPSTREAM_KEPT_ENDED,  /* a connection that was kept idle has ended: the server itself may be fine */
    MK_UPSTREAM_SENT,        /* it may have got the request, which may be repeated (RFC 9110 section 9.2.2) */
};

/* The servers that a request has been given, the last one at the end; in the caller's storage. All zeros: none. */
struct mk_upstream_tries {
    struct mk_upstream_server *servers[MK_UPSTREAM_TRIES_MAX];
    unsigned n;
    enum mk_upstream_loss loss; /* why the last one does not serve it */
};

/* How a server has served a request. */
enum mk_upstream_result {
    MK_UPSTREAM_RESPONDED, /* it has sent the head of a response */
    MK_UPSTREAM_FAILED,    /* refused, reset, no response, or none in time */
};

/* The functions of a plugin that knows groups: mk_plugin.upstreams. All threads, unless they say otherwise. */
struct mk_upstreams {
    /* Returns the group of a name, which is valid as long as the generation; NULL: there is none. From host_start on.
     */
    const struct mk_upstream_group *(*find)(const struct mk_generation *g, struct mk_str name);
    /*
     * Chooses a server for a request that none of `tries` is to serve, and adds it there. It is valid as long as the
     * generation; another generation that names it has the same. NULL: there is no other one, or the group allows no
     * further try. In the thread of the request's worker.
     */
    struct mk_upstream_server *(*choose)(const struct mk_upstream_group *group, struct mk_request *req,
                                         struct mk_upstream_tries *tries);
    /* A request is with the server, and is not any more. `worker` as for mk_counter_add(). */
    void (*begin)(struct mk_upstream_server *server, const struct mk_worker *worker);
    void (*end)(struct mk_upstream_server *server, const struct mk_worker *worker);
    /* Tells how the server has served. In the thread of the worker. */
    void (*report)(const struct mk_upstream_group *group, struct mk_upstream_server *server, struct mk_worker *worker,
                   enum mk_upstream_result result);
};

/* Returns the functions of the generation's plugin that knows groups; NULL: none is loaded. Any thread. */
MK_API const struct mk_upstreams *mk_generation_upstreams(const struct mk_generation *g);

MK_C_END

#endif
