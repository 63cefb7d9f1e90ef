// SPDX-License-Identifier: Apache-2.0
/*
 * Looking into a running server, for plugins that show it to its operator: connections, timers, memory, generations,
 * and what would become of a request. Costs nothing as long as nothing is looked at.
 *
 * The functions are a separate library, libmonkey-inspect.a, which plugins link. It reads structs of the server: it
 * works with the server that it was built with, and with no other (mk_inspect_check()).
 *
 * All functions run in the worker's thread, in a callback of its loop, unless they say otherwise.
 */
#ifndef MONKEY_INSPECT_H
#define MONKEY_INSPECT_H

#include "loop.h"
#include "monkey.h"
#include "plugin.h"

MK_C_BEGIN

/* Returns 0, or -ENOEXEC: the library was built with another server, no other function may be called. Any thread. */
int mk_inspect_check(void);

/* ── connections ── */

/* A connection. All strings are valid until the callback returns. */
struct mk_inspect_conn {
    uint64_t id; /* of mk_connection_id() */
    struct mk_address peer;
    struct mk_str listener;  /* the address of its Listen line */
    struct mk_str transport; /* "liana", "tls" */
    const char *protocol;    /* "http/1", "h2" */
    const char *state;       /* "idle", "read_head" ...: docs/internals/connection-states.md */
    uint32_t age_s;
    uint32_t requests;       /* begun so far */
    bool counts_bytes;       /* the system counts the bytes of this kind of socket */
    uint64_t received, sent; /* with that: bytes that the client has sent, and acknowledged */
    uint32_t streams;        /* of HTTP/2: open now */
    bool has_request;        /* the request under way; of HTTP/2 the oldest: */
    struct mk_str method, host, path;
};

/* What mk_inspect_next() does next. */
enum mk_inspect_action {
    MK_INSPECT_CONTINUE,
    MK_INSPECT_STOP,  /* returns; the cursor is after this connection */
    MK_INSPECT_ABORT, /* closes the connection at once, and continues */
    MK_INSPECT_TRACE, /* tells the traces of this worker of its further states, and continues */
};

/*
 * A place among the connections of a worker's thread, the oldest first. It holds between two callbacks of the loop: if
 * its connection is closed it moves to the next one. Connections that are accepted meanwhile come last.
 */
struct mk_inspect_cursor {
    struct mk_list node;
    void *at, *inspector;
};

/* Begins with the oldest connection. Returns 0 or -ENOMEM. */
int mk_inspect_open(struct mk_inspect_cursor *cursor, const struct mk_worker *worker);
/* Ends the use of a cursor, also in the worker_stop of the last worker of its thread. */
void mk_inspect_close(struct mk_inspect_cursor *cursor);
typedef enum mk_inspect_action (*mk_inspect_conn_fn)(const struct mk_inspect_conn *conn, void *ctx);
/* Shows up to `n` connections. Returns whether there are more; each takes about a microsecond. */
bool mk_inspect_next(struct mk_inspect_cursor *cursor, unsigned n, mk_inspect_conn_fn fn, void *ctx);

/* A connection goes from one state to another. */
struct mk_inspect_change {
    uint64_t id;
    struct mk_address peer;
    const char *before, *after; /* names of states */
    uint64_t time_us;           /* of mk_loop_now_us() */
    uint32_t requests;
};

struct mk_inspect_trace;
/* Must not change the connection. */
typedef void (*mk_inspect_trace_fn)(struct mk_inspect_trace *trace, const struct mk_inspect_change *change);

/*
 * Tells of the changes of one connection, or of all of a peer: connections that are accepted later are traced by their
 * peer. For those that are open already, answer MK_INSPECT_TRACE in mk_inspect_next().
 */
struct mk_inspect_trace {
    struct mk_list node;
    mk_inspect_trace_fn fn;
    uint64_t id;            /* 0: by `peer` */
    struct mk_address peer; /* without a port */
    void *inspector;
};

/* Starts a trace whose fn, id and peer are set. Returns 0 or -ENOMEM. */
int mk_inspect_trace_start(struct mk_inspect_trace *trace, const struct mk_worker *worker);
/* Ends it, also in the worker_stop of the last worker of its thread. */
void mk_inspect_trace_stop(struct mk_inspect_trace *trace);

/* ── a worker ── */

enum { MK_INSPECT_TIMERS_MAX = 10000 };
enum { MK_INSPECT_GENERATIONS_MAX = 16 };

