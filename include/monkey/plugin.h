// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin interface: one const struct with named hooks, all of them optional. Hooks that few plugins have are in
 * tables (<monkey/hooks.h>), to which the struct points.
 *
 *     MK_PLUGIN(hello) = {
 *         MK_PLUGIN_HEAD("hello", "1.0", "answers /hello"),
 *         .on_content = say_hello,
 *     };
 *
 * When hooks are called:
 *
 *     configuration  start ─► generation_start ─► host_start (each host) ─► generation_check ─► worker_start (each
 *                    worker) ─► worker_serve; the stops in the opposite order, worker_retire before them
 *     connection     on_accept ─► on_client ─► (requests) ─► on_close: <monkey/hooks.h>
 *     request        on_head, on_request ─► on_content ─► on_response ─► on_done
 *                    all, until one         the first     all           all
 *                    handles it             that handles it
 *
 * The plugins' hooks of one kind are called in the order of plugins.load, or without that file in the one that
 * `monkey -b` prints. Descriptors, timers and messages of a plugin are events of a worker's loop (<monkey/loop.h>).
 *
 * Threads: the hooks of connections and requests and those of workers run in the worker's thread and must not block.
 * The hooks of the configuration (start, generation_start, host_start, generation_check and their stops) and
 * reopen run in the main thread, which calls <monkey/monkey.h>, or in a thread of the server: the stops of a generation
 * that a reload has replaced. One thread at a time calls them, for all plugins and servers of the process: a stop never
 * runs at the same time as the start of the next generation or as reopen. They may block, except for reopen. With
 * `Scheduler fair` a stop that blocks delays new connections.
 *
 * State: a plugin keeps no state in global variables. Each start returns a state, which its stop gets back: of the
 * process, a generation, a host and a worker. An exchange may have one, too (mk_request_set_state()), and a connection
 * (mk_connection_set_state()).
 *
 * A generation is one loaded configuration. A reload makes a new generation next to the current one; exchanges that
 * began under the old one end under it.
 */
#ifndef MONKEY_PLUGIN_H
#define MONKEY_PLUGIN_H

#include "conf.h"
#include "log.h"
#include "request.h"
#include "transport.h"

MK_C_BEGIN

/*
 * Changes when this header, one that it includes, or <monkey/hooks.h> changes so that compiled plugins must be compiled
 * again.
 */
enum { MK_PLUGIN_ABI = 31 };

struct mk_connection; /* valid until on_close has returned, in its worker's thread */
struct mk_generation;
struct mk_host;   /* a host of one generation */
struct mk_worker; /* a thread under one generation */

/* Tables of <monkey/hooks.h>. */
struct mk_connection_hooks;
struct mk_inspect_hooks;
struct mk_path_hooks;
struct mk_plugin_interfaces;
struct mk_process_hooks;
struct mk_source_hooks;

enum mk_plugin_flags {
    MK_PLUGIN_TIMES = 1, /* mk_request_began_us() and mk_response_began_us() are needed */
    /*
     * host_start is called even if the plugin's sections have errors, to find further ones. A value that was reported
     * as wrong is as if it were not set. Without this flag host_start is not called for such a host.
     */
    MK_PLUGIN_CHECKS_ALL = 2,
    /*
     * on_head, on_request, on_content, on_response and on_done are not called for hosts whose host_start has left
     * `*ret_state` NULL, nor for a request whose head is so malformed that no host was chosen.
     */
    MK_PLUGIN_STATE_NEEDED = 4,
    /*
     * on_head and on_request are about access, and are called again for the path of an internal redirect
     * (mk_request_redirect_internally()) and for that of a file that is sent for another path
     * (mk_request_decide_access()): what they count, they count once for a request.
     */
    MK_PLUGIN_DECIDES_ACCESS = 8,
};

/* What a name is that is_source of a plugin gets. */
enum mk_source_name {
    MK_SOURCE_PATH, /* a path of the host, decoded and normalized; it has a slash at its end if it names a folder */
    MK_SOURCE_FILE, /* the absolute name of a file or folder, without links in it */
};

struct mk_plugin {
    uint32_t abi, size; /* set by MK_PLUGIN_HEAD, with the strings below */
    const char *name, *version, *summary;
    uint32_t flags; /* enum mk_plugin_flags */

    /* Sections that it adds to the configuration; ends with a row without a name. */
    const struct mk_conf_section *sections;

    /*
     * start: before the first generation that has this plugin. stop: after the last one. All generations of all servers
     * of the process share the state of start: mk_generation_plugin_state(), in any hook.
     * start returns 0 or -errno, which is an error of the configuration.
     */
    int (*start)(void **ret_state);
    void (*stop)(void *state);

    /*
     * generation_start: before the hosts of a generation. generation_stop: after its last exchange.
     * generation_start returns 0 or -errno, which is an error of the configuration.
     */
    int (*generation_start)(struct mk_generation *g, void **ret_state);
    void (*generation_stop)(struct mk_generation *g, void *state);

