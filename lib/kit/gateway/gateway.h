// SPDX-License-Identifier: Apache-2.0
#ifndef MK_GATEWAY_GATEWAY_H
#define MK_GATEWAY_GATEWAY_H

#include <monkey/base/arena.h>
#include <monkey/kit/backend_stats.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/threads.h>
#include <monkey/request.h>

#include <sys/types.h>

/* ── what the library keeps for the process and for a generation of a plugin (<monkey/kit/gateway.h>) ── */

struct mk_gateway {
    const struct mk_gateway_type *type;
    void *user;
    struct mk_threads threads;
    const struct mk_counter *counters[MK_GATEWAY_COUNTS];
    struct mk_stats_registry registry;
};

/* A transport with its settings; NULL: it has none. All functions that a connection needs are there. */
struct mk__gw_client {
    struct mk__gw_client *next;
    const struct mk_gateway_tls *tls;
    const struct mk_transport *transport;
    struct mk_transport_client *settings;
};

struct mk_gateway_generation {
    struct mk_gateway *gateway;
    struct mk__gw_client *clients;   /* sections with equal settings share them */
    struct mk_gateway_route *routes; /* of all hosts */
    uint32_t names_ms;               /* what is left of the time for names that are checked */
};

/*
 * Looks up the names of backends when a configuration is only checked (monkey -t). A server looks them up for each
 * connection, so a name without an address is a warning.
 */

/*
 * Warns if the name in `To` of a section, which is no group's, has no address. `*left_ms` is the time that is left; it
 * is reduced.
 */
void mk__gw_names_check(struct mk_host *host, const struct mk_gateway_conf *conf, uint32_t *left_ms);

/*
 * Sections of hosts, ready for requests: how connections to their backends carry bytes (plain sockets, or TLS with the
 * settings of the section), the group of servers, counters, and what distinguishes connections.
 */
struct mk_gateway_route {
    struct mk_hash_node node;                    /* in the table of the host */
    struct mk_gateway_route *next;               /* of the host */
    struct mk_gateway_route *next_in_generation; /* of the generation */
    struct mk_gateway *gateway;
    const struct mk_gateway_protocol *protocol;
    const struct mk_gateway_conf *conf;
    const struct mk__gw_client *client;
    const struct mk_upstreams *upstreams;
    const struct mk_upstream_group *group; /* NULL: To names a server */
    struct mk_target_stats stats;
    const char *spool_folder; /* NULL: it has no use for one */
    struct mk_str key;        /* what makes a connection one that this section may use */
    uint64_t hash;            /* of the key */
};

/*
 * Pipes through which bodies move from one socket to another by splice(2). A thread keeps one that is empty; a transfer
 * whose client takes no more keeps its own, with what waits in it.
 */
enum {
    MK__GW_PIPES_MAX = 32,           /* of a thread; bodies are copied then */
    MK__GW_PIPE_BYTES = 256 * 1024,  /* of one, if the kernel permits that */
    MK__GW_SPLICE_BYTES_MIN = 32768, /* of a body, below which a copy costs less */
};

struct mk__gw_pipe {
    struct mk__gw_pipes *owner;
    int read_fd, write_fd;
    size_t bytes; /* in the pipe */
};

/* Of a thread. */
struct mk__gw_pipes {
    struct mk_account *account;
    struct mk__gw_pipe *idle; /* empty; or NULL */
    unsigned n;               /* in use, and the idle one */
};

/* Returns an empty pipe; NULL: there are enough, or the system has no more. */
struct mk__gw_pipe *mk__gw_pipes_take(struct mk__gw_pipes *all);
/* Closes the idle one. */
void mk__gw_pipes_release(struct mk__gw_pipes *all);

/* Ends the use of a pipe; bytes that are in it are lost. */
void mk__gw_pipe_put(struct mk__gw_pipe *pipe);

/*
 * Moves bytes of a socket into an empty pipe. Returns their number, 0 at the end, -EOPNOTSUPP (the system does not move
 * bytes from this one) or another -errno.
 */
ssize_t mk__gw_pipe_fill(struct mk__gw_pipe *pipe, int fd, size_t size);
/* Moves up to `size` bytes to a socket. Returns their number, -EOPNOTSUPP (as above) or another -errno. */
ssize_t mk__gw_pipe_drain(struct mk__gw_pipe *pipe, int fd, size_t size);
/* Reads bytes that are in the pipe, of which there are some. Returns their number. */
ssize_t mk__gw_pipe_read(struct mk__gw_pipe *pipe, char *to, size_t size);

