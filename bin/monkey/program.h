// SPDX-License-Identifier: Apache-2.0
#ifndef MONKEY_PROGRAM_H
#define MONKEY_PROGRAM_H

#include "ipc.h"

#include <monkey/log.h>
#include <monkey/monkey.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* ── the command line of the program ── */

enum { EXIT_OK = 0, EXIT_CONFIG = 1, EXIT_OPTIONS = 2, EXIT_RUN = 3 };

/* Up to ACTION_ONE_FILE they read a configuration. */
enum action {
    ACTION_SERVE,
    ACTION_TEST,
    ACTION_SHOW,
    ACTION_ONE_FILE,
    ACTION_REFERENCE,
    ACTION_VERSION,
    ACTION_BUILD,
    ACTION_HELP
};

struct options {
    enum action action;
    const char *dir, *root, *backend, *port, *listen, *workers;
    const char *name; /* of the section for --reference, or of the host for --show-config; NULL: all */
    bool daemon, supervise, https, json, list;
};

/* Reads the command line. Returns 0, or EXIT_OPTIONS after a message on stderr. */
int options_read(struct options *o, int argc, char **argv);

/* Returns whether this path of a configuration is that of one file. */
bool options_is_file(const char *path);

/* Prints the options and exit codes on stdout. */
void options_help(void);

/* Returns -l and -p combined as a value of Listen, or NULL if neither was given. The value may be stored in `text`. */
const char *options_listen(const struct options *o, char *text, unsigned size);

/* ── the configuration that the command line names ── */

/*
 * Sets o->dir to the directory of the configuration: -c, else ./conf, else the installed one; it stays NULL with -o.
 * Returns 0, or EXIT_CONFIG after a message on stderr that there is none. With --json loading reports it.
 */
int config_find(struct options *o);
/* Loads it; `listen_text` must live as long as the server. Returns as mk_server_load(). */
int config_load(struct mk_server *server, const struct options *o, char *listen_text, unsigned size);

/* ── recognizes the processes of the server that serves a configuration already, for `monkey -t` ── */

/* Returns whether the process was started with the configuration of these options: mk_server_is_own_fn. */
bool own_server_is(int pid, void *options);

/* ── what the program prints in place of serving: its version, the manual, a configuration, and problems ── */

/* All functions return the exit code. */

/* Prints the server's problems on stderr. Returns `code`. */
int print_problems(const struct mk_server *server, int code);
/* Prints the version, the build or the manual: one section of it if `o` names one, "TLS" or "[TLS]" in any case. */
int print_info(const struct options *o);
/* Prints the effective configuration of the server, or of one host; `host` may be NULL. */
int print_config(const struct mk_server *server, const char *host);
/* Prints the configuration in `dir`, a directory or a file, as one file. Returns an exit status. */
int print_one_file(const struct mk_server *server, const char *dir);

/* ── the output of `monkey -t`: the problems of a configuration as text or as one JSON document, and a summary ── */

/* Checks and prints everything. `loaded` is the result of mk_server_load(). Returns the exit code. */
int report_test(struct mk_server *server, const struct options *o, int loaded);

/*
 * Before a start as root: warns on stderr of files that the configured User cannot read. The server can start all the
 * same, but a later reload would fail.
 */
void report_as_user(const struct mk_server *server, const struct options *o);

/* ── dropping root's privileges irrevocably ── */

/*
 * Sets no_new_privs: programs that this process executes gain no privileges. Call before any thread exists, since
 * threads inherit it.
 * Returns 0, or -errno after a message on stderr.
 */
int privileges_set_no_new_privs(void);

/* Has the kernel write no core file, and let only root look into this process: no other program of its user. */
void privileges_forbid_dumps(void);
/* Forbids or allows that, as CoreDumps says; after the user has changed, when the kernel decides anew. */
void privileges_apply_core_dumps(const struct mk_server *server);

/* Returns whether this process is root and User names another user. */
bool privileges_must_drop(const struct mk_server_process *p);

/*
 * Becomes that user (ids, groups, capabilities) and verifies it. Call before any thread exists.
 * Returns 0, or -errno after a message on stderr: the server must not start then.
 */
int privileges_drop(const struct mk_server_process *p);

/* Calls `check` as that user in a child process. Returns its result, or 0 if the child could not run it. */
int privileges_run_as_user(const struct mk_server_process *p, int (*check)(void *ctx), void *ctx);

/* ── the process as a daemon: going to the background, the pid file, the log file ── */

/* Raises the soft limit of open descriptors to the hard limit. */
void daemon_raise_descriptors(void);