    /*
     * Prepares a host of a new generation: checks its configuration (mk_host_error()) and opens what requests need.
     * mk_request_host_state() returns `*ret_state`, which is NULL if it is not set.
     * Returns 0 or -errno: -EINVAL if it has reported what is wrong.
     */
    int (*host_start)(struct mk_host *host, void **ret_state);
    /* After the last exchange of the generation. */
    void (*host_stop)(struct mk_host *host, void *state);

    /*
     * Checks what concerns several hosts, after all of them have been prepared.
     * Returns 0 or -errno: -EINVAL if it has reported what is wrong.
     */
    int (*generation_check)(struct mk_generation *g, void *state);

    /*
     * worker_start: in the worker's thread, before its first request under this generation. worker_stop: after its last
     * one, in the same thread; in another one, while other hooks run, if that thread has ended (because the server
     * stops, could not start, or was reloaded with fewer workers).
     *
     * When that thread has ended its loop is closed: nothing in it calls back any more. No exchange and no connection
     * is left then. So that worker_stop need not know its thread, it may in either case call, of the functions of a
     * worker and its loop, only
     *
     *     mk_worker_index(), mk_worker_generation(), mk_worker_state(), and what a generation is asked for
     *     mk_worker_account(), to return memory that was taken from it
     *     mk_worker_loop(), for mk_event_del(), mk_timer_cancel(), mk_task_cancel() and mk_message_cancel(): to undo
     *         what is left
     *     functions whose description names worker_stop, such as mk_ws_worker_put() and mk_watched_ref_release()
     *
     * and functions that any thread may call, such as mk_log() and mk_counter_add() with NULL. It must not begin
     * anything: no event, timer, task, job or dial, no mk_worker_get(). Builds of the server without NDEBUG assert that
     * for events, timers, tasks and mk_worker_get(). What workers share needs a lock.
     *
     * worker_start returns 0 or -errno: the generation cannot be used.
     */
    int (*worker_start)(struct mk_worker *worker, void **ret_state);
    void (*worker_stop)(struct mk_worker *worker, void *state);
    /*
     * The generation is accepted, and in use in the worker's thread from now on: in that thread, after worker_start of
     * all workers and before the first request under this generation. A generation may still be refused in all starts
     * before, next to another one that serves; so what outlives a generation, such as limits of the state of start, is
     * changed here. Not called for a generation that is refused.
     */
    void (*worker_serve)(struct mk_worker *worker, void *state);
    /*
     * The worker ends, but exchanges or others may still hold it: a newer generation is in use in its thread, or the
     * thread itself ends after a reload with fewer workers, an upgrade or a stop (when ShutdownDelay is over). Called
     * once, in the worker's thread. Exchanges without an end, such as event streams, should end within
     * mk_generation_shutdown_timeout_ms(): a thread that ends cuts them then, one with a newer generation does not.
     * In a thread that ends, further exchanges may begin after this, on connections that are open already. Is not
     * called for a worker that nothing holds, or if the server cuts all connections at once; worker_stop always comes.
     */
    void (*worker_retire)(struct mk_worker *worker, void *state);

    /*
     * Is called before on_request of all plugins, for what must come first wherever the plugin is in the order.
     * Once for each request: after mk_request_rewrite() the later plugins see the new path, and those before are not
     * called again. What goes by the path that is used belongs to on_request. Returns as on_request.
     */
    int (*on_head)(struct mk_request *req);
    /*
     * Checks a request whose head is complete: access, redirects, limits.
     * Returns MK_DECLINED (the request continues), 0 (this plugin responds now or later, or calls mk_request_decline()
     * later) or -errno (the server logs it and sends 500). It is an error, too, to return MK_DECLINED after it has
     * begun a response.
     */
    int (*on_request)(struct mk_request *req);
    /*
     * Sends the response, if the plugin has one for this request. If a section [HANDLERS] of the host names one plugin
     * for the path, only that one is called.
     * Returns as on_request. If all plugins decline, the server sends 404, or 501 for MK_METHOD_OTHER.
     */
    int (*on_content)(struct mk_request *req);
    /* Reads or changes status, headers and body of a response whose head is about to be sent; once for each. */
    void (*on_response)(struct mk_request *req);
    /* The exchange is over, complete or not: see mk_request_aborted(). */
    void (*on_done)(struct mk_request *req);

    /* Tables of <monkey/hooks.h>; NULL: the plugin has none of these hooks. */
    const struct mk_connection_hooks *connections;
    const struct mk_path_hooks *paths;
    const struct mk_source_hooks *sources;
    const struct mk_process_hooks *process;
    const struct mk_inspect_hooks *inspection;
    const struct mk_plugin_interfaces *interfaces;
};

#define MK_PLUGIN(name) \
    extern MK_API const struct mk_plugin mk_plugin_##name; \
    const struct mk_plugin mk_plugin_##name

#define MK_PLUGIN_HEAD(plugin_name, plugin_version, plugin_summary) \
    .abi = MK_PLUGIN_ABI, .size = sizeof(struct mk_plugin), .name = plugin_name, .version = plugin_version, \
    .summary = plugin_summary

/* ── plugins ── */