/*
 * The connections of a thread to the backends, which last over reloads. One is lent to one exchange at a time, and is
 * kept idle between two of them.
 *
 *     mk__gw_backend_hold ─► take_idle or add ─► (exchange) ─► keep or close ─► mk__gw_backend_release
 *
 * All in the thread of the loop.
 */
enum { MK__GW_BUFFER_BYTES = 65536, MK__GW_BUCKETS = 64 };

/* What is kept for a thread. */
struct mk__gw_spare;

struct mk__gw_thread {
    struct mk_thread base;
    struct mk_gateway *gateway;
    const struct mk_gateway_generation *serving; /* that of the newest worker which serves; NULL: none does */
    struct mk_account *account;
    char *buffer;                                  /* for one callback at a time; NULL until it is needed */
    struct mk_field fields[MK_GATEWAY_FIELDS_MAX]; /* likewise */
    struct mk_list backends[MK__GW_BUCKETS];       /* struct mk__gw_backend */
    struct mk_list orphans;                        /* struct mk__gw_orphan */
    unsigned n_orphans, n_backends;
    unsigned n_awaited;          /* idle connections that are kept for requests which have waited (KeepAlive Queue) */
    struct mk__gw_spare *spares; /* exchanges that have ended, for the next ones */
    unsigned n_spares;
    struct mk_list bound;                /* idle connections that belong to a client */
    struct mk__gw_pipes pipes;           /* as long as there are backends */
    struct mk_thread_call shed;          /* closes idle connections */
    const struct mk_worker *last_worker; /* of the thread, when it has ended */
    _Atomic bool is_shedding;            /* the call is under way */
};

extern const struct mk_thread_type mk__gw_thread_type;

static inline struct mk__gw_thread *mk__gw_thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct mk__gw_thread, base);
}

/* New requests are those of `g` from now on. Closes idle connections that no section of it may use. */
void mk__gw_thread_serve(struct mk__gw_thread *t, const struct mk_gateway_generation *g);
/* Returns a worker of the thread, for counters. */
const struct mk_worker *mk__gw_thread_get_worker(const struct mk__gw_thread *t);
/* Allocates an exchange of `bytes` bytes, not zeroed; NULL without memory. A few are kept for the next ones. */
void *mk__gw_thread_alloc(struct mk__gw_thread *t, size_t bytes);
void mk__gw_thread_free(struct mk__gw_thread *t, void *exchange, size_t bytes);
/* Tells whether three quarters of MemoryLimit are used: what would be idle is closed then. */
static inline bool mk__gw_thread_is_low_on_memory(const struct mk__gw_thread *t)
{
    return t->account->bytes_max && t->account->bytes > t->account->bytes_max / 4 * 3;
}
/*
 * Closes the idle connections of the thread, but for those with a login, and frees the exchanges that it keeps. In it.
 */
void mk__gw_thread_shed(struct mk__gw_thread *t);
/* Closes the idle connections of all threads. Any thread. */
void mk__gw_threads_shed(struct mk_threads *all);

struct mk__gw_backend_conn;
struct mk__gw_bound;

/* Receives the events of a connection that is lent, a set of EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP and EPOLLERR. */
typedef void (*mk__gw_backend_conn_fn)(void *user, uint32_t events);

/* A connection. It is watched once, edge-triggered, for its whole life. */
struct mk__gw_backend_conn {
    struct mk_event event;
    struct mk_io io;
    bool is_drained : 1; /* there is nothing to read now */
    bool is_ending : 1;  /* the backend has ended its side, or the connection has failed */
    bool is_reused : 1;
    bool is_bound : 1; /* to a connection of a client, by a login or the preamble: it is not kept for others */
    bool has_login : 1;
    uint32_t bound_since_ms; /* while it is idle and bound, without a login; the low bits of the clock */
    struct mk__gw_backend *backend;
    struct mk_list node; /* while it is idle, as the next */
    union {
        uint64_t idle_since_ms;
        struct mk__gw_bound *bound; /* if it is bound; `fn` closes it when it ends */
    };
    struct mk_list bound_node; /* likewise */
    mk__gw_backend_conn_fn fn; /* while it is lent */
    void *user;
};

/* What makes a connection one that an exchange may use, and how long it is kept. */
struct mk__gw_backend {
    struct mk_list node;
    const struct mk_upstreams *upstreams;         /* of the holds, as the next */
    struct mk_upstream_server *server;            /* of a group; NULL: none */
    const struct mk_upstream_server *last_server; /* only compared, since it may be gone */
    struct mk__gw_thread *thread;
    const struct mk_backend_stats *stats;
    struct mk_list idle; /* the newest last */
    struct mk_timer timer;
    unsigned n_idle, n_bound, refs, n_used; /* used: holds */
    uint32_t keep_alive, keep_alive_timeout_ms;
    bool is_retired; /* the generation that serves has no section for it: none is kept idle */
    uint64_t hash, route_hash;
    struct mk_str key;      /* of the route and the server, and the preamble */
    struct mk_str preamble; /* the bytes that each connection begins with, before its handshake */
    char key_bytes[];
};

