// SPDX-License-Identifier: Apache-2.0
/*
 * The actions of signals, as a table (signals.h).
 */
#include "signals.h"

#include "errorlog.h"
#include "launcher.h"
#include "options.h"
#include "privileges.h"
#include "upgrade.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Blocks the signals that the server waits for, and stores them in `ret_set`. */
static void block_signals(sigset_t *ret_set)
{
    static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigemptyset(ret_set);
    for (size_t i = 0; i < MK_COUNT_OF(ours); i++)
        sigaddset(ret_set, ours[i]);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

void signals_reset(void)
{
    static const int defaults[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t none;
    for (size_t i = 0; i < MK_COUNT_OF(defaults); i++)
        signal(defaults[i], SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

void signals_block(void)
{
    sigset_t set;
    block_signals(&set);
}

/* ── signals that do not stop the server; their functions return true if it shall stop all the same ── */

/* Attributes of the process that a reload cannot change. */
struct start_identity {
    uint32_t uid, gid;
    bool supervisor;
    const char *pid_file; /* empty: none */
};
static struct start_identity at_start; /* its string lives as long as the process */

static void get_identity(const struct mk_server *server, struct start_identity *ret)
{
    struct mk_server_process process;
    struct mk_server_info info;
    mk_server_process(server, &process);
    mk_server_info(server, &info);
    *ret = (struct start_identity){process.uid, process.gid, process.supervisor, info.pid_file ? info.pid_file : ""};
}

static void save_identity(const struct mk_server *server)
{
    get_identity(server, &at_start);
    size_t bytes = strlen(at_start.pid_file) + 1;
    char *copy = bytes > 1 ? mk_account_alloc(NULL, bytes) : NULL;
    at_start.pid_file = copy ? memcpy(copy, at_start.pid_file, bytes) : "";
}

static void warn_restart_needed(const struct mk_server *server)
{
    struct start_identity now;
    get_identity(server, &now);
    const struct {
        const char *key;
        bool changed;
    } rows[] = {{"User", now.uid != at_start.uid},
                {"Group", now.uid == at_start.uid && now.gid != at_start.gid},
                {"Supervisor", now.supervisor != at_start.supervisor},
                {"PidFile", strcmp(now.pid_file, at_start.pid_file) != 0}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].changed)
            mk_log_warn("%s has changed: the change takes effect at the next start", rows[i].key);
}

static void notify_ready(struct mk_server *server)
{
    struct mk_server_info info;
    mk_server_info(server, &info);
    launcher_notify_ready(server, info.workers);
}

static void log_reload(int err)
{
    if (err == 0)
        mk_log_info("the new configuration is in use");
    else if (err == -EINVAL) /* its problems were logged */
        mk_log_error("the new configuration cannot be used, the old one stays");
    else
        mk_log_error("the new configuration cannot be used (%s), the old one stays", strerror(-err));
}

static bool reload_config(struct mk_server *server)
{
    launcher_notify_reloading();
    int err = mk_server_reload(server);
    if (err == 0)
        errorlog_reopen(server);
    errorlog_write_problems(server, err == 0 ? MK_LOG_WARN : MK_LOG_ERROR);
    if (err == 0) {
        privileges_apply_core_dumps(server);
        warn_restart_needed(server);
    }
    notify_ready(server); /* before the log says it: the supervisor holds the sockets that it names */
    log_reload(err);
    return false;
}

static bool reopen_logs(struct mk_server *server)
{
    errorlog_reopen(server);
    mk_server_reopen_logs(server);
    return false;
}

static const struct {
    int number;
    bool (*act)(struct mk_server *server);
} actions[] = {{SIGHUP, reload_config}, {SIGUSR1, reopen_logs}, {SIGUSR2, upgrade_run}};

/* Acts on a signal; without a server it only decides. Returns true if the server shall stop. */
static bool handle_signal(int number, struct mk_server *server)
{
    for (size_t i = 0; i < MK_COUNT_OF(actions); i++)
        if (actions[i].number == number)
            return server && actions[i].act(server);
    return true;
}

/* Acts on signals until one stops the server, and returns its number. With NULL, waits for a stop signal only. */
static int wait_for_stop(struct mk_server *server)
{
    sigset_t set;
    int number;
    block_signals(&set);
    do
        while (sigwait(&set, &number) != 0)
            ;
    while (!handle_signal(number, server));
    return number;
}

/* For the thread that watches signals while the server stops. */
static struct {
    pthread_mutex_t lock;
    struct mk_server *server; /* NULL: it has stopped, and is being freed */
    bool upgraded;            /* another process serves: idle connections are kept at first */
} stop = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A thread that a plugin blocks cannot be stopped: after this time the process ends without it. */
enum { STOP_NOW_SECONDS = 5 };

static void call_server(void (*fn)(struct mk_server *server))
{
    pthread_mutex_lock(&stop.lock);
    if (stop.server)
        fn(stop.server);
    pthread_mutex_unlock(&stop.lock);
}

/* Runs until the process ends, and ends it if the server does not stop although it was asked to stop at once. */
static void *watch_signals(void *ctx)
{
    if (stop.upgraded) {
        wait_for_stop(NULL);
        call_server(mk_server_drain_now);
    }
    wait_for_stop(NULL);
    call_server(mk_server_stop_now);
    sleep(STOP_NOW_SECONDS);
    mk_log_error("a plugin or a web service does not return: the process ends without it");
    _exit(EXIT_RUN);
    return ctx;
}

static void log_stop(int number, bool upgraded)
{
    if (upgraded)
        mk_log_info("stopping: another process serves; connections end with their next response");
    else
        mk_log_info("signal %d: stopping; another one stops at once", number);
}

/* Commands of plugins are signals to this process. */
static int send_command(enum mk_server_command command)
{
    static const uint8_t numbers[] = {
        [MK_SERVER_RELOAD] = SIGHUP, [MK_SERVER_REOPEN_LOGS] = SIGUSR1, [MK_SERVER_STOP] = SIGTERM};
    return kill(getpid(), numbers[command]) < 0 ? -errno : 0;
}

void signals_take_commands(struct mk_server *server)
{
    mk_server_on_command(server, send_command);
}

void signals_serve(struct mk_server *server)
{
    assert(server);
    pthread_t thread;
    save_identity(server);
    int number = wait_for_stop(server);
    stop.server = server;
    stop.upgraded = number == SIGUSR2;
    if (!stop.upgraded)
        launcher_notify_stopping();
    log_stop(number, stop.upgraded);
    int err = pthread_create(&thread, NULL, watch_signals, NULL);
    if (err == 0) /* which leaves it to the end of the process */
        pthread_detach(thread);
    mk_server_stop(server);
    pthread_mutex_lock(&stop.lock);
    stop.server = NULL;
    pthread_mutex_unlock(&stop.lock);
}