/*
 * Returns the directory of plugins that are configured by name alone, and of files that belong to them: ../lib/monkey
 * next to the program, else monkey/ next to libmonkey.so or the folder of that, else where they were installed. The
 * string is static. For the hooks of the configuration.
 */
MK_API const char *mk_plugin_dir(void);

/* Is called for one worker with the state of its worker_start. */
typedef void (*mk_worker_visit_fn)(struct mk_worker *worker, void *state, void *ctx);
/*
 * Calls `fn` in the calling thread, one after the other, for all workers of the process in which worker_start of
 * `plugin` has succeeded and worker_stop was not called yet: of all servers, and during a reload of the new generation
 * and of those that still have exchanges. Any thread, also within a hook; not within `fn`.
 *
 * The workers continue running. So `fn` may read of the states only what is atomic or does not change after
 * worker_start, and call only mk_worker_index() and mk_worker_generation(). No state is freed meanwhile: a worker that
 * starts or ends waits for the visit, so `fn` must not block. A count that should last longer than its worker is added
 * to the state of start by worker_stop, at which time the worker is not visited any more.
 */
MK_API void mk_plugin_each_worker(const struct mk_plugin *plugin, mk_worker_visit_fn fn, void *ctx);

/* ── hosts: configuration; strings and structs are valid as long as the generation ── */

/*
 * Return the struct of a section: of the host's file, or of the server's files. If the section is absent, it has the
 * defaults. A section that repeats (MK_CONF_REPEAT) has one struct for each time it appears: the first is returned, or
 * NULL if it does not appear. They return NULL, too, if `section` does not belong to a loaded plugin.
 *
 * The structs of a section of hosts that repeats are those of the host's file and then those of monkey.conf, which all
 * hosts share. One rule holds for all sections with a key `Match`: the first whose pattern matches the path is used, as
 * a whole.
 */
MK_API const void *mk_host_conf(const struct mk_host *host, const struct mk_conf_section *section);
MK_API const void *mk_host_server_conf(const struct mk_host *host, const struct mk_conf_section *section);
/* Returns the struct of a repeating section that follows `data`; NULL after the last one. */
MK_API const void *mk_host_conf_next(const struct mk_host *host, const struct mk_conf_section *section,
                                     const void *data);
/*
 * The same, but leaves out most sections that do not match a path, where there are many: for plugins that continue
 * after one that matches. What is returned is still to be matched. `pattern` is the offset of the struct mk_pattern of
 * the key `Match`; `data` NULL: begins with the first section.
 */
MK_API const void *mk_host_conf_next_match(const struct mk_host *host, const struct mk_conf_section *section,
                                           size_t pattern, struct mk_str path, const void *data);
/*
 * Iterates over the sections before `rule`, in the host's file or in monkey.conf, where `rule` stands, that may match
 * every path of `rule`: whether one does is for mk_pattern_covers() to say. `data` NULL: begins with the first section.
 * Returns NULL after the last one.
 */
MK_API const void *mk_host_conf_next_cover(const struct mk_host *host, const struct mk_conf_section *section,
                                           size_t pattern, const void *rule, const void *data);

/*
 * Finds the first section that matches a path, among those of mk_host_conf() and mk_host_conf_next(). `pattern` is the
 * offset of the struct mk_pattern. A path that does not begin with a slash ("OPTIONS *", or it could not be decoded)
 * counts as "/". `*ret_section` is the section's struct; NULL: none matches, or it is not known.
 * Returns 0, or a negative result of mk_pattern_match(): it is not known whether a section before matches, so what
 * protects must refuse.
 */
MK_API int mk_host_conf_match(const struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                              struct mk_str path, const void **ret_section);

/*
 * Returns whether a repeating section of that name, of any loaded plugin, holds for the host: its file has it, or
 * monkey.conf has it for all hosts.
 */
MK_API bool mk_host_has_section(const struct mk_host *host, struct mk_str name);
/* Returns the state that host_start of `plugin` has returned; NULL if it has none. */
MK_API void *mk_host_state(const struct mk_host *host, const struct mk_plugin *plugin);
/* Returns the generation of the host; valid as long as the host. Any thread. */
MK_API struct mk_generation *mk_host_generation(const struct mk_host *host);

/*
 * Reports an error of the configuration, with file and line, at the field at `offset` of a section's struct. `nth`,
 * from 0: an item of a list, a line of a key that repeats, or a pair of a section with free keys. Only during
 * host_start and generation_check, which then return -EINVAL. An error in a section of the server that several hosts
 * report appears once.
 */
MK_API void mk_host_error(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth,
                          const char *format, ...) MK_PRINTF(5, 6);
/* Reports a warning in the same way; the configuration can be used. */
MK_API void mk_host_warn(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth,
                         const char *format, ...) MK_PRINTF(5, 6);
/* Returns true if that field was set, but reported as wrong. For plugins with MK_PLUGIN_CHECKS_ALL. */
MK_API bool mk_host_is_wrong(const struct mk_host *host, const void *section_struct, size_t offset);

