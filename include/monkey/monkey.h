// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a library: configure, load, start, stop. The program `monkey` uses it. For programs that answer
 * requests themselves, or have no configuration files, there is more in <monkey/embed.h>.
 *
 *     new ─► configure or one_shot, set ... ─► load ─► start ─► (signals, reload) ─► stop ─► free
 *
 * Call all functions for one server from one thread; mk_server_drain_now() and mk_server_stop_now() may be called from
 * any. The library does not print or exit: it collects problems as text. A process may have several servers, which
 * share its log (<monkey/log.h>). The program handles signals; workers block all of them.
 */
#ifndef MONKEY_MONKEY_H
#define MONKEY_MONKEY_H

#include "base/buf.h"
#include "base/str.h"
#include "log.h"
#include "status.h"

MK_C_BEGIN

struct mk_server;

/* Settings for the program that runs the server. Strings are valid until the next load or reload. */
struct mk_server_info {
    const char *error_log; /* a path; NULL: stderr */
    enum mk_log_level log_level;
    const char *pid_file; /* NULL: none */
    unsigned workers;
};

/* Returns a new server; NULL without memory. */
MK_API struct mk_server *mk_server_new(void);
/* Frees a server that does not run; `server` may be NULL. */
MK_API void mk_server_free(struct mk_server *server);

/*
 * Sets the configuration: a folder, with monkey.conf and the files that belong to it, or one file, which is read alone,
 * with what it includes. The string must stay valid until the last mk_server_load() or mk_server_reload().
 */
MK_API void mk_server_configure(struct mk_server *server, const char *path);
/* Sets a folder to serve without any configuration file, instead of mk_server_configure(). The string as there. */
MK_API void mk_server_one_shot(struct mk_server *server, const char *root);
/*
 * Sets a key of a section of the server, in place of what the files say. Messages name `origin` ("option --port"). The
 * strings must stay valid as for mk_server_configure(). Works at the next load.
 * Returns 0, -EINVAL (there is no server) or -ENOBUFS (16 keys are set already).
 */
MK_API int mk_server_set(struct mk_server *server, const char *section, const char *key, const char *value,
                         const char *origin);
/*
 * The same for a key of a plugin, in the scope where the plugin has it: the server or each host. It has no effect if
 * the plugin is not available or if plugins.load does not load it.
 * Returns 0 or -ENOBUFS (16 keys are set already, those of mk_server_set() included).
 */
MK_API int mk_server_set_plugin(struct mk_server *server, const char *section, const char *key, const char *value,
                                const char *origin);

/*
 * Says that what is loaded is only checked or shown: plugins do not change or run anything then
 * (mk_generation_is_check()). Call it before mk_server_load(); such a server cannot be started.
 */
MK_API void mk_server_check_only(struct mk_server *server);
/* Says that the process gives root up for `User` before it serves. Call it before mk_server_load(). */
MK_API void mk_server_drops_root(struct mk_server *server);
/*
 * Says that what is loaded is checked as by a reload after a start as root: files that root has opened stay open. Call
 * it before mk_server_load().
 */
MK_API void mk_server_check_after_root(struct mk_server *server);
/*
 * The same if the configuration says `Supervisor On`: the process that becomes the supervisor does not serve itself,
 * and the one that serves loads the configuration again.
 */
MK_API void mk_server_check_only_supervised(struct mk_server *server);

/*
 * Reads and checks the configuration, document roots included.
 * Returns 0, -EINVAL (mk_server_problems() says what is wrong), -ENOMEM or another -errno.
 */
MK_API int mk_server_load(struct mk_server *server);
/*
 * Checks what a start needs: binds each listener for a moment, and checks that the log and the pid file can be written.
 * Returns 0 or -EINVAL (mk_server_problems() says what is wrong, or nothing was loaded).
 */
MK_API int mk_server_check(struct mk_server *server);
/* Tells whether the process `pid` serves the configuration that is checked. */
typedef bool (*mk_server_is_own_fn)(int pid, void *ctx);
/*
 * Sets the function that mk_server_check() asks about processes that listen on an address of the configuration: one
 * that serves it already would keep the address at its next reload. Without a function an address that is in use is an
 * error.
 */
MK_API void mk_server_on_check(struct mk_server *server, mk_server_is_own_fn fn, void *ctx);

/* Appends the errors and warnings so far: each with file, line and column, and the line itself. */
MK_API void mk_server_problems(const struct mk_server *server, struct mk_buf *out);

enum mk_problem_flags {
    MK_PROBLEMS_JSON = 1,        /* objects with a comma between them, as docs/guide/operate.md describes */
    MK_PROBLEMS_AS_WARNINGS = 2, /* errors are listed as warnings */
};

struct mk_problem_counts {
    unsigned errors, warnings;
};

/*
 * Appends the errors and warnings in the form of `flags`, without those that `known` has, too (NULL: all). Lists the
 * first 100 and counts all.
 * Returns how many there are.
 */
MK_API struct mk_problem_counts mk_server_list_problems(const struct mk_server *server, const struct mk_server *known,
                                                        unsigned flags, struct mk_buf *out);

/*
 * Gets the settings for the program. Before mk_server_load() has succeeded, `log_level` is MK_LOG_INFO and the others
 * are NULL or 0.
 */
MK_API void mk_server_info(const struct mk_server *server, struct mk_server_info *ret_info);
/* Appends the effective configuration, in the syntax of its files. */
MK_API void mk_server_show(const struct mk_server *server, struct mk_buf *out);
/* Appends what was set as one file: includes and variables are resolved, and paths are absolute. */
MK_API void mk_server_show_file(const struct mk_server *server, struct mk_buf *out);
/*
 * Appends the effective configuration with one host only: the one that serves `name`, else the one whose file in sites/
 * has that name. Returns 0, -ENOENT (there is no such host), -EINVAL (nothing is loaded) or -ENOMEM.
 */