/*
 * Finds or makes the backend of a section whose connections begin with `preamble`, which may be empty, and holds it.
 * `server`: that of the group of the section, which counts the holds; NULL: it has none. Returns NULL without memory.
 */
struct mk__gw_backend *mk__gw_backend_hold(struct mk__gw_thread *t, const struct mk_gateway_route *route,
                                           struct mk_upstream_server *server, struct mk_str preamble);
/*
 * The request is not with the server any more; the hold lasts until mk__gw_backend_put(). Returns whether the server
 * has been given to a request of this thread that has waited for it, which uses it in this turn or the next.
 */
bool mk__gw_backend_end_use(struct mk__gw_backend *b);
/* Ends a hold. A backend that nothing holds lasts as long as it has idle connections. */
void mk__gw_backend_release(struct mk__gw_backend *b);
/* Ends a reference (`refs`), which holds the backend without a request for it. */
void mk__gw_backend_put(struct mk__gw_backend *b);

/* Lends the connection that was kept last, if that was less than `age_ms` ago; NULL: there is none. */
struct mk__gw_backend_conn *mk__gw_backend_take_idle(struct mk__gw_backend *b, uint64_t age_ms);
/*
 * Lends a new connection, on a descriptor that it takes over; its handshake is the caller's. Returns 0 or -errno, and
 * the descriptor is closed.
 */
int mk__gw_backend_add(struct mk__gw_backend *b, int fd, const struct mk__gw_client *client, struct mk_worker *worker,
                       struct mk__gw_backend_conn **ret);
/*
 * Reads. Returns the number of bytes, 0 at the end, or -errno: after -EAGAIN, `fn` is called when there is more. Makes
 * no call if there is nothing to read.
 */
ssize_t mk__gw_backend_read(struct mk__gw_backend_conn *c, void *to, size_t size);
/*
 * Has `fn` called in the next turn if there is more to read, for a reader that leaves bytes to let others have their
 * turn. Returns -EAGAIN, as if there were none, or another -errno.
 */
int mk__gw_backend_read_later(struct mk__gw_backend_conn *c);
/* Reads into a pipe that is empty, as mk__gw_backend_read(); of a connection without TLS. */
ssize_t mk__gw_backend_splice(struct mk__gw_backend_conn *c, struct mk__gw_pipe *to, size_t size);
/*
 * Ends the loan: keeps the connection for others, or closes it. Without KeepAlive it is kept only if a request awaits
 * it (mk__gw_backend_end_use()). One whose end, or bytes, are there already is closed: they would become the response
 * to the next request.
 */
void mk__gw_backend_keep(struct mk__gw_backend_conn *c, bool is_awaited);
void mk__gw_backend_close(struct mk__gw_backend_conn *c);

/*
 * Connections to backends that belong to one connection of a client: those with a preamble, and those with a login,
 * since NTLM, and often Negotiate, log a connection in, not a request. They serve no other client, and end with the
 * client's connection. Those without a login are kept as all others are, by KeepAlive and KeepAliveTimeout; one with
 * a login as long as both sides want. In the thread of the loop.
 */

/* Those of a connection of a client. */
struct mk__gw_bound {
    struct mk_list conns;
    unsigned n;
    struct mk_loop *loop;
    struct mk_timer timer; /* for those without a login */
};

/*
 * Lends the connection of the request's client to a backend, if it has a login or was kept less than `age_ms` ago;
 * NULL: there is none.
 */
struct mk__gw_backend_conn *mk__gw_bound_take(struct mk_request *req, struct mk__gw_backend *b, uint64_t age_ms);
/*
 * Returns the server of the route's group on whose connection the client has a login, which another server does not
 * know; NULL: there is none. It may be gone: only to be compared.
 */
const struct mk_upstream_server *mk__gw_bound_find_login(struct mk_request *req, const struct mk__gw_thread *t,
                                                         const struct mk_gateway_route *route);
/*
 * Ends the loan of a connection that is the client's now: keeps it for this client, or closes it. It is closed for
 * clients of a trusted proxy, whose connections carry requests of several clients.
 */
void mk__gw_bound_keep(struct mk_request *req, struct mk__gw_backend_conn *c);

#endif
