// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin interface: one const struct, named hooks, all of them optional.
 *
 *     MK_PLUGIN(hello) = {
 *         MK_PLUGIN_HEAD("hello", "1.0", "answers /hello"),
 *         .on_content = say_hello,
 *     };
 *
 * Hooks have the names of their moments; a plugin has those that it needs:
 *
 *     context        start ─► generation_start ─► host_start ─► worker_start ... and the stops the other way round
 *     connection     on_accept ─► (requests) ─► on_close
 *     request        on_head, then
 *                    on_request (access) ─► on_content ─► on_response ─► on_done
 *                    all, until one answers   the first     all           all
 *                                             that takes it
 *     events         descriptors, timers and messages of its own, in a worker's loop (<monkey/loop.h>)
 *     networking     the transport that carries connections (<monkey/transport.h>)
 *
 * A request passes the plugins in the order of plugins.load. What a connection or a request calls runs in the worker
 * that serves it and must not block. A plugin has no state of its own in globals: each start hands a state out, and
 * gets it back in its stop.
 *
 * A generation is one loaded configuration. After a reload the next one begins beside the one in use; what has begun
 * under the old one ends under it.
 */
#ifndef MONKEY_PLUGIN_H
#define MONKEY_PLUGIN_H

#include "conf.h"
#include "log.h"
#include "request.h"
#include "transport.h"

/* Changes with every change of this header, or of one that it brings, that a compiled plugin would not survive. */
enum { MK_PLUGIN_ABI = 8 };

struct mk_connection; /* lives as long as the call that it is given to */
struct mk_generation;
struct mk_host;
struct mk_worker; /* one worker under one generation */

enum mk_plugin_flags {
    MK_PLUGIN_TIMES = 1, /* it wants to know when requests began: mk_request_began_us() */
    /*
     * Its host_start is called even when its own sections have errors, to find what else is wrong with the host: a
     * value that was reported is as if not set. Without this flag it sees no host with such errors.
     */
    MK_PLUGIN_CHECKS_ALL = 2,
};

struct mk_plugin {
    uint32_t abi, size; /* filled by MK_PLUGIN_HEAD */
    uint32_t flags;     /* enum mk_plugin_flags */
    const char *name, *version, *summary;

    /* For `monkey -b`: a line of what it finds on this machine, without its end. */
    void (*about)(struct mk_buf *out);

    /* The sections that it adds to the configuration; ends with a row without a name. */
    const struct mk_conf_section *sections;

    /* Networking: it can carry connections; chosen by its name behind `Listen`, or by `TransportLayer`. */
    const struct mk_transport *transport;

    /*
     * The first generation with this plugin is being prepared, or the last one has gone: the process context. 0 or
     * -errno, which is an error of the configuration.
     */
    int (*start)(void);
    void (*stop)(void);
    /* Files that it writes to may have been renamed: open them anew. The process context; must not wait. */
    void (*reopen)(void);

    /* A generation is being prepared, before its hosts: the process context. 0 or -errno. After its last request: stop.
     */
    int (*generation_start)(struct mk_generation *g, void **ret_state);
    void (*generation_stop)(struct mk_generation *g, void *state);

    /*
     * A host of a new generation is being prepared, in the process context: check what the configuration
     * says (mk_host_error) and open what requests will need. `*ret_state` comes back in
     * mk_request_host_state(). 0 or -errno.
     */
    int (*host_start)(struct mk_host *host, void **ret_state);
    /* The last request of the generation is over. */
    void (*host_stop)(struct mk_host *host, void *state);

    /* All hosts have been prepared: what needs a look at them together. The process context. 0 or -errno. */
    int (*generation_check)(struct mk_generation *g, void *state);

    /*
     * A worker is about to serve a generation: its own thread, before the first request. 0 or -errno: the generation
     * cannot be used. The stop comes after the last request, in the same thread, or in the process context when that
     * thread has ended.
     */
    int (*worker_start)(struct mk_worker *worker, void **ret_state);
    void (*worker_stop)(struct mk_worker *worker, void *state);

    /*
     * A connection has come, and no byte of it has been read. 0: it may go on; -errno: it is closed at once, and no
     * further plugin is asked. In the worker that serves it, of the generation that is in use there: a connection
     * outlives generations, and belongs to none.
     */
    int (*on_accept)(struct mk_connection *conn);
    /*
     * It goes, after the on_done of its last request; all that accepted it are told. After a reload, on_close may come
     * for a connection that this plugin has not seen come, and after a plugin has gone, nobody tells it.
     */
    void (*on_close)(struct mk_connection *conn);

