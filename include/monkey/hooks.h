// SPDX-License-Identifier: Apache-2.0
/*
 * Hooks of plugins that few need: const tables by purpose, to which struct mk_plugin points. A table that a plugin does
 * not have is NULL, as is a hook in a table.
 *
 *     static const struct mk_connection_hooks connection_hooks = {.on_client = check_client};
 *
 *     MK_PLUGIN(guard) = {
 *         MK_PLUGIN_HEAD("guard", "1.0", "closes connections of some clients"),
 *         .connections = &connection_hooks,
 *     };
 *
 *     connections   what connects and leaves
 *     paths         what other paths of a host are, and which requests are the plugin's own
 *     sources       which files of a host are programs, whose bytes no plugin sends
 *     process       what of the whole process is to be opened again, or returned
 *     inspection    what an operator is told
 *     interfaces    tables of functions that the server or other plugins call, and those that it needs of others
 *
 * The server may call them as long as the plugin is loaded. Threads are those of <monkey/plugin.h>.
 */
#ifndef MONKEY_HOOKS_H
#define MONKEY_HOOKS_H

#include "plugin.h"

MK_C_BEGIN

struct mk_command;     /* <monkey/kit/command.h> */
struct mk_explain;     /* <monkey/inspect.h> */
struct mk_file_cache;  /* <monkey/file_cache.h> */
struct mk_file_server; /* <monkey/file_cache.h> */
struct mk_program;     /* <monkey/program.h> */
struct mk_upstreams;   /* <monkey/upstreams.h> */

struct mk_connection_hooks {
    /*
     * A connection was accepted; no byte of it has been read. The hook is called for the generation that is in use in
     * the worker. A connection does not belong to a generation, and may outlive several.
     * Returns 0, or -errno (the connection is closed, and no further plugin is called).
     */
    int (*on_accept)(struct mk_connection *conn);
    /*
     * The client of a connection is known (mk_connection_client()): behind `Listen ... proxy` once the PROXY header was
     * read, before anything else is; on other connections right after on_accept of all plugins. So a plugin that cares
     * for clients, not for proxies, needs no on_accept. Called once for each connection, unless it ends before. Returns
     * as on_accept, but on_close of all plugins follows a refusal.
     */
    int (*on_client)(struct mk_connection *conn);
    /*
     * A connection is closed; after on_done of its last request. If on_accept of a plugin has refused the connection,
     * only the plugins before it are called. A plugin that a reload has added is called for connections that it has
     * not seen in on_accept and on_client; one that a reload has removed is not called any more. What must be undone
     * in any case belongs to a state of the connection (mk_connection_set_state()).
     */
    void (*on_close)(struct mk_connection *conn);
};

struct mk_path_hooks {
    /*
     * Tells whether the client of `req` may GET another path of the host, as on_head and on_request would decide for
     * it with the headers of `req`: for a plugin that refuses requests by their paths, or redirects them. `path` is
     * decoded and normalized, ends with a NUL, and ends with a slash if it names a folder. The hook sends nothing,
     * counts nothing and does not change `req`. But a plugin with rules or logins calls mk_request_allow(),
     * mk_request_deny() and mk_request_access() as in on_request: they are about `path` then, and a denial waits for
     * the later plugins. Is called by mk_request_allows_path().
     * Returns 1 (yes, or denied by mk_request_deny()), 0 (no) or -errno (it is not known: no).
     */
    int (*allows_path)(struct mk_request *req, struct mk_str path);
    /*
     * Returns whether the plugin responds to the URI that the client has sent, as to a probe, so that no plugin
     * redirects the request or takes it out of service, whatever their order is; rules and logins may still refuse it.
     * Is called by mk_request_is_claimed(), also for hosts that have no state of the plugin.
     */
    bool (*claims)(struct mk_request *req);
    /*
     * Opens what GET of a path of the host would send, for a plugin that serves files: see mk_host_open_path(), which
     * calls it. Any thread; may block. Uses only what does not change after generation_check, or its own locks.
     * Returns a descriptor, -ENOENT (nothing here: the next plugin is asked) or another -errno.
     */
    int (*open_path)(const struct mk_host *host, struct mk_str path, uint32_t flags);
    /*
     * Says what becomes of a path with an encoded slash ("%2F" in a segment), an enum mk_encoded_slash. If one plugin
     * decodes it, the path is as if the client had sent a slash. Else the slash is "%2F" in mk_request_path(), which
     * all hooks see, so that rules, logins and redirects go by it; but on_content is called only of plugins that keep
     * it, unless a rewrite has replaced it: where all refuse it, the request gets 404.
     *
     * Not asked, but 404, are paths in which "." or ".." is next to an encoded slash, and those that have "%2F" as
     * text ("%252F") as well. Asked only if the plugin has on_content.
     */
    int (*accepts_encoded_slash)(const struct mk_host *host, struct mk_str path);
    /*
     * Sends the response when on_content of all plugins has declined, in place of the server's 404 or 501: for a plugin
     * that forwards what is not there (mk_file_server.tries). If a line of [HANDLERS] names one plugin for the path,
     * only that one is called. Returns as on_request; but a plugin that has taken the request does not decline it
     * later.
     */
    int (*on_fallback)(struct mk_request *req);
    /*
     * Tells whether no client may GET a path of the host, whatever else its request has, for a plugin that refuses
     * requests by their paths. `path` need not end with a NUL. In generation_check, for hosts that have a state of the
     * plugin. Is called by mk_host_denies_path().
     */
    bool (*denies_path)(const struct mk_host *host, struct mk_str path);
};