/*
 * Checks a repeating section of rules of which the first that matches is used: reports each rule that can never match,
 * because an earlier one matches all of its paths. A rule of monkey.conf may be overridden by those of a host, but not
 * by an earlier one of monkey.conf. `pattern` is the offset of the struct mk_pattern; a section in which it is an exact
 * one without text, as the section's check may set it, is no rule. Only during host_start.
 * Returns 0, -EINVAL (there are such rules), -ENOMEM or -ENOBUFS (millions of rules).
 */
MK_API int mk_host_check_patterns(struct mk_host *host, const struct mk_conf_section *section, size_t pattern);
/*
 * Checks rules as mk_host_check_patterns(), some of which have further conditions: one for which `is_conditional`
 * returns true does not keep later ones from matching.
 */
MK_API int mk_host_check_rules(struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                               bool (*is_conditional)(const void *rule));

/*
 * Appends file and line of a section ("sites/default:12"), for log lines and messages about it. From host_start on,
 * any thread.
 */
MK_API void mk_host_conf_origin(const struct mk_host *host, const void *section_struct, struct mk_buf *out);
/*
 * Appends the file of the host ("sites/default"), not one that it includes. With the host's first name it tells the
 * host apart from all others, also over reloads: hosts of different listeners may have the same name. Hosts of a
 * program (<monkey/embed.h>) have "text". From host_start on, any thread.
 */
MK_API void mk_host_file(const struct mk_host *host, struct mk_buf *out);

/*
 * Returns what the host is called in counters and logs: its first name, without one that of its file ("intranet" of
 * sites/intranet), else "default". Any thread.
 */
MK_API struct mk_str mk_host_label(const struct mk_host *host);
/*
 * Writes a line to the error log as mk_log(), and after the message ", host: " and mk_host_label(). The message is cut
 * at 559 bytes. `host` NULL: no name. Lines are limited as those of mk_request_log(). Any thread.
 */
MK_API void mk_host_log(const struct mk_host *host, enum mk_log_level level, const char *format, ...) MK_PRINTF(3, 4);
/* The same with the limit of mk_request_log_text(), together with those of the same format. Any thread. */
MK_API void mk_host_log_text(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
    MK_PRINTF(3, 4);
/* The same without a limit, for a caller that has another one. */
MK_API void mk_host_log_all(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
    MK_PRINTF(3, 4);

/*
 * Tells that requests of the host may get more because a rule allows them (mk_request_access()), as by `Satisfy any` of
 * [AUTH]. In host_start.
 */
MK_API void mk_host_use_access(struct mk_host *host);
/* Returns whether a plugin has told that. From generation_check on. */
MK_API bool mk_host_uses_access(const struct mk_host *host);

/* ── hosts: names and listeners ── */

/*
 * Returns the n-th name of the host, from 0, as ServerName has it; `.p` is NULL if there are not that many. A name may
 * be a wildcard ("*.example.org").
 */
MK_API struct mk_str mk_host_name(const struct mk_host *host, unsigned n);
/* Returns true if requests for `name` (without a port, in any case) go to this host by a name or wildcard of it. */
MK_API bool mk_host_has_name(const struct mk_host *host, struct mk_str name);
/* Returns true if `text` is the address of one of the server's Listen lines, written in the same way. */
MK_API bool mk_host_has_listener(const struct mk_host *host, struct mk_str text);
/*
 * Reserves the server's Listen lines with an address of the list: the plugin serves nothing else there. Returns whether
 * a line is left that no call, of any host, has reserved. While a configuration is loaded.
 */
MK_API bool mk_host_reserve_listeners(const struct mk_host *host, const struct mk_conf_list *listeners);
/*
 * Keeps the listener of that address open until a drain ends; others close when it begins. Connections that are
 * accepted in the drain carry one request each and do not prolong it. Does nothing if `text` is not the address of a
 * Listen line: see mk_host_has_listener(). Only during host_start.
 */
MK_API void mk_host_accept_in_drain(struct mk_host *host, struct mk_str text);

/*
 * Returns whether clients on other machines may reach the host: it has a Listen line that is not of a loopback address.
 */
MK_API bool mk_host_is_public(const struct mk_host *host);

/*
 * Returns true if a request for http://`authority`/ certainly goes to this host: the name is one of its names and not a
 * wildcard, and the port is that of a TCP listener for plain HTTP.
 */
MK_API bool mk_host_serves(const struct mk_host *host, struct mk_str authority);
/* Returns true if a request for https://`authority`/ certainly goes to this host, at a listener with tls. */
MK_API bool mk_host_serves_https(const struct mk_host *host, struct mk_str authority);

/*
 * Returns true if clients of the host are asked for a certificate when they connect with TLS, so that mk_tls_info may
 * name one. Only in generation_check.
 */
MK_API bool mk_host_asks_certificate(const struct mk_host *host);
/*
 * Returns HandlerTimeout of the host in milliseconds, and in `*ret_least` the least one that it has for any path
 * ([LIMITS]). Only in generation_check.
 */
MK_API uint32_t mk_host_handler_timeout_ms(const struct mk_host *host, uint32_t *ret_least);

/* ── hosts: files ── */

enum mk_open_flags {
    MK_OPEN_FOLDER = 1, /* the folder itself, even if it has an index */
    MK_OPEN_SOURCE = 2, /* a source as well, for the plugin that runs it: its bytes must not be sent */
};
/*
 * Opens what GET of a path of the host sends, through the plugin that serves files, with its rules: hidden names,
 * links, aliases, folders of users. `path` is decoded and normalized, and ends with a NUL. May block: for a job
 * (<monkey/loop.h>) that holds the worker. Any thread. mk_request_allows_path() tells whether a client may have it.
 * Returns a descriptor for reading (close-on-exec) of a regular file or, if the path ends with a slash, of the index of
 * the folder or else of the folder itself; -ENOENT and similar (there is nothing, or a source), -EISDIR (a folder, and
 * the path has no slash), -EACCES or another -errno.
 */
MK_API int mk_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags);

/*
 * Files that are programs, and copies of them: every plugin that sends, shows or packs files of a host asks these
 * functions, and treats what they return true for as missing. Any thread.
 * mk_host_has_sources(): whether the host has such files at all (mk_source_hooks.is_source). From generation_check on.
 * mk_host_is_source(): whether a name is that of one. `name` need not end with a NUL.
 * mk_host_is_source_fd(): whether an open file or folder is one, by its name at this moment, behind all links. Costs a
 *     system call if the host has such files. Returns true, too, if the name is not known: it needs /proc.
 * mk_host_is_source_below(): the same, by the path that leads to the file if `prefix` is that of the folder.
 */
MK_API bool mk_host_has_sources(const struct mk_host *host);
MK_API bool mk_host_is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name);
MK_API bool mk_host_is_source_fd(const struct mk_host *host, int fd);
MK_API bool mk_host_is_source_below(const struct mk_host *host, int fd, int folder_fd, struct mk_str prefix);