struct mk_inspect_worker {
    unsigned index;
    uint32_t connections;
    bool retiring, draining;
    uint32_t timers;             /* armed; up to MK_INSPECT_TIMERS_MAX are counted */
    int64_t timer_ms;            /* until the next one may fire; -1: none is armed */
    unsigned jobs;               /* submitted to disk threads, and not done */
    uint64_t memory, memory_max; /* bytes of its account, and MemoryLimit (0: none) */
    unsigned spares;             /* arena chunks that it keeps */
    struct mk_inspect_pool {
        uint32_t used, bytes; /* objects in use, bytes of each */
    } conn_pool, request_pool;
    unsigned n_generations;
    struct {
        uint32_t number;
        uint32_t holders;                      /* exchanges, jobs and others that hold it */
    } generations[MK_INSPECT_GENERATIONS_MAX]; /* the one in use first */
};

void mk_inspect_worker(const struct mk_worker *worker, struct mk_inspect_worker *ret);
/*
 * Returns the worker in use in the thread of `worker`, which may be of an older generation, or of one that is not
 * accepted yet. Valid until the callback returns. From worker_start on, until the worker_stop of `worker`.
 */
const struct mk_worker *mk_inspect_current(const struct mk_worker *worker);

/* ── the server ── */

/* Returns what is the same for all generations of a server, and differs between servers. From worker_start on. */
const void *mk_inspect_server(const struct mk_generation *g);
/* Returns the n-th plugin of the generation in its order, or NULL. Any thread. */
const struct mk_plugin *mk_inspect_plugin(const struct mk_generation *g, unsigned n);
/* Returns whether the plugin is a part of the program, not a file. Any thread. */
bool mk_inspect_is_built_in(const struct mk_generation *g, unsigned n);
/* Gets the n-th Listen line and the name of its transport. Returns false if there is none. Any thread. */
bool mk_inspect_listener(const struct mk_generation *g, unsigned n, struct mk_str *ret_text,
                         struct mk_str *ret_transport);
/* Appends the effective configuration: of the server, or with `host` that of the host. Any thread. */
void mk_inspect_show(const struct mk_generation *g, const struct mk_host *host, struct mk_buf *out);

/* A reload that a plugin asks for. Must stay in place until it is done or cancelled. */
struct mk_server_reload {
    struct mk_server_reload *next;
    struct mk_message message; /* the caller sets `message.fn`, which is called in `loop` when it is done */
    struct mk_loop *loop;
    int err;                /* the result of mk_server_reload() */
    struct mk_buf problems; /* initialized by the caller, which releases it: what mk_server_problems() tells */
};

/*
 * Asks the program for a reload, and tells the result. Returns 0, -ENOTSUP (the program takes no commands) or -errno,
 * with which nothing follows.
 */
int mk_inspect_reload(const struct mk_worker *worker, struct mk_server_reload *reload);
/* Gives up waiting for a reload. Returns false if its message is on its way, or was received. */
bool mk_inspect_reload_cancel(const struct mk_worker *worker, struct mk_server_reload *reload);
/* Gives another command. Returns 0, -ENOTSUP, -EALREADY (the server stops already) or -errno. */
int mk_inspect_command(const struct mk_worker *worker, enum mk_server_command command);

/* ── what would become of a request ── */

/* A phase of a request, as the hooks of struct mk_plugin. */
enum mk_explain_phase {
    MK_EXPLAIN_HEAD,
    MK_EXPLAIN_REQUEST,
    MK_EXPLAIN_CONTENT,
    MK_EXPLAIN_RESPONSE,
};

enum mk_explain_effect {
    MK_EXPLAIN_NOTE,    /* something holds for the request, which continues */
    MK_EXPLAIN_MAYBE,   /* it depends on what is not known here; the request may end */
    MK_EXPLAIN_ANSWERS, /* the request ends here: no further plugin is asked for its content */
};

struct mk_explain_header {
    struct mk_str name, value;
};

/*
 * A request that is explained. Plugins read it in their hook `explain`, and call mk_explain_add(). The strings are
 * valid until the hook returns.
 */
