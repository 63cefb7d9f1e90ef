// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of a thread to the backends, which last over reloads. One is lent to one exchange at a time, and is
 * kept idle between two of them.
 *
 *     backend_hold ─► take_idle or add ─► (exchange) ─► keep or close ─► backend_release
 *
 * All in the thread of the loop.
 */
#ifndef PROXY_BACKEND_H
#define PROXY_BACKEND_H

#include "clients.h"
#include "pipes.h"

#include <monkey/threads.h>

enum { THREAD_BUFFER_BYTES = 65536, THREAD_BUCKETS = 64 };

/* What this plugin keeps for a thread. */
struct thread {
    struct mk_thread base;
    struct mk_account *account;
    char *buffer;                             /* for one callback at a time; NULL until it is needed */
    struct mk_field fields[PROXY_FIELDS_MAX]; /* likewise */
    struct mk_list backends[THREAD_BUCKETS];  /* struct backend */
    struct mk_list orphans;                   /* struct orphan */
    unsigned n_orphans, n_backends;
    struct mk_list bound;                /* idle connections that belong to a client (bound.h) */
    struct pipes pipes;                  /* as long as there are backends */
    struct mk_thread_call shed;          /* closes idle connections */
    const struct mk_worker *last_worker; /* of the thread, when it has ended */
    _Atomic bool is_shedding;            /* the call is under way */
};

extern const struct mk_thread_type thread_type;

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* Returns a worker of the thread, for counters. */
const struct mk_worker *thread_get_worker(const struct thread *t);
/* Returns the buffer of THREAD_BUFFER_BYTES, or NULL without memory. */
char *thread_get_buffer(struct thread *t);
/* Closes the idle connections of the thread. In it. */
void thread_shed(struct thread *t);
/* Closes the idle connections of all threads. Any thread. */
void threads_shed(struct mk_threads *all);

struct backend_conn;
struct bound;

/* Receives the events of a connection that is lent, a set of EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP and EPOLLERR. */
typedef void (*backend_conn_fn)(void *user, uint32_t events);

/* A connection. It is watched once, edge-triggered, for its whole life. */
struct backend_conn {
    struct mk_event event;
    struct mk_io io;
    bool is_drained; /* there is nothing to read now */
    bool is_ending;  /* the backend has ended its side, or the connection has failed */
    bool is_reused;
    bool is_bound; /* to a connection of a client, by its login or the preamble: it is not kept for others */
    struct backend *backend;
    struct mk_list node; /* while it is idle */
    union {              /* likewise */
        uint64_t idle_since_ms;
        struct bound *bound; /* if it is bound; `fn` closes it when it ends */
    };
    struct mk_list bound_node; /* likewise */
    backend_conn_fn fn;        /* while it is lent */
    void *user;
};

/* What makes a connection one that an exchange may use, and how long it is kept. */
struct backend {
    struct mk_list node;
    const struct mk_upstreams *upstreams; /* of the holds, as the next */
    struct mk_upstream_server *server;    /* of a group; NULL: none */
    struct thread *thread;
    const struct tally *tally;
    struct mk_list idle; /* the newest last */
    struct mk_timer timer;
    unsigned n_idle, n_bound, refs, n_used; /* used: holds */
    uint32_t keep_alive, keep_alive_timeout_ms;
    uint64_t hash;
    struct mk_str key;      /* of the route and the server, and the preamble */
    struct mk_str preamble; /* the bytes that each connection begins with, before its handshake */
    char key_bytes[];
};

/*
 * Finds or makes the backend of a section whose connections begin with `preamble`, which may be empty, and holds it.
 * `server`: that of the group of the section, which counts the holds; NULL: it has none. Returns NULL without memory.
 */
struct backend *backend_hold(struct thread *t, const struct route *route, struct mk_upstream_server *server,
                             struct mk_str preamble);
/* The request is not with the server any more; the hold lasts until backend_put(). */
void backend_end_use(struct backend *b);
/* Ends a hold. A backend that nothing holds lasts as long as it has idle connections. */
void backend_release(struct backend *b);
/* Ends a reference (`refs`), which holds the backend without a request for it. */
void backend_put(struct backend *b);

/* Lends the connection that was kept last, if that was less than `age_ms` ago; NULL: there is none. */
struct backend_conn *backend_take_idle(struct backend *b, uint64_t age_ms);
/*
 * Lends a new connection, on a descriptor that it takes over; its handshake is the caller's. Returns 0 or -errno, and
 * the descriptor is closed.
 */
int backend_add(struct backend *b, int fd, const struct client *client, struct mk_worker *worker,
                struct backend_conn **ret);
/*
 * Reads. Returns the number of bytes, 0 at the end, or -errno: after -EAGAIN, `fn` is called when there is more. Makes
 * no call if there is nothing to read.
 */
ssize_t backend_read(struct backend_conn *c, void *to, size_t size);
/* The same, into a pipe that is empty; of a connection without TLS. */
ssize_t backend_splice(struct backend_conn *c, struct pipe *to, size_t size);
/*
 * Ends the loan: keeps the connection for others, or closes it. One whose end, or bytes, are there already is closed:
 * they would become the response to the next request.
 */
void backend_keep(struct backend_conn *c);
void backend_close(struct backend_conn *c);

#endif
