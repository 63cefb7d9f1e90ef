// SPDX-License-Identifier: Apache-2.0
/*
 * The actions of signals, as a table.
 */
#include "program.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * ── upgrades without a supervisor ──
 *
 * The server starts the new process, which reports its progress over the ipc channel and receives the locked pid file
 * through it.
 */

enum { START_MS_MAX = 60000 };

static bool pid_file_sent;

static void answer_pid_file(int ipc_fd, const char *path)
{
    struct ipc_message answer = {.kind = IPC_PID_FILE, .len = 1};
    answer.fds[0] = daemon_pid_fd(path);
    if (answer.fds[0] >= 0)
        answer.n_fds = pid_file_sent = true;
    else
        answer.text[0] = EAGAIN; /* a different file: the new process opens it */
    ipc_send(ipc_fd, &answer);
}

/* Returns a descriptor that is readable while a stop signal is pending. It is never read, so the signal stays pending.
 */
static int open_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Waits for a message until `end`, and reads the output of the process in the meantime.
 * Returns 1, 0 (timeout), -ECANCELED (a signal asks this server to stop) or another -errno.
 */
static int await_message(int ipc_fd, int stop_signals, struct output *output, int64_t end)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = ipc_fd, .events = POLLIN},
                               {.fd = output->fd, .events = POLLIN},
                               {.fd = stop_signals, .events = POLLIN}};
        int64_t left = end - ipc_now_ms();
        int n = left > 0 ? poll(fds, 3, (int)left) : 0;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (fds[1].revents)
            output_read(output);
        if (fds[0].revents)
            return 1;
        if (fds[2].revents)
            return -ECANCELED;
    }
}

/* Answers messages until the process is ready. Returns 0, -ETIMEDOUT, -ECANCELED or another -errno. */
static int wait_until_ready(int ipc_fd, int stop_signals, struct output *output)
{
    assert(ipc_fd >= 0);
    int64_t end = ipc_now_ms() + START_MS_MAX;
    for (;;) {
        struct ipc_message message;
        int n = await_message(ipc_fd, stop_signals, output, end);
        if (n == 0)
            return -ETIMEDOUT;
        int err = n < 0 ? n : ipc_receive(ipc_fd, &message);
        if (err == -EINTR)
            continue;
        if (err < 0)
            return err;
        if (message.kind == IPC_PID_FILE)
            answer_pid_file(ipc_fd, (const char *)message.text);
        ipc_close_fds(&message);
        if (message.kind == IPC_READY)
            return 0;
    }
}

static void add_socket(int fd, bool own, void *ctx)
{
    ipc_add_socket(ctx, fd, own);
}

/* Ends a process that did not become ready, and logs why. */
static void kill_and_log(pid_t pid, int err, struct output *output)
{
    int status = 0;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    output_read(output);
    output_log(output, MK_LOG_ERROR, pid);
    if (err == -ETIMEDOUT)
        mk_log_error("upgrade: process %d did not serve within %d s; the old process keeps serving", pid,
                     START_MS_MAX / 1000);
    else if (err == -ECANCELED)
        mk_log_error("upgrade: process %d was killed before it served: this server is asked to stop", pid);
    else if (WIFEXITED(status))
        mk_log_error("upgrade: process %d ended with exit code %d before it served; the old process keeps serving", pid,
                     WEXITSTATUS(status));
    else
        mk_log_error("upgrade: process %d failed before it served; the old process keeps serving", pid);
}

/*
 * Forwards the signals that arrived while the new process started: it may have read its files before the change that
 * they announce.
 */
static void forward_deferred_signals(pid_t pid)
{
    const struct timespec now = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    for (int number; (number = sigtimedwait(&set, NULL, &now)) > 0;)
        kill(pid, number);
}

static bool start_new_program(struct mk_server *server)
{
    struct ipc_sockets list = {0};
    struct output output = {.fd = -1};
    int ipc_fd;
    pid_file_sent = false;
    mk_server_each_socket(server, add_socket, &list);
    pid_t pid =
        exec_start_server(&list, EXEC_ENV_PREDECESSOR, &ipc_fd, output_is_needed(errorlog_fd()) ? &output.fd : NULL);
    ipc_clear_sockets(&list, false);
    if (pid < 0) {
        mk_log_error("upgrade: cannot start the new program: %s; the old process keeps serving", strerror(-pid));
        return false;
    }
    mk_log_info("upgrade: process %d starts", pid);
    int stop_signals = open_stop_signals();
    int err = wait_until_ready(ipc_fd, stop_signals, &output);
    if (stop_signals >= 0)
        close(stop_signals);
    close(ipc_fd);
    if (err < 0)
        kill_and_log(pid, err, &output);
    else
        output_log(&output, MK_LOG_WARN, pid);
    output_close(&output);
    if (err < 0)
        return false;
    if (pid_file_sent)
        daemon_release_pid();
    sd_notify_send("MAINPID=%d", pid);
    mk_log_info("upgrade: process %d serves", pid);
    forward_deferred_signals(pid);
    return true;
}

/*
 * Starts the program now at our path with our sockets, and waits until it is ready; under a supervisor, the supervisor
 * has done that already.
 * Returns true if the new process serves and this server shall stop; false if not: the log says why.
 */
static bool run_upgrade(struct mk_server *server)
{
    if (!launcher_is_supervisor() && !start_new_program(server))
        return false;
    mk_server_hand_over(server);
    return true;
}

/* ── signals ── */

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
    /* before the log says it: the supervisor holds the sockets that it names */
    struct mk_server_info info;
    mk_server_info(server, &info);
    launcher_notify_ready(server, info.workers);
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
} actions[] = {{SIGHUP, reload_config}, {SIGUSR1, reopen_logs}, {SIGUSR2, run_upgrade}};

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
