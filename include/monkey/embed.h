// SPDX-License-Identifier: Apache-2.0
/*
 * The server inside another program: functions of the program answer requests, and the configuration is a text. See
 * docs/guide/embed.md for a tour.
 *
 *     struct mk_server *server = mk_server_new();
 *     mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:8080\n");
 *     mk_server_folder(server, "/srv/www");
 *     mk_server_handle(server, "GET", "/hello/:name", say_hello, NULL);
 *     if (mk_server_start(server) < 0)
 *         puts(mk_server_error(server));
 *
 * Errors are values: a function that fails returns -errno, and mk_server_error() says what to do. All of them accept a
 * `server` of NULL, and then return -EINVAL, so that a program may check the result of mk_server_start() only. A call
 * that is a mistake of the program itself (at the wrong time, in the wrong thread) is also logged, and is an assertion
 * in builds without NDEBUG.
 *
 * The library does not change signal handlers, the working directory, the locale, the environment, stdin, stdout or
 * stderr. All its descriptors are close-on-exec, and above 2: where the program has closed 0, 1 or 2, these are
 * /dev/null until the last server is freed, unless the program replaces them. Keys of [SERVER] for a process (User,
 * Group, Supervisor, CoreDumps, PidFile, ErrorLog, LogLevel) have no effect, and are warned of. A program may fork
 * before mk_server_start(); a child of a program whose server runs must not use that server, and calls return -EPERM
 * there.
 *
 * Threads: as <monkey/monkey.h>. Strings that are passed to these functions are copied.
 */
#ifndef MONKEY_EMBED_H
#define MONKEY_EMBED_H

#include <stdarg.h>

#include "counters.h"
#include "log.h"
#include "monkey.h"
#include "plugin.h"
#include "request.h"

MK_C_BEGIN

/* ── before the start ── */

/*
 * Sets the configuration as text, in place of files. It is that of one file: each line [HOST example.org] begins a
 * host, and the first host answers for names that no other has. @INCLUDE is refused; relative paths begin at the
 * working directory. Plugins that the text mentions are loaded. Without a DocumentRoot no files are served. A second
 * call replaces the first.
 *
 * A server that runs keeps its text: the call changes nothing then, and mk_server_reload() loads the same text again,
 * with plugins and files that have changed. For another one call mk_server_stop(), mk_server_text(), mk_server_start().
 * Returns 0, -EBUSY (the server runs) or -ENOMEM. mk_server_start(), or mk_server_load(), reports what is wrong in it.
 */
MK_API int mk_server_text(struct mk_server *server, const char *text);
/* Serves the files of a folder, as the default host. Returns 0, -EBUSY or -ENOMEM. */
MK_API int mk_server_folder(struct mk_server *server, const char *folder);

/*
 * Answers a request, as on_content of a plugin does (<monkey/plugin.h>): in a worker's thread, without blocking.
 * Returns 0 (it responds now or later), MK_DECLINED (the next plugin is asked: files, for example) or -errno (500).
 */
typedef int (*mk_handle_fn)(struct mk_request *req, void *ctx);
/*
 * Has `fn` answer requests with one of `methods` ("GET", "GET, POST", "ANY") whose path fits `pattern`
 * (<monkey/kit/routes.h>): "/users/:id", "/files/" followed by "*path". All hosts have the handler. HEAD goes to the
 * handler for GET, which need not care; OPTIONS is answered, and other methods get 405, unless GET or HEAD may be for a
 * file. A path that fits with a slash after it is redirected. Access rules, limits and logs apply as to files. Returns
 * 0, -EINVAL (a pattern or method that cannot be), -EEXIST (the same again), -EBUSY (the server runs) or -ENOMEM.
 */
MK_API int mk_server_handle(struct mk_server *server, const char *methods, const char *pattern, mk_handle_fn fn,
                            void *ctx);

/*
 * Adds a plugin of the program: `plugin` must be valid until mk_server_free(). It comes after the transports and
 * before all others, in the order of these calls, and needs no name in a file. Nothing needs to be exported for it.
 * Returns 0, -ENOEXEC (it was compiled with other headers), -EEXIST (the same name), -ENOBUFS (16 are added), -EBUSY
 * (the server runs) or -ENOMEM.
 */
MK_API int mk_server_add_plugin(struct mk_server *server, const struct mk_plugin *plugin);

/*
 * Has the server run in the thread that calls mk_server_start(), without own threads for requests: it works
 * within mk_server_run_once() only, with one worker. Before mk_server_load() and mk_server_start().
 * Returns 0, -EBUSY (the server runs) or -ENOMEM.
 */
MK_API int mk_server_in_caller(struct mk_server *server);

/* ── while it runs ── */

/* Returns the port of the first Listen line that has one, also if the system chose it (`Listen 0`); -errno: none. */
MK_API int mk_server_port(const struct mk_server *server);

/*
 * Handles what has happened, for a server with mk_server_in_caller(). Waits up to `timeout_ms` for something to happen:
 * 0: not at all; below 0: without a limit. Handlers are called by it. SIGPIPE is blocked in the thread meanwhile, and
 * the mask of signals is restored.
 * Returns 0, -EINVAL (the server does not run, or has threads), -EPERM (another thread), -EDEADLK (called by a
 * handler), -ECANCELED (mk_server_stop_now() was called: call mk_server_stop()) or another -errno.
 */
MK_API int mk_server_run_once(struct mk_server *server, int timeout_ms);
/*
 * Returns a descriptor that is readable when mk_server_run_once(server, 0) has something to do, for the loop of the
 * program: poll(2), GLib, libuv, libevent. Timers of the server make it readable, too. It is the server's, and closed
 * by mk_server_stop(). Call it after the start, in the thread of the server. Returns -errno as mk_server_run_once().
 */
MK_API int mk_server_fd(struct mk_server *server);

/* ── requests of mk_server_handle(), until the exchange ends ── */

/*
 * Returns the part of the path that is `name` in the pattern, decoded, without a NUL after it; `.p` NULL: there is
 * none.
 */
MK_API struct mk_str mk_request_param(const struct mk_request *req, const char *name);

/*
 * Responds with a status, a Content-Type (NULL: none) and a body, which is copied, and ends the response. What a
 * handler returns then: 0, -EINVAL (status or type), -EALREADY (a response has begun) or -ENOMEM.
 */
MK_API int mk_response_send(struct mk_request *req, int status, const char *type, struct mk_str body);
/* The same with a format of printf(3), for up to 64 KB; -E2BIG: more. */
MK_API int mk_response_printf(struct mk_request *req, int status, const char *type, const char *format, ...)
    MK_PRINTF(4, 5);

/* ── errors, problems ── */

/*
 * Returns why the last call failed that has returned an error: a sentence, or the first problem of the configuration
 * with its place. Empty if no call has failed. Valid until the next call for this server; never NULL, also for a
 * `server` of NULL.
 */
MK_API const char *mk_server_error(struct mk_server *server);

/* An error or a warning of the configuration. The strings end with a NUL and are valid during the callback. */
struct mk_problem {
    bool is_warning;
    const char *place;     /* a file, "text" (mk_server_text()) or an option; empty: none */
    uint32_t line, column; /* from 1; 0: unknown */
    const char *message;
    const char *source; /* the line of the text; empty: unknown */
};
typedef void (*mk_problem_fn)(const struct mk_problem *problem, void *ctx);
/* Calls `fn` for each problem (the first 100) of the last load, reload or start. Counters: mk_counters_each(). */
MK_API void mk_server_each_problem(const struct mk_server *server, mk_problem_fn fn, void *ctx);

MK_C_END

#endif