/* ── folders of files that plugins add to a host ── */

/* A folder that is served below a path, as an [ALIAS] of the host would be, but with TryFiles. */
struct mk_host_folder {
    const struct mk_host_folder *next; /* set by mk_host_add_folder() */
    struct mk_str url;                 /* "/path" without a last slash; empty: all paths of the host */
    struct mk_str path;
    const void *section_struct; /* the section and field that configure it: see mk_host_error() */
    size_t offset;
};

/*
 * Adds a folder to the host, after those that were added before: the first one whose URL fits a path is used. Copies
 * the strings. During host_start and generation_check.
 * Returns 0, -EALREADY (the plugin that serves files has read them: it must come later in plugins.load) or -ENOMEM.
 */
MK_API int mk_host_add_folder(struct mk_host *host, const struct mk_host_folder *folder);
/*
 * Returns the first folder that was added, or NULL; valid as long as the generation. For the plugin that serves files,
 * in generation_check: no folder can be added afterwards.
 */
MK_API const struct mk_host_folder *mk_host_folders(struct mk_host *host);

/* ── generations ── */

/* Returns the struct of a section of the server's files, as mk_host_server_conf(). */
MK_API const void *mk_generation_conf(const struct mk_generation *g, const struct mk_conf_section *section);
/* Returns the struct of the next section with MK_CONF_REPEAT; NULL after the last one. `data` NULL: the first. */
MK_API const void *mk_generation_conf_next(const struct mk_generation *g, const struct mk_conf_section *section,
                                           const void *data);
/* Returns the state that generation_start of `plugin` has returned; NULL if it has none. */
MK_API void *mk_generation_state(const struct mk_generation *g, const struct mk_plugin *plugin);
/*
 * Returns the state that start of `plugin` has returned; NULL if it has none. Hooks of hosts, workers, connections and
 * requests get the generation from mk_host_generation() and mk_worker_generation(). Any thread.
 */
MK_API void *mk_generation_plugin_state(const struct mk_generation *g, const struct mk_plugin *plugin);

/*
 * Returns true if the configuration is only checked or shown (`monkey --test`, mk_server_check_only()): no worker will
 * start. Plugins then look at files and services, but neither change nor run them. Any thread.
 */
MK_API bool mk_generation_is_check(const struct mk_generation *g);
/*
 * Returns true if root loads the configuration for a server that becomes another user (`User`) before it serves: what
 * only root can open must be opened now. Sets the user and group. Main thread.
 */
MK_API bool mk_generation_drops_root(const struct mk_generation *g, uint32_t *ret_uid, uint32_t *ret_gid);
/*
 * Returns true if a file at the path would be a host of the next load: its folder is sites/. While a configuration is
 * loaded. Main thread.
 */
MK_API bool mk_generation_is_in_sites(const struct mk_generation *g, struct mk_str path);
/* Returns true if root has started this server, which is another user by now (`User`). */
MK_API bool mk_generation_has_dropped_root(const struct mk_generation *g);
/* Returns true if `User` checks what a reload can do after a start as root, which has opened files of its own. */
MK_API bool mk_generation_is_after_root(const struct mk_generation *g);