/*
 * Forks, before any thread exists. The parent waits for daemon_ready() and exits with the code given there; only the
 * child returns. Returns 0 or -errno.
 */
int daemon_fork(void);
/*
 * Lets the parent of daemon_fork() exit with `code`. With `background` and code 0 it also detaches from the terminal
 * and changes to /.
 */
void daemon_ready(int code, bool background);

/*
 * Writes the pid to `path` and keeps the file locked until this process ends.
 * Returns 0, -EWOULDBLOCK (another process holds the lock) or another -errno.
 */
int daemon_write_pid(const char *path);
/* Removes the pid file if this process still owns it; empties it if it may not be removed. */
void daemon_remove_pid(const char *path);
/* Returns the descriptor of the locked pid file, for the next process; -1 if `path` is a different file. */
int daemon_pid_fd(const char *path);
/* Closes the pid file: the next process owns it now. */
void daemon_release_pid(void);
/* In the next process: takes ownership of the file. daemon_confirm_pid() writes the pid into it. */
void daemon_take_pid(int fd);
void daemon_confirm_pid(void);

/* Opens the error log for appending. Sets `ret_made` if the file did not exist. Returns the descriptor or -errno. */
int daemon_open_log(const char *path, bool *ret_made);

/* ── the error log of the program: opening, reopening and its owner ── */

/*
 * Keeps lines in memory until errorlog_open(), which writes them: plugins and services log while the configuration that
 * names the log is loaded.
 */
void errorlog_keep(void);
/* Opens the error log. With `background` and without ErrorLog it is discarded. Returns 0 or -errno. */
int errorlog_open(const struct mk_server_info *info, bool background);
/* Opens the error log of the current configuration. If that fails the old one stays in use. */
void errorlog_reopen(struct mk_server *server);
/* Returns the log's descriptor, which never changes. */
int errorlog_fd(void);
/* Changes the owner of a log file that this process created, before it drops root. */
void errorlog_chown(uint32_t uid, uint32_t gid);

/*
 * Logs the problems of a configuration, each line at the level of its problem; `level` is that of lines that have none.
 */
void errorlog_write_problems(const struct mk_server *server, enum mk_log_level level);

/*
 * Notifications for a service manager: sd_notify(3), to NOTIFY_SOCKET. They never block; a lost one is no error.
 */

/* Sends lines such as "READY=1\nSTATUS=...". */
void sd_notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sends RELOADING=1 with the monotonic time that the protocol requires. */
void sd_notify_reloading(void);
/* Returns "NOTIFY_SOCKET=..." for an environment, or NULL if it was not set. */
char *sd_notify_variable(void);

/*
 * The process that started this one and follows its progress: a supervisor, the process being replaced, a service
 * manager, or none of these.
 */

/* Reads the launcher's variables and removes them from the environment. Call before any thread exists. */
void launcher_init(void);
/* Returns whether a supervisor started this process: it handles the background, the pid file and the service manager.
 */
bool launcher_is_supervisor(void);
/* Returns whether a supervisor or the previous process waits for this one: it must not fork then. */
bool launcher_exists(void);
/* Lets the supervisor's death end this process. Call again after a change of the user, which resets it. */
void launcher_set_pdeathsig(void);

/*
 * Claims the pid file: the supervisor writes it, or the previous process passes it on, or this process opens it.
 * Returns 0 or -errno as daemon_write_pid().
 */
int launcher_claim_pid_file(const char *path);

/* Returns the stderr for a ready server; while it starts, stderr may be a pipe to the process that started it. */
int launcher_get_stderr(void);
/* Sends the error log to a supervisor, which logs there too. */
void launcher_send_log(int fd);
void launcher_notify_reloading(void);
/* Reports that the server is ready, and its sockets; also after each reload, successful or not. */
void launcher_notify_ready(struct mk_server *server, unsigned workers);
void launcher_notify_stopping(void);

/* Logs if the counters of the process before cannot be used. Call once the error log is open. */
void launcher_report_counters(void);

/* Offers the sockets of LISTEN_FDS that the process before has opened to plugins. Before the load. */
void launcher_offer_listen_fds(void);
/* Passes the sockets of LISTEN_FDS (sd_listen_fds(3)) to the server, and removes its variables from the environment. */
void launcher_inherit_listen_fds(struct mk_server *server);
/* The same for a process without a server: calls `fn` for each socket. */
void launcher_each_listen_fd(void (*fn)(int fd, bool own, void *ctx), void *ctx);