struct mk_explain {
    enum mk_explain_phase phase;
    struct mk_str method, name;  /* `name`: of the host that was asked for, without a port */
    struct mk_str path;          /* decoded and normalized, with a NUL after it, after rewriting */
    struct mk_str original_path; /* of the client */
    struct mk_str query;         /* `.p` NULL: none */
    const struct mk_explain_header *headers;
    unsigned n_headers;
    struct mk_address client; /* unknown (AF_UNSPEC) unless it was given */
    struct mk_str scheme;     /* "http", "https"; empty: unknown, as the next one */
    struct mk_str listener;   /* the address of its Listen line */
    const struct mk_worker *worker;
    struct mk_str plugin; /* whose hook is called */
    bool answered;        /* set by mk_explain_add() with MK_EXPLAIN_ANSWERS */
    bool runs_file;       /* set by a plugin that answers, if its explain_path names the file */
    bool defers_denial;   /* set in MK_EXPLAIN_HEAD: a login may take the place of a denial by a rule */
    bool claimed;         /* by a plugin (mk_path_hooks.claims), which sets it in MK_EXPLAIN_HEAD */
    /* Use mk_explain_add() and mk_explain_rewrite(). */
    void (*add)(struct mk_explain *e, const struct mk_host *host, const void *section_struct,
                enum mk_explain_effect effect, const char *format, ...) MK_PRINTF(5, 6);
    int (*rewrite)(struct mk_explain *e, struct mk_str path, struct mk_str query);
};

/*
 * Adds a sentence without a full stop; `section_struct`: the struct of the section or rule that is the reason, whose
 * file and line are shown, or NULL.
 */
#define mk_explain_add(e, host, section_struct, effect, ...) (e)->add(e, host, section_struct, effect, __VA_ARGS__)
/*
 * Replaces path and query, in MK_EXPLAIN_HEAD, as mk_request_rewrite() does; limits are its. Returns 0, -EINVAL, -ELOOP
 * or -ENOMEM.
 */
static inline int mk_explain_rewrite(struct mk_explain *e, struct mk_str path, struct mk_str query)
{
    return e->rewrite(e, path, query);
}

/* Returns the value of a header field, or MK_STR_NONE. */
static inline struct mk_str mk_explain_header(const struct mk_explain *e, struct mk_str name)
{
    for (unsigned i = 0; i < e->n_headers; i++)
        if (mk_str_ieq(e->headers[i].name, name))
            return e->headers[i].value;
    return MK_STR_NONE;
}

/* One sentence of an explanation. The strings are valid until the callback returns. */
struct mk_explain_step {
    const char *phase;    /* "listener", "host", "head", "request", "limits", "handler", "content", "response" */
    struct mk_str plugin; /* empty: the server */
    const char *effect;   /* "note", "maybe", "answers" */
    struct mk_str text;
    struct mk_str place; /* "sites/default:12"; may be empty */
};
typedef void (*mk_explain_fn)(const struct mk_explain_step *step, void *ctx);

/* What to explain. */
struct mk_explain_request {
    struct mk_str method, url; /* "/path?query", or "http://host:port/path" */
    const struct mk_explain_header *headers;
    unsigned n_headers;
    struct mk_address client; /* AF_UNSPEC: unknown */
};

/* The end of an explanation. */
struct mk_explain_result {
    const struct mk_host *host;
    struct mk_buf path; /* for mk_explain_path(); empty: no file is looked for. Released by the caller */
};

/*
 * Asks the plugins of the worker's generation what would become of a request, and calls `fn` for each sentence. Sends
 * and counts nothing. Returns 0, -EINVAL (the URL or the method is malformed) or -ENOMEM.
 */
int mk_explain(const struct mk_worker *worker, const struct mk_explain_request *request, mk_explain_fn fn, void *ctx,
               struct mk_explain_result *ret);

/*
 * Looks on the disk what GET of a path leads to: asks explain_path of the plugins in their order, until one responds,
 * or the one that [HANDLERS] names. Adds a sentence without a full stop; `path` ends with a NUL. Adds to `decided` the
 * path of what is sent or run, if it is another one: mk_explain_access(). Returns the plugin; NULL: none finds
 * anything. Any thread; may block.
 */
const struct mk_plugin *mk_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out,
                                        struct mk_buf *decided);

/*
 * Asks the plugins that decide about access what holds for `path`, to which the request leads, as mk_explain(), and
 * tells of the section of [LIMITS] that matches it.
 * Returns whether one of them answers the request.
 */
bool mk_explain_access(const struct mk_worker *worker, const struct mk_explain_request *request, struct mk_str path,
                       mk_explain_fn fn, void *ctx);

MK_C_END

#endif
