// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a library: configure, load, start, stop. The program `monkey` is its first user.
 *
 *     new ─► configure or one_shot, set ... ─► load ─► start ─► (signals, life) ─► stop ─► free
 *
 * All calls for one server come from one thread, mk_server_stop_now() from any. The library never
 * prints and never exits: problems are collected as text. Several servers may live in one process; the log
 * (<monkey/log.h>) is the process's. Signals are the program's: workers block all of them.
 */
#ifndef MONKEY_MONKEY_H
#define MONKEY_MONKEY_H

#include "buf.h"
#include "log.h"
#include "status.h"
#include "str.h"

struct mk_server;

/* What the configuration says to the program that runs the server. Lives until the next load or reload. */
struct mk_server_info {
    const char *error_log; /* a path; NULL = stderr */
    enum mk_log_level log_level;
    const char *pid_file; /* NULL = none */
    unsigned workers;
};

MK_API struct mk_server *mk_server_new(void);
/* The server must not be running. */
MK_API void mk_server_free(struct mk_server *server);

/* Reads `dir`/monkey.conf and what belongs to it. The string must stay until mk_server_load(). */
MK_API void mk_server_configure(struct mk_server *server, const char *dir);
/* Serves `root` and needs no file. Exclusive with mk_server_configure(). */
MK_API void mk_server_one_shot(struct mk_server *server, const char *root);
/*
 * Sets a key of a section of the server; it wins over the files. `origin` ("option --port") is for messages.
 * At most 16; -ENOBUFS beyond. The strings must stay until mk_server_load().
 */
MK_API int mk_server_set(struct mk_server *server, const char *section, const char *key, const char *value,
                         const char *origin);
/*
 * The same for a key of a plugin, in the scope where the plugin has it: the server or each host. It has no effect if
 * the plugin is not available or if plugins.load does not load it. Builds for small devices lack it.
 */
MK_API int mk_server_set_plugin(struct mk_server *server, const char *section, const char *key, const char *value,
                                const char *origin);

/* Reads and checks everything, document roots included. 0, -EINVAL (see the problems), -ENOMEM. */
MK_API int mk_server_load(struct mk_server *server);
/* Looks at what a start would need: binds each listener for a moment, and the files to write. As mk_server_load(). */
MK_API int mk_server_check(struct mk_server *server);

/* Appends what was wrong or doubtful so far, for people: file, line, column, and the line itself. */
MK_API void mk_server_problems(const struct mk_server *server, struct mk_buf *out);

/* Builds for small devices have no other form than that. */
enum mk_problem_flags {
    MK_PROBLEMS_JSON = 1,        /* objects with a comma between them, as docs/guide/operate.md describes */
    MK_PROBLEMS_AS_WARNINGS = 2, /* errors are called warnings */
};

struct mk_problem_counts {
    unsigned errors, warnings;
};

/*
 * The same as `flags` say, without those that `known` has as well (NULL: all), and how many there were; beyond the
 * first 100 they are only counted.
 */
MK_API struct mk_problem_counts mk_server_list_problems(const struct mk_server *server, const struct mk_server *known,
                                                        unsigned flags, struct mk_buf *out);

/* After mk_server_load(). */
MK_API void mk_server_info(const struct mk_server *server, struct mk_server_info *ret_info);
/* Appends the effective configuration, in the form of its files. */
MK_API void mk_server_show(const struct mk_server *server, struct mk_buf *out);
/*
 * The same with one host only: the one that serves `name`, else the one whose file in sites/ has that name. Builds for
 * small devices lack it. Returns 0, -ENOENT (there is no such host), -EINVAL (nothing is loaded) or -ENOMEM.
 */
MK_API int mk_server_show_host(const struct mk_server *server, struct mk_str name, struct mk_buf *out);

/*
 * A listening stream socket that somebody else has opened; to be used for the `Listen` that names its address, instead
 * of opening one. After mk_server_load() and before the start, which closes what no directive names. `own`: the path of
 * a Unix socket is removed in the end, as if the server had made it. The descriptor is the server's from now on; on
 * failure it stays yours: -ENOTSOCK and the like, -ENOMEM.
 */
MK_API int mk_server_inherit(struct mk_server *server, int fd, bool own);
/*
 * Only opens the listeners, for a program that gives rights up before the workers start. To be followed by
 * mk_server_start() or mk_server_free(). 0 or -errno, as the start.
 */
MK_API int mk_server_listen(struct mk_server *server);

/* What the configuration says about the process itself. Lives until the next load or reload. */
struct mk_server_process {
    bool supervisor;
    const char *user;  /* NULL: stay who you are */
    uint32_t uid, gid; /* with a user */
};
MK_API void mk_server_process(const struct mk_server *server, struct mk_server_process *ret);

/* Calls `fn` for each listening socket of a server that listens; `own` as for mk_server_inherit(). */
MK_API void mk_server_each_socket(const struct mk_server *server, void (*fn)(int fd, bool own, void *ctx), void *ctx);
/*
 * Another process accepts at the same sockets now: the next stop leaves them and their paths alone, and waits for no
 * ShutdownDelay. Idle connections stay, and end with their next response, after KeepAliveTimeout or after
 * ShutdownTimeout.
 */
MK_API void mk_server_hand_over(struct mk_server *server);

/* Opens the listeners and starts the workers. 0 or -errno; the log and the problems say why. */
MK_API int mk_server_start(struct mk_server *server);
/*
 * Reads the configuration again and goes on with it: requests that have begun end under the old one, listeners and
 * workers may come and go. When it cannot be used everything stays as it is: -EINVAL or another -errno, and the
 * problems say why. While the server runs. What mk_server_info() and mk_server_show() tell is the new one's.
 */
MK_API int mk_server_reload(struct mk_server *server);
/* Files that plugins write to (access logs) may have been renamed: they are opened anew, soon. While the server runs.
 */
MK_API void mk_server_reopen_logs(struct mk_server *server);
/*
 * Stops: no new connections, idle ones are closed, exchanges have until ShutdownTimeout. Before that the server goes
 * on as before for ShutdownDelay (0 unless set), while plugins may tell that it is going (mk_request_draining). Returns
 * when all workers have ended.
 */
MK_API void mk_server_stop(struct mk_server *server);
/* During the stop after mk_server_hand_over(): closes idle connections now, as any other stop does. Any thread. */
MK_API void mk_server_drain_now(struct mk_server *server);
/* Ends the delay and the drain of a mk_server_stop() that is under way: all is cut. Any thread. */
MK_API void mk_server_stop_now(struct mk_server *server);

/* The manual of all directives of this build, as Markdown. */
MK_API int mk_reference(struct mk_buf *out);
/* "2.0.0", and several lines about how this binary was built. */
MK_API const char *mk_version(void);
MK_API void mk_build_info(struct mk_buf *out);

#endif