    /*
     * The head of a request is complete; may it go on? MK_DECLINED: no objection. 0: I have answered, or
     * will, or will call mk_request_decline() when I know. -errno: 500, as when an answer has been begun that is
     * declined.
     */
    int (*on_request)(struct mk_request *req);
    /* Who answers? As above. Nobody: 404, or 501 for a method that is not a known one. */
    int (*on_content)(struct mk_request *req);
    /* The response's head is about to leave: look at status and fields, change them. */
    void (*on_response)(struct mk_request *req);
    /* The exchange is over, for better or worse (mk_request_aborted). */
    void (*on_done)(struct mk_request *req);

    /*
     * The head of a request is complete, and on_request of no plugin has been called: can it begin now? Results as of
     * on_request. For what must come before everything else, wherever the plugin stands in the order.
     */
    int (*on_head)(struct mk_request *req);
};

#define MK_PLUGIN(name) \
    extern const struct mk_plugin mk_plugin_##name; \
    MK_API const struct mk_plugin mk_plugin_##name

#define MK_PLUGIN_HEAD(plugin_name, plugin_version, plugin_summary) \
    .abi = MK_PLUGIN_ABI, .size = sizeof(struct mk_plugin), .name = plugin_name, .version = plugin_version, \
    .summary = plugin_summary

/* ── the host of a configuration ── */

/* What a section of the host's file holds, and a section of the server's files. As mk_conf_section says. */
MK_API const void *mk_host_conf(const struct mk_host *host, const struct mk_conf_section *section);
/* Of a section that repeats: the struct behind `data`, which came from one of these; NULL after the last. */
MK_API const void *mk_host_conf_next(const struct mk_host *host, const struct mk_conf_section *section,
                                     const void *data);
MK_API const void *mk_host_server_conf(const struct mk_host *host, const struct mk_conf_section *section);

/* The n-th name of the host, as `ServerName` has it; `.p` is NULL past the last one. */
MK_API struct mk_str mk_host_name(const struct mk_host *host, unsigned n);

/* Is `name` (without a port, in any case of letters) one of the host's names, or covered by a wildcard of its? */
MK_API bool mk_host_has_name(const struct mk_host *host, struct mk_str name);

/* What `plugin` prepared for the host; NULL if it did not. */
MK_API void *mk_host_state(const struct mk_host *host, const struct mk_plugin *plugin);

/* Is that the address, as it is written, of one of the server's Listen lines? */
MK_API bool mk_host_has_listener(const struct mk_host *host, struct mk_str text);
/*
 * Connections are accepted at the listener of this text until a drain ends, not only until it begins. They do not
 * prolong it, and carry one request each. Only during host_start.
 */
MK_API void mk_host_accept_in_drain(struct mk_host *host, struct mk_str text);

/*
 * Would a request for http://`authority`/ come back to this host? True only when it is certain: one of its names, but
 * no wildcard, and the port of a TCP listener that speaks plain HTTP.
 */
MK_API bool mk_host_serves(const struct mk_host *host, struct mk_str authority);

/*
 * Tells the operator what is wrong with the field at `offset` of a section's struct, with its line: its `nth`
 * item or line, from 0; the nth pair where the section has free keys. Only during host_start, which then
 * returns -EINVAL. What several hosts say of a section of the server is told once.
 */
MK_API void mk_host_error(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth,
                          const char *format, ...) MK_PRINTF(5, 6);
/* The same for what is strange, but no mistake; host_start goes on. */
MK_API void mk_host_warn(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth,
                         const char *format, ...) MK_PRINTF(5, 6);

/* As mk_conf_is_wrong(): was that field given, but reported as wrong? For plugins with MK_PLUGIN_CHECKS_ALL. */
MK_API bool mk_host_is_wrong(const struct mk_host *host, const void *section_struct, size_t offset);

/*
 * For a section that repeats and of which the first that matches counts: tells the operator of each whose struct
 * mk_pattern, at `pattern` of its struct, leaves nothing to match behind an earlier one. 0, -EINVAL when there are
 * any, -ENOMEM. Only during host_start.
 */