struct mk_source_hooks {
    /*
     * Tells by a name alone whether it is that of a program which the plugin runs for `host`, or of a copy of one
     * (<monkey/kit/source.h>), also if this plugin would not take a request for it: such a file is never sent. Called
     * only for hosts that have a state of the plugin, from generation_check on, and often: it allocates nothing and
     * does not block. Any thread. Is called by mk_host_is_source().
     */
    bool (*is_source)(const struct mk_host *host, enum mk_source_name kind, struct mk_str name);
    /* Returns whether is_source may return true for a name of `host`, once it has started; NULL: it may. */
    bool (*has_sources)(const struct mk_host *host);
    /* Calls `fn` for what each section runs, as mk_host_each_program() (<monkey/program.h>), which calls it. */
    void (*each_program)(const struct mk_host *host, void (*fn)(const struct mk_program *program, void *ctx),
                         void *ctx);
};

struct mk_process_hooks {
    /* Opens the plugin's log files again: they may have been renamed. `state` is that of start. Must not block. */
    void (*reopen)(void *state);
    /*
     * Descriptors are running short: the plugin closes some that it keeps only to save time. Called again while they
     * are short, at most once in a turn of a loop. `state` is that of start. In the thread of a worker, or of the
     * server; must not block.
     */
    void (*low_on_descriptors)(void *state);
    /*
     * Three quarters of MemoryLimit are used in the thread of `worker`, which is the caller's, and a connection was
     * accepted: the plugin frees memory of the worker that it keeps only to save time. Idle connections of clients are
     * closed after this. `state` is that of start.
     */
    void (*low_on_memory)(struct mk_worker *worker, void *state);
};

struct mk_inspect_hooks {
    /* Appends a line for `monkey -b`, without its end: what the plugin finds on this machine. */
    void (*about)(struct mk_buf *out);
    /*
     * Tells an operator what the plugin would do with a request, and why (<monkey/inspect.h>). Called once for each
     * phase of the request, in the order of the hooks. Sends nothing and counts nothing. In the thread of a worker
     * under the generation of `host`.
     */
    void (*explain)(const struct mk_host *host, struct mk_explain *e);
    /*
     * Adds what it finds for GET of a path, and to `decided` the path that mk_request_decide_access() or
     * mk_request_redirect_internally() would get. Returns whether it responds: mk_explain_path(). A job; may block.
     */
    bool (*explain_path)(const struct mk_host *host, struct mk_str path, struct mk_buf *out, struct mk_buf *decided);
    /*
     * Tells whether all requests for the paths of a section of the plugin end here, so that none gets to the plugins
     * after: for a plugin with sections that answer requests (MK_CONF_SERVES) by a key `Match`. Its sections of one
     * name come before those of the next name in `sections`, as it asks them itself. The server warns of sections that
     * no request gets to. Called after generation_check, for hosts whose host_start has succeeded.
     */
    bool (*takes_section)(const struct mk_host *host, const struct mk_conf_section *section,
                          const void *section_struct);
    /* Commands that it adds to `monkey shell`; ends with a row without a name. */
    const struct mk_command *commands;
};

/*
 * A transport that a plugin opens connections with, if its configuration says so: a key in one of the plugin's sections
 * has a word that begins with `prefix`.
 */
struct mk_plugin_need {
    const char *transport;    /* the name of the plugin: "tls" */
    const char *key, *prefix; /* "To", "https://" */
};

struct mk_plugin_interfaces {
    /* A transport, chosen by the plugin's name after `Listen`, or by `TransportLayer`. */
    const struct mk_transport *transport;
    /*
     * Transports that it needs, for mk_generation_transport(); ends with a row without a name. Their plugins are loaded
     * even if plugins.load does not name them, before all others, as if it did.
     */
    const struct mk_plugin_need *needs;
    /* The functions of a plugin that caches files, for those that serve them (<monkey/file_cache.h>). */
    const struct mk_file_cache *file_cache;
    /* The functions of a plugin that serves files, for one that caches them (<monkey/file_cache.h>). */
    const struct mk_file_server *file_server;
    /* The functions of a plugin that knows groups of servers, for those that pass requests to them. */
    const struct mk_upstreams *upstreams;
};

/* Returns a hook of a table: `MK_PLUGIN_HOOK(plugin, paths, claims)`. NULL: the plugin does not have it. */
#define MK_PLUGIN_HOOK(plugin, table, hook) ((plugin)->table ? (plugin)->table->hook : NULL)

MK_C_END

#endif