MK_API int mk_server_show_host(const struct mk_server *server, struct mk_str name, struct mk_buf *out);

/*
 * Passes a listening stream socket to the server, which uses it for the Listen line of its address instead of opening
 * one. Call it after mk_server_load() and before the start, which closes sockets that no Listen line names. `own`: the
 * path of a Unix socket is removed at the end. On success the server closes the descriptor.
 * Returns 0, -EPROTOTYPE (not a stream socket), -EINVAL (it does not listen), -EAFNOSUPPORT (neither IPv4, IPv6 nor a
 * Unix socket with a path), -ENOMEM or another -errno, such as -ENOTSOCK.
 */
MK_API int mk_server_inherit(struct mk_server *server, int fd, bool own);
/*
 * Offers plugins a listening socket that the process has inherited from a server before it, whose plugins may have had
 * it (mk_socket_take()). Before mk_server_load(); mk_server_inherit() has to be called for the same descriptor later,
 * and closes it if a plugin has taken it. Only Unix sockets with a path are offered, 256 at most.
 */
MK_API void mk_socket_offer(int fd);
/*
 * Opens the listeners without starting, for a program that drops privileges before mk_server_start(). Call
 * mk_server_start() or mk_server_free() next.
 * Returns 0, -EINVAL (nothing was loaded) or another -errno (mk_server_problems() says why).
 */
MK_API int mk_server_listen(struct mk_server *server);

/* Settings for the process itself. Strings are valid until the next load or reload. */
struct mk_server_process {
    bool supervisor;
    bool core_dumps;
    const char *user;  /* NULL: keep the user of the process */
    uint32_t uid, gid; /* of that user, and of Group if that is set */
};
/* Gets these settings; all are false, NULL or 0 before mk_server_load() has succeeded. */
MK_API void mk_server_process(const struct mk_server *server, struct mk_server_process *ret);

/* Calls `fn` for each listening socket of a running server and of its plugins; `own` as for mk_server_inherit(). */
MK_API void mk_server_each_socket(const struct mk_server *server, void (*fn)(int fd, bool own, void *ctx), void *ctx);
/* Returns the name of the transport of such a socket, such as "liana" or "tls"; NULL: the server does not have it. */
MK_API const char *mk_server_socket_transport(const struct mk_server *server, int fd);
/*
 * Prepares the next stop for the case that another process now accepts at the same sockets: it leaves the sockets'
 * paths, and skips ShutdownDelay. Idle connections are not closed at once, but with their next response, after
 * KeepAliveTimeout or after ShutdownTimeout.
 */
MK_API void mk_server_hand_over(struct mk_server *server);

/*
 * Opens the listeners, unless mk_server_listen() has, and starts the workers.
 * Returns 0, -EINVAL (nothing was loaded, or only to be checked) or another -errno (the log and mk_server_problems()
 * say why).
 */
MK_API int mk_server_start(struct mk_server *server);
/*
 * Loads the configuration again and makes it the current one. Exchanges that have begun end under the old one;
 * listeners and workers are added and removed as it says. mk_server_info() and mk_server_show() describe the new one.
 * Returns 0, -EINVAL (the server does not run, or mk_server_problems() says what is wrong), -ENOMEM,
 * -ECANCELED (mk_server_stop_now() was called) or another -errno. After a failure the server
 * continues with the old configuration.
 */
MK_API int mk_server_reload(struct mk_server *server);
/*
 * Has plugins open their log files (access logs) again, because they may have been renamed. Does not wait for it. Does
 * nothing if the server does not run.
 */
MK_API void mk_server_reopen_logs(struct mk_server *server);
/* What a plugin may ask of the program: what it does at signals of the operator. */
enum mk_server_command { MK_SERVER_RELOAD, MK_SERVER_REOPEN_LOGS, MK_SERVER_STOP };
/* Has the program carry out a command soon, as at a signal. Any thread; must not block. Returns 0 or -errno. */
typedef int (*mk_server_command_fn)(enum mk_server_command command);
/*
 * Sets the function that takes commands of plugins (<monkey/inspect.h>). Without one they are refused. Call it before
 * mk_server_start().
 */
MK_API void mk_server_on_command(struct mk_server *server, mk_server_command_fn fn);
/*
 * Stops the server, and does nothing if it does not run. First it serves on for ShutdownDelay (0 unless set), while
 * mk_request_draining() returns true. Then it accepts no connections and closes idle ones; exchanges have until
 * ShutdownTimeout to end. Returns when all workers have ended: 0, or -errno for a call that is a mistake, as from a
 * handler (<monkey/embed.h>).
 */
MK_API int mk_server_stop(struct mk_server *server);
/* Closes idle connections now, in a stop after mk_server_hand_over(). Any thread. */
MK_API void mk_server_drain_now(struct mk_server *server);
/*
 * Ends a mk_server_stop() that is under way at once: cuts all connections. During a mk_server_reload() it takes effect
 * at the end of the reload. Does not wait. Call mk_server_stop() next, unless it is under way. Any thread, also
 * handlers.
 */
MK_API void mk_server_stop_now(struct mk_server *server);

/* ── about this build ── */

/* Appends the manual of all directives, as Markdown. Returns 0, -ENOMEM or -ENOBUFS (`out` is full). */
MK_API int mk_reference(struct mk_buf *out);
/* Returns the version, "2.0.0". */
MK_API const char *mk_version(void);
/* Appends several lines about how this binary was built. */
MK_API void mk_build_info(struct mk_buf *out);

MK_C_END

#endif
