// SPDX-License-Identifier: Apache-2.0
/*
 * Between plugins that pass requests to other servers and the one that knows groups of them (`upstream`): several
 * servers behind one name, of which each request gets one.
 *
 *     host_start   find(name) ─► group
 *     request      choose(group) ─┬─────────► server ─► connection, exchange ─► report ─► end
 *                       ▲         └─► wait ─────▲                                  │
 *                       └────── another server, if this one does not serve it ─────┘
 *
 * A group belongs to a generation. What is known of a server (its load, failures, whether it is ejected) and the
 * requests that wait belong to the process: a reload that leaves a server in its group keeps all of it.
 */
#ifndef MONKEY_UPSTREAMS_H
#define MONKEY_UPSTREAMS_H

#include "base/dial.h"
#include "plugin.h"

MK_C_BEGIN

enum { MK_UPSTREAM_TRIES_MAX = 8 };

struct mk_upstream_group;
struct mk_upstream_queue;

/* A server; the rest of it is private to the plugin that knows the groups. */
struct mk_upstream_server {
    const struct mk_dial_target *target;
    struct mk_str group, name; /* of the group; and as its line `Server` names it, for all addresses of a name */
    struct mk_str address;     /* as the line, or an address of the name in it */
    struct mk_str key;         /* unlike that of all other servers of the group */
};

/* Why a server does not serve a request. */
enum mk_upstream_failure {
    MK_UPSTREAM_NOT_REACHED, /* it has none of the request */
    MK_UPSTREAM_KEPT_ENDED,  /* a connection that was kept idle has ended: the server itself may be fine */
    MK_UPSTREAM_SENT,        /* it may have got the request, which may be repeated (RFC 9110 section 9.2.2) */
    MK_UPSTREAM_STATUS,      /* it has responded with `status`; the same */
};

/* The servers that a request has been given, the last one at the end; in the caller's storage. All zeros: none. */
struct mk_upstream_tries {
    struct mk_upstream_server *servers[MK_UPSTREAM_TRIES_MAX];
    unsigned n;
    enum mk_upstream_failure failure; /* of the last one */
    unsigned status;                  /* with MK_UPSTREAM_STATUS */
    /* Private to the plugin: when the first one was given, and when Hold is over; how many may have got the request. */
    uint64_t first_ms, hold_end_ms;
    unsigned n_sent;
    bool is_counted;
};

/* How a server has served a request. */
struct mk_upstream_outcome {
    int err;           /* 0: it has sent a head, with the next two; else -errno */
    unsigned status;   /* of the head */
    uint32_t head_ms;  /* from the request to the head */
    bool is_connected; /* with `err`: there was a connection */
};

struct mk_upstream_wait;

/*
 * The wait is over. `err`: 0 (the server is the request's, as if it had been chosen now), -ETIMEDOUT (QueueTimeout is
 * over) or -ENXIO (so is Hold). In the thread of the request.
 */
typedef void (*mk_upstream_wait_fn)(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server);

/*
 * A request that waits, in the caller's storage. All zeros: it does not. The fields are private to the plugin, but for
 * `sticky`, which a caller may set before choose(): the server that is to have the request, as one that a cookie names.
 * It is only compared, since it may be gone.
 */
struct mk_upstream_wait {
    struct mk_list node;
    struct mk_message message;
    struct mk_timer timer;
    struct mk_loop *loop;
    struct mk_request *req;
    const struct mk_upstream_group *group;
    struct mk_upstream_tries *tries;
    struct mk_upstream_server *sticky;
    union {
        struct mk_upstream_queue *queue;   /* while it waits */
        struct mk_upstream_server *server; /* then */
    };
    mk_upstream_wait_fn fn;
    uint64_t began_ms, order, key;
    bool has_key, is_held, is_active, is_costly;
    uint8_t state;
};

/*
 * The functions of a plugin that knows groups: mk_plugin_interfaces.upstreams. In the thread of the request's worker.
 */
struct mk_upstreams {
    /* Returns the group of a name, valid as long as the generation; NULL: there is none. From host_start on, any
     * thread.
     */
    const struct mk_upstream_group *(*find)(const struct mk_generation *g, struct mk_str name);
    /* Returns the name of the n-th group; empty: there is none. As find(). */
    struct mk_str (*group_name)(const struct mk_generation *g, unsigned n);
    /* Returns the n-th line `Server` of a group; empty: there is none. Any thread, as long as the group. */
    struct mk_str (*server_name)(const struct mk_upstream_group *group, unsigned n);
    /*
     * Chooses a server for a request that none of `tries` is to serve, and adds it there: the request is with it until
     * end(), until which it is valid; later it may only be compared. Another generation that names it has the same.
     * Returns 0; MK_AGAIN (`fn` is called later, unless cancel() is called before; `wait` and `tries` must stay
     * until then); -ENXIO (no server can be used, or the group allows no further try; with no servers left in `tries`
     * Hold is over), -EBUSY (too many requests wait) or -ENOMEM. After MK_UPSTREAM_KEPT_ENDED and MK_UPSTREAM_STATUS,
     * where the caller has another way, it never waits.
     */
    int (*choose)(const struct mk_upstream_group *group, struct mk_request *req, struct mk_upstream_tries *tries,
                  struct mk_upstream_wait *wait, mk_upstream_wait_fn fn, struct mk_upstream_server **ret);
    /* Ends the wait: `fn` is not called. Does nothing if the request does not wait. */
    void (*cancel)(struct mk_upstream_wait *wait);
    /*
     * The request is not with the server any more. `worker` as for mk_counter_add(). Returns the loop of a request that
     * has waited and gets the server now, which may only be compared; NULL: there is none.
     */
    const struct mk_loop *(*end)(struct mk_upstream_server *server, const struct mk_worker *worker);
    /* Notes how the server has served. */
    void (*report)(const struct mk_upstream_group *group, struct mk_upstream_server *server, struct mk_worker *worker,
                   const struct mk_upstream_outcome *outcome);
    /* Adds what the group has to say to the head of the response: the cookie of `Balance Sticky`. */
    void (*add_headers)(const struct mk_upstream_group *group, const struct mk_upstream_server *server,
                        struct mk_request *req);
    /* Writes, for the log, why choose() or a wait has failed: -ENXIO, -EBUSY, -ENOMEM or -ETIMEDOUT. */
    void (*explain)(const struct mk_upstream_group *group, int err, struct mk_buf *out);
};

/* Returns the functions of the generation's plugin that knows groups; NULL: none is loaded. Any thread. */
MK_API const struct mk_upstreams *mk_generation_upstreams(const struct mk_generation *g);

MK_C_END

#endif