/*
 * Starts the program again from its path, where a newer one may be by then, and passes the listening sockets on.
 */

/* The name in LISTEN_FDNAMES of sockets that a server opened, in contrast to those of a service manager. */
#define EXEC_FD_NAME "monkey-own"
/* Environment variables with the descriptor of the ipc channel: to a supervisor, or to the process being replaced. */
#define EXEC_ENV_SUPERVISOR "MONKEY_SUPERVISOR"
#define EXEC_ENV_PREDECESSOR "MONKEY_PREDECESSOR"
/* The descriptor that becomes stderr when the server is ready, if its stderr is a pipe while it starts. */
#define EXEC_ENV_STDERR "MONKEY_STDERR"
/* The descriptor of the memory of the counters (mk_counters_inherit()). */
#define EXEC_ENV_COUNTERS "MONKEY_COUNTERS"

/*
 * Keeps the absolute paths of the program and of its configuration, since the working directory
 * changes later. `o` must outlive all calls.
 */
void exec_init(const struct options *o);
/* Replaces the paths in the options by these absolute ones. */
void exec_use_absolute_paths(struct options *o);

/*
 * Starts a server with these sockets. `role` is EXEC_ENV_SUPERVISOR or EXEC_ENV_PREDECESSOR; `ret_ipc_fd` receives our
 * end of the channel, `ret_output` our non-blocking end of a pipe that is its stderr until it is ready. With NULL it
 * inherits our stderr.
 * Returns the process id or -errno.
 */
pid_t exec_start_server(const struct ipc_sockets *sockets, const char *role, int *ret_ipc_fd, int *ret_output);

/* Replaces this process by the supervisor of the same configuration. Returns only on failure: -errno. */
int exec_supervisor(void);
/* Returns whether a word of the command line is a program: `monkey shell`, `monkey convert`. */
bool exec_is_command(const char *word);
/* Executes that program; `argv` begins with its word. Returns an exit code after a message. */
int exec_command(char **argv);

/*
 * What a starting process writes to its stderr, in particular why it cannot start: kept until it is ready or ends, for
 * the error log of the process that started it. If that process logs to stderr, the new process writes there directly.
 */
enum { OUTPUT_BYTES_MAX = 4096 };

struct output {
    int fd; /* our end of the pipe; -1: closed, or there is none */
    size_t len;
    char text[OUTPUT_BYTES_MAX]; /* the first bytes */
};

/* Returns whether the log is not stderr. */
bool output_is_needed(int log_fd);
/* Reads the available bytes without blocking. */
void output_read(struct output *o);
/* Logs each line, prefixed with the process id. */
void output_log(const struct output *o, enum mk_log_level level, pid_t pid);
void output_close(struct output *o);

/*
 * Consecutive failed starts of a server while no other server runs: how they are logged, and when clients are refused.
 */

/* Counts and logs a failed start, with the process's output unless it equals the last one. The next start is in
 * `delay_ms`. */
void failures_add(const struct output *output, pid_t pid, int status, const char *what, int delay_ms);
/* The same for a start that failed before the fork: `err` is the -errno. */
void failures_add_error(int err, int delay_ms);
/* Resets the count: a server is ready. */
void failures_clear(void);

/*
 * Returns whether new connections shall be closed while no server runs. At first they wait in the backlog for the next
 * start; after several failed starts they are closed, so that clients see the outage at once.
 */
bool failures_must_refuse(void);
/* Accepts and closes the connections that wait in the backlog. */
void failures_close_pending(const struct ipc_sockets *sockets);

/*
 * The parent process of the server: holds the listening sockets, so that no connection is refused while no server runs,
 * restarts a server that crashed, and replaces it at an upgrade.
 */

/* Runs until all servers have ended. Returns the exit code. */
int supervisor_run(const struct options *o);

/* ── signals of the running server ── */

/*
 * Resets the disposition of all signals that the program uses, and unblocks all signals: the parent (nohup, a shell for
 * background jobs, some service managers) may have ignored or blocked them. Call first in main(), before any thread.
 */
void signals_reset(void);
/* Blocks the signals that signals_serve() waits for. Call before any thread exists. */
void signals_block(void);
/* Lets plugins give commands that are otherwise given by signals. Call before the start. */
void signals_take_commands(struct mk_server *server);
/* Acts on signals until one stops the server; a second one stops it at once. */
void signals_serve(struct mk_server *server);

/* ── a server from its start to its end ── */

/* Runs a server whose configuration is loaded, until a signal ends it. Returns the exit code. */
int serve_run(struct mk_server *server, const struct options *o);

#endif