MK_API int mk_host_check_patterns(struct mk_host *host, const struct mk_conf_section *section, size_t pattern);

/* ── generations and workers ── */

/* What a section of the server's files holds. */
MK_API const void *mk_generation_conf(const struct mk_generation *g, const struct mk_conf_section *section);
/* What `plugin` prepared for the generation; NULL if it did not. */
MK_API void *mk_generation_state(const struct mk_generation *g, const struct mk_plugin *plugin);
MK_API struct mk_generation *mk_host_generation(const struct mk_host *host);

/* ── generations, for plugins that carry connections: builds for small devices leave these out ── */

/* The host that answers for a name without a port: its own, or the default one. Once all hosts have been prepared. */
MK_API struct mk_host *mk_generation_host(const struct mk_generation *g, struct mk_str name);
/* Can requests come by the protocol of this ALPN name ("http/1.1")? */
MK_API bool mk_generation_supports_alpn(const struct mk_generation *g, struct mk_str protocol);
/* The port of the first listener that `plugin` carries; 0: it has none, or the system chooses it. -ENOENT: no listener.
 */
MK_API int mk_generation_port(const struct mk_generation *g, const struct mk_plugin *plugin);
/*
 * Tells the operator what is wrong with the first `Listen` line that `plugin` carries. Only during generation_check,
 * which then returns -EINVAL.
 */
MK_API void mk_generation_listen_error(struct mk_generation *g, const struct mk_plugin *plugin, const char *sentence);

/* Workers count from 0. All calls from the worker's own thread. */
MK_API unsigned mk_worker_index(const struct mk_worker *worker);
MK_API struct mk_loop *mk_worker_loop(const struct mk_worker *worker);
/* Its memory; lives as long as the worker's thread. */
MK_API struct mk_account *mk_worker_account(const struct mk_worker *worker);
MK_API struct mk_generation *mk_worker_generation(const struct mk_worker *worker);
/* What `plugin` prepared for the worker. */
MK_API void *mk_worker_state(const struct mk_worker *worker, const struct mk_plugin *plugin);

/*
 * The generation, with all states of hosts and of this worker, stays as long as its requests. What goes on with them
 * for longer (a job, a connection of one's own) holds the worker, and gives it back in the same thread.
 */
MK_API struct mk_worker *mk_worker_get(struct mk_worker *worker);
MK_API void mk_worker_put(struct mk_worker *worker);

/* ── connections: builds for small devices have no hooks for them ── */

/*
 * As mk_request_peer() says. At a Listen line for proxies it is the proxy: for whom it speaks is not known before
 * the first request.
 */
MK_API struct mk_address mk_connection_peer(struct mk_connection *conn);
/* The address of the Listen line that it came by; lives as long as the call. */
MK_API struct mk_str mk_connection_listener(const struct mk_connection *conn);
MK_API struct mk_worker *mk_connection_worker(const struct mk_connection *conn);
/* A number from 1 on that no other connection of the process has or will have. */
MK_API uint64_t mk_connection_id(struct mk_connection *conn);

/* ── the request of a plugin ── */

MK_API struct mk_worker *mk_request_worker(const struct mk_request *req);

/*
 * A hook that returned 0 to think about it declines after all: the next plugin is asked. Does nothing
 * when the request has been answered.
 */
MK_API void mk_request_decline(struct mk_request *req);

/* What `plugin` prepared for the request's host; NULL also when the head could not be read and no host was chosen. */
MK_API void *mk_request_host_state(const struct mk_request *req, const struct mk_plugin *plugin);
/* The request's host; the default one when none was chosen. */
MK_API const struct mk_host *mk_request_host_conf(const struct mk_request *req);

/* The address of the Listen line that the request's connection came by ("127.0.0.1:9000"); lives as long as `req`. */
MK_API struct mk_str mk_request_listener(const struct mk_request *req);
/* Has the server been asked to stop? It may answer for a while yet (ShutdownDelay, ShutdownTimeout). */
MK_API bool mk_request_draining(const struct mk_request *req);
/* In on_done: did the client leave, or the response fail, before all of it was handed over? */
MK_API bool mk_request_aborted(const struct mk_request *req);
/* In on_done: bytes of the response's body handed over. */
MK_API uint64_t mk_request_bytes_sent(const struct mk_request *req);

#endif