/* Returns whether the server serves a folder without a configuration (mk_server_one_shot()). Any thread. */
MK_API bool mk_generation_is_one_shot(const struct mk_generation *g);
/* Returns the number of the generation among those that have served, from 1. From worker_start on, any thread. */
MK_API uint32_t mk_generation_number(const struct mk_generation *g);
/* Returns the number of workers of the generation, whose indexes begin with 0; constant. Any thread. */
MK_API unsigned mk_generation_workers(const struct mk_generation *g);
/* Returns ShutdownTimeout in milliseconds: how long exchanges may continue once a thread ends. Any thread. */
MK_API uint32_t mk_generation_shutdown_timeout_ms(const struct mk_generation *g);

/*
 * Return the first host of the generation, and the next one after `host`; NULL: there is none. From generation_check
 * on, which is not called for a configuration without hosts: there is a first one.
 */
MK_API struct mk_host *mk_generation_first_host(const struct mk_generation *g);
MK_API struct mk_host *mk_host_next(const struct mk_host *host);
/* Returns true if the address is in TrustedProxies. Any thread. */
MK_API bool mk_generation_trusts(const struct mk_generation *g, const struct mk_address *address);
/* Returns true if TrustedProxies is set. Any thread. */
MK_API bool mk_generation_trusts_proxies(const struct mk_generation *g);

/*
 * Returns the transport of a loaded plugin, for connections that the caller opens (connect() of <monkey/transport.h>);
 * see mk_plugin_interfaces.needs. It stays valid when the generation ends. NULL: there is none, and `error` has a
 * phrase, "the plugin tls is missing: it takes the file /usr/lib/monkey/tls.so". From generation_start on, any thread.
 */
MK_API const struct mk_transport *mk_generation_transport(const struct mk_generation *g, const char *name,
                                                          struct mk_buf *error);
/*
 * The budget for bodies that wait (<monkey/kit/spool.h>), which the whole process shares: [SPOOL].
 * mk_host_hold_spools(): makes it for the generation of the host, in host_start, once or more often. Returns 0, -ENOMEM
 *     or -EINVAL (no file can be made in Folder, which is reported). `*ret_folder` is the folder, valid as long as the
 *     generation, and `*ret_err` 0, or with a folder that is not configured -errno: no file can be made in it.
 * mk_generation_spools(): returns the budget, valid as long as the generation; NULL: no plugin has held it. Any thread.
 */
struct mk_spool_budget;
MK_API int mk_host_hold_spools(struct mk_host *host, const char **ret_folder, int *ret_err);
MK_API struct mk_spool_budget *mk_generation_spools(const struct mk_generation *g);

/* ── generations, for plugins with a transport ── */

/*
 * Returns the host for a name without a port at the `listener` of a struct mk_io: the host of that name, or the default
 * host there. NULL: without the hosts that are bound to listeners. Only from generation_check on, when all hosts have
 * been prepared.
 */
MK_API struct mk_host *mk_generation_host(const struct mk_generation *g, const void *listener, struct mk_str name);
/* Returns true if the server accepts the protocol of this ALPN name: "http/1.1", and "h2" if that is configured. */
MK_API bool mk_generation_supports_alpn(const struct mk_generation *g, struct mk_str protocol);
/*
 * Returns the port of the first Listen line with the transport of `plugin`, 0 (a Unix socket, or the system chooses the
 * port) or -ENOENT (there is no such line).
 */
MK_API int mk_generation_port(const struct mk_generation *g, const struct mk_plugin *plugin);
/*
 * Reports an error of the configuration at the first Listen line with the transport of `plugin`. Only during
 * generation_check, which then returns -EINVAL.
 */
MK_API void mk_generation_listen_error(struct mk_generation *g, const struct mk_plugin *plugin, const char *sentence);

/* ── Unix sockets that outlive the process ── */

/*
 * Listening Unix sockets that a plugin opens at its own paths, and that shall outlive the process: an upgrade passes
 * them on, and a supervisor keeps them over a crash. The next process may lack the rights to open them again.
 * mk_socket_take(): returns the socket at a path that the process before has passed on, and passes it on, too; -ENOENT
 *     (also if the path is gone or leads to another socket) or another -errno. Connects to the path. In
 *     generation_check; nothing is left to be taken once the process serves.
 * mk_socket_keep(): passes a new socket on from now on. Returns 0 or -ENOSPC: all plugins keep 16 at most.
 * mk_socket_drop(): does not any more; to be called before the plugin closes the socket. Returns whether another
 *     process has it, so that its path must stay: the next one, or the one before if this one has not served.
 * mk_socket_is_handed_over(): another process accepts there, so this one should not. In worker_retire.
 * Any thread, unless it says otherwise.
 */
MK_API int mk_socket_take(const char *path);
MK_API int mk_socket_keep(int fd);
MK_API bool mk_socket_drop(int fd);
MK_API bool mk_socket_is_handed_over(void);

/* ── workers ── */

/*
 * Returns the number of the worker, from 0. This and the other functions of a worker: in its thread only, except where
 * mk_plugin_each_worker() allows it.
 */
MK_API unsigned mk_worker_index(const struct mk_worker *worker);
/*
 * Return the loop of the worker, and the account of its memory. Both live as long as the thread, and until worker_stop
 * has returned.
 */
MK_API struct mk_loop *mk_worker_loop(const struct mk_worker *worker);
MK_API struct mk_account *mk_worker_account(const struct mk_worker *worker);
/*
 * Notes a descriptor that the plugin has opened for a request, such as that of a dial; a negative one: there was none
 * left. If they are running short, low_on_descriptors of the plugins is called, as for connections of clients.
 */
MK_API void mk_worker_note_descriptor(struct mk_worker *worker, int fd);
/* Returns how many connections are open in the worker's thread, whichever generation accepted them. */
MK_API uint32_t mk_worker_connections(const struct mk_worker *worker);
/* Returns the generation of the worker; valid as long as the worker is held (mk_worker_get()). */
MK_API struct mk_generation *mk_worker_generation(const struct mk_worker *worker);
/* Returns the state that worker_start of `plugin` has returned; NULL if it has none. */
MK_API void *mk_worker_state(const struct mk_worker *worker, const struct mk_plugin *plugin);

/*
 * mk_worker_get() holds the worker, and so the generation with all states of its hosts and of this worker, until
 * mk_worker_put() in the same thread. An exchange holds its worker. Work that may continue after the exchange (a job, a
 * connection to a backend) holds it itself. mk_worker_get() returns `worker`.
 */
MK_API struct mk_worker *mk_worker_get(struct mk_worker *worker);
MK_API void mk_worker_put(struct mk_worker *worker);

/*
 * Count work for which no client waits, but a stop of the server does, up to ShutdownTimeout: the thread of the worker
 * ends with the last of it. worker_stop ends what is left then, without mk_worker_end_work(). The work also holds the
 * worker: mk_worker_get(). In the thread of the worker.
 */
MK_API void mk_worker_begin_work(struct mk_worker *worker);
MK_API void mk_worker_end_work(struct mk_worker *worker);

/* ── connections, in their worker's thread ── */

/* Returns the address of the other end, as mk_request_peer(). With `Listen ... proxy` that is the proxy. */
MK_API struct mk_address mk_connection_peer(struct mk_connection *conn);
/*
 * Returns the client: the one that the PROXY header has named, else the peer. From on_client on. If it is a proxy of
 * TrustedProxies, its requests may be those of other clients: mk_connection_is_proxy(), mk_request_client().
 */
MK_API struct mk_address mk_connection_client(const struct mk_connection *conn);
/* Returns the address of this machine that the peer has connected to. Asks the kernel. */
MK_API struct mk_address mk_connection_local(const struct mk_connection *conn);
/*
 * Returns true if mk_connection_client() is one of TrustedProxies: each request has its own client, which its
 * RealIPHeader names, or none. Asks the configuration in use.
 */
MK_API bool mk_connection_is_proxy(const struct mk_connection *conn);
/* Returns the address of the Listen line ("127.0.0.1:9000"); valid until the hook returns. */
MK_API struct mk_str mk_connection_listener(const struct mk_connection *conn);
/* Returns the worker that serves the connection, under the generation in use; valid until the hook returns. */
MK_API struct mk_worker *mk_connection_worker(const struct mk_connection *conn);
/* Returns the number of the connection, from 1, which is unique in the process. */
MK_API uint64_t mk_connection_id(struct mk_connection *conn);

/* Frees the state of a connection. Must not call functions of the connection. */
typedef void (*mk_connection_release_fn)(void *state);
/*
 * Keep a pointer of `plugin` for a connection: the hooks of the connection and of its requests get it from
 * mk_connection_state(), which returns NULL if none was set. A connection without a state takes no memory for it. A
 * second call replaces state and `release`, and does not call the former `release`.
 *
 * `release` (NULL: none) is called once with a state other than NULL, in the worker's thread: after on_close of all
 * plugins; if another plugin has refused the connection in on_accept; and after a reload that has removed the plugin,
 * once no exchange of this thread uses an older configuration that has it, however long the connection lasts. The state
 * of start (mk_generation_plugin_state()) is still valid then. States of generations, hosts and workers may be gone: a
 * state of a connection does not point to them, because a connection outlives reloads. A plugin whose file has changed
 * counts as removed, and as added anew without a state.
 *
 * mk_connection_set_state() returns 0, -ENOMEM, or -ENOENT (no configuration of this thread has `plugin`).
 */
MK_API int mk_connection_set_state(struct mk_connection *conn, const struct mk_plugin *plugin, void *state,
                                   mk_connection_release_fn release);
MK_API void *mk_connection_state(const struct mk_connection *conn, const struct mk_plugin *plugin);
/* Returns the connection of the request; valid until the exchange ends. The streams of HTTP/2 share it. */
MK_API struct mk_connection *mk_request_connection(const struct mk_request *req);

/* ── requests ── */

/* Returns the worker of the exchange, under the generation in which it began; valid until the exchange ends. */
MK_API struct mk_worker *mk_request_worker(const struct mk_request *req);

/*
 * Declines a request for which on_head, on_request or on_content has returned 0: the next plugin is called, before this
 * function returns. Call it at most once, later than the hook, and only before a response has begun. Does nothing if
 * the response has ended.
 *
 * `req` and its arena are valid until the callback that called this returns, even if the next plugin has answered, and
 * then for that plugin until the exchange ends. What this plugin has allocated in the arena stays until then, and its
 * clean-ups (mk_arena_defer()) run then: cancel timers and dials that would still call back.
 */
MK_API void mk_request_decline(struct mk_request *req);

/*
 * Tells whether the client of `req` may GET another path of the host, for a plugin that shows the names or bytes of
 * other paths: asks allows_path of all plugins, and [HANDLERS], which may give the path to a plugin that makes its
 * content instead of sending the file; a source (mk_host_is_source()) is allowed to no client. `path`: decoded,
 * normalized, with a NUL after it, and with a slash at its end for a folder. Says nothing about the file: see
 * mk_host_open_path().
 * Returns 1 (yes), 0 (no) or -errno (it is not known: no).
 */
MK_API int mk_request_allows_path(struct mk_request *req, struct mk_str path);
/*
 * Tells the same of a source that the caller, `plugin`, would run for the path: other plugins' rules and logins decide,
 * and that the path is that of a source of this plugin is no obstacle. Returns as mk_request_allows_path().
 */
MK_API int mk_request_allows_source(struct mk_request *req, const struct mk_plugin *plugin, struct mk_str path);
/*
 * Finds the plugin that makes the content of another path of the host, for a message about a path that is not allowed:
 * [HANDLERS] names it, or it says by allows_path that the path is its own. The plugin that handles `req` now does not
 * count. Returns NULL if there is none: the path is that of a file, or of nothing.
 */
MK_API const struct mk_plugin *mk_request_find_responder(struct mk_request *req, struct mk_str path);

/*
 * Returns the state of `plugin` for the request's host; NULL if it has none, or if the request's head could not be
 * read, so that no host was chosen.
 */
MK_API void *mk_request_host_state(const struct mk_request *req, const struct mk_plugin *plugin);
/* Returns the request's host; the default host if none was chosen. */
MK_API const struct mk_host *mk_request_host_conf(const struct mk_request *req);

/*
 * Keep a pointer of `plugin` for this exchange: the later hooks and callbacks of the exchange get it, up to on_done. It
 * may point into the arena of the exchange; what it points to elsewhere is the plugin's, to be freed in on_done or with
 * mk_arena_defer(). mk_request_state() returns NULL if none was set. mk_request_set_state() returns 0, -ENOMEM, or
 * -ENOENT (`plugin` does not belong to the generation of the exchange).
 */
MK_API int mk_request_set_state(struct mk_request *req, const struct mk_plugin *plugin, void *state);
MK_API void *mk_request_state(const struct mk_request *req, const struct mk_plugin *plugin);

enum { MK_REWRITES_MAX = 10, MK_REWRITE_BYTES_MAX = 16384 };
/*
 * Replaces path and query of the request, for the server and for the plugins whose hooks are called later: rules,
 * limits, handlers and files are those of the new path. The target stays (mk_request_target()), so that logs show what
 * the client has sent. `path` is not decoded; it is decoded once and normalized as the path of a target. `query`, not
 * decoded, is what mk_request_query() returns from then on; `.p` NULL: none. Copies both.
 *
 * Only before the first on_request: in on_head, or before the mk_request_decline() that ends a wait in on_head. No
 * on_head that was called is called again, and the host stays.
 * Returns 0 or, with nothing changed, -EALREADY (it is too late, or a response has ended), -EINVAL (the request has no
 * path, as CONNECT; or `path` does not begin with a slash, has a byte other than visible ASCII, a `?`, `#`, backslash,
 * malformed escape, NUL, or a segment "." or ".."; or `query` has a byte other than visible ASCII, or a `#`), -ENOENT
 * (an encoded slash in a segment), -ENAMETOOLONG (more than MK_REWRITE_BYTES_MAX bytes), -ELOOP (the request was
 * rewritten MK_REWRITES_MAX times) or -ENOMEM.
 */
MK_API int mk_request_rewrite(struct mk_request *req, struct mk_str path, struct mk_str query);

/*
 * Returns whether a plugin claims the request (mk_path_hooks.claims). For plugins that redirect, or that take a site
 * out of service, before they do.
 */
MK_API bool mk_request_is_claimed(struct mk_request *req);

/* Returns the address of the Listen line of the request's connection; valid until the exchange ends. */
MK_API struct mk_str mk_request_listener(const struct mk_request *req);
/* Returns true once the server was told to stop. It serves on for ShutdownDelay, and ShutdownTimeout at most. */
MK_API bool mk_request_draining(const struct mk_request *req);
/* Returns true, in on_done, if the response was not sent completely: the client has left, or the response failed. */
MK_API bool mk_request_aborted(const struct mk_request *req);
/* Returns, in on_done, the bytes of the response's body that were sent. */
MK_API uint64_t mk_request_bytes_sent(const struct mk_request *req);

MK_C_END

#endif
