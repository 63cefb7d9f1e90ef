// SPDX-License-Identifier: Apache-2.0
/*
 * The supervisor. It reads no configuration and opens no socket: its servers send it what it holds. It
 * keeps the privileges that it was started with, and so trusts a server as little as possible: it accepts listening
 * sockets, a log that the server can write to and, until the first server is ready, the path of the pid file.
 *
 *     STARTING ─► SERVING ─► DRAINING ─► ended           (a signal, or a successor is ready)
 *         └──────────┴─ dies ─► another server starts after a delay
 */
#include "program.h"

#include <monkey/base/poll.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKETS_MAX = 4096, RESERVED_FDS = 256, MESSAGES_AT_ONCE = 128, REFUSE_MS = 100 };
enum { CHILDREN_MAX = 8, FIRST_DELAY_MS = 100, DELAY_MS_MAX = 10000, STABLE_MS = 10000, START_MS_MAX = 60000 };

enum child_state { FREE, STARTING, SERVING, DRAINING }; /* one child at most is STARTING, and one SERVING */

struct child {
    enum child_state state;
    pid_t pid;
    int ipc_fd;                 /* -1: closed */
    int64_t since_ms;           /* of the start, then of being ready */
    bool warned;                /* of unwanted descriptors from it */
    unsigned signals;           /* received while it started: bit number - 1 for each */
    struct ipc_sockets sockets; /* received since it was last ready; complete when it is ready again */
    struct output output;       /* its stderr while it starts */
};

static struct supervisor {
    struct child children[CHILDREN_MAX];
    struct ipc_sockets sockets; /* for the next server */
    const struct options *options;
    char pid_file[PATH_MAX];
    int log_fd, exit_code;
    bool stopping, has_served, has_pid_file;
    int64_t restart_ms; /* when the next server starts; 0: no start is scheduled */
    int delay_ms;
} sv;

static struct child *find_child(enum child_state state)
{
    for (struct child *c = sv.children; c < sv.children + CHILDREN_MAX; c++)
        if (c->state == state)
            return c;
    return NULL;
}

static bool has_no_children(void)
{
    return !find_child(STARTING) && !find_child(SERVING) && !find_child(DRAINING);
}

/* ── starting ── */

static void schedule_start(void)
{
    assert(!sv.stopping && sv.delay_ms > 0);
    sv.restart_ms = ipc_now_ms() + sv.delay_ms;
    sv.delay_ms = sv.delay_ms * 2 < DELAY_MS_MAX ? sv.delay_ms * 2 : DELAY_MS_MAX;
}

static int start_child(void)
{
    struct child *c = find_child(FREE);
    sv.restart_ms = 0;
    if (!c)
        return -EBUSY;
    *c = (struct child){.since_ms = ipc_now_ms(), .output.fd = -1};
    c->pid = exec_start_server(&sv.sockets, EXEC_ENV_SUPERVISOR, &c->ipc_fd,
                               output_is_needed(sv.log_fd) ? &c->output.fd : NULL);
    if (c->pid < 0)
        return c->pid;
    assert(c->ipc_fd >= 0);
    c->state = STARTING;
    fcntl(c->ipc_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static void restart_server(void)
{
    int err = start_child();
    if (err == 0)
        return;
    failures_add_error(err, sv.delay_ms);
    schedule_start();
}

/* ── messages of a server ── */

static void answer_pid_file(struct child *c, const char *path)
{
    struct ipc_message answer = {.kind = IPC_PID_FILE, .len = 1};
    if (!sv.has_served && !sv.has_pid_file) {
        int err = daemon_write_pid(path);
        answer.text[0] = (unsigned char)-err;
        sv.has_pid_file = err == 0;
        snprintf(sv.pid_file, sizeof(sv.pid_file), "%s", path);
    }
    ipc_send(c->ipc_fd, &answer);
}

static void take_log(const struct child *c, const struct ipc_message *message)
{
    int fd = message->n_fds == 1 ? ipc_open_log(message->fds[0]) : -EINVAL;
    if (fd < 0) {
        mk_log_warn("supervisor: cannot use the error log of process %d: %s", c->pid, strerror(-fd));
        return;
    }
    dup3(fd, sv.log_fd, O_CLOEXEC);
    close(fd);
    mk_log_to(sv.log_fd, MK_LOG_INFO);
}

/* Three lists of sockets may exist: the one in use, and those that a starting and a reloading server send. */
static unsigned get_sockets_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= RESERVED_FDS)
        return 0;
    rlim_t most = (limit.rlim_cur - RESERVED_FDS) / 3;
    return most < SOCKETS_MAX ? (unsigned)most : SOCKETS_MAX;
}

static void take_sockets(struct child *c, struct ipc_message *message)
{
    unsigned most = get_sockets_max(), refused = ipc_receive_sockets(&c->sockets, message, most);
    if (refused && !c->warned)
        mk_log_error("supervisor: process %d sent descriptors that are no listening sockets, or more than %u; "
                     "these are closed",
                     c->pid, most);
    c->warned |= refused > 0;
}

/* A server that was starting may have read its files before the change that the signal announces. */
static void forward_deferred_signals(struct child *c)
{
    for (int number = 1; c->signals; number++, c->signals >>= 1)
        if (c->signals & 1)
            kill(c->pid, number);
}

static void start_successor(void)
{
    int err = find_child(STARTING) ? -EALREADY : start_child();
    if (err < 0)
        mk_log_error("supervisor: cannot start the new program: %s; the old process keeps serving", strerror(-err));
    else
        mk_log_info("supervisor: the new program starts");
}

static void drain_child(struct child *c)
{
    assert(c->state == SERVING);
    c->state = DRAINING;
    ipc_clear_sockets(&c->sockets, true);
    mk_log_info("supervisor: process %d drains its connections", c->pid);
    kill(c->pid, SIGUSR2);
}

/* Takes the new list of a server for the next one; without a new list the previous one stays in use. */
static void replace_sockets(struct child *c)
{
    if (!c->sockets.n)
        return;
    ipc_clear_sockets(&sv.sockets, true);
    sv.sockets = c->sockets;
    c->sockets = (struct ipc_sockets){0};
}

/* Marks a server as serving after its start; the one that served before drains. */
static void finish_start(struct child *c)
{
    assert(c->state == STARTING);
    struct child *before = find_child(SERVING);
    output_read(&c->output);
    output_log(&c->output, MK_LOG_WARN, c->pid);
    output_close(&c->output);
    mk_log_info("supervisor: process %d serves", c->pid);
    failures_clear();
    c->since_ms = ipc_now_ms();
    forward_deferred_signals(c);
    c->state = SERVING;
    if (before)
        drain_child(before);
}

/* A server reports that it is ready after its start, and again after each reload. */
static void mark_ready(struct child *c)
{
    const unsigned upgrade = 1u << (SIGUSR2 - 1);
    bool must_upgrade = c->signals & upgrade && !sv.stopping;
    c->signals &= ~upgrade; /* handled here, not forwarded */
    replace_sockets(c);
    if (c->state == STARTING)
        finish_start(c);
    if (!sv.has_served)
        daemon_ready(0, sv.options->daemon);
    sv.has_served = true;
    sd_notify_send("READY=1\nSTATUS=process %d serves", c->pid);
    if (must_upgrade)
        start_successor();
}

static void handle_message(struct child *c, struct ipc_message *message)
{
    bool current = c->state == STARTING || c->state == SERVING; /* a draining one holds what is out of date */
    if (message->kind == IPC_PID_FILE)
        answer_pid_file(c, (const char *)message->text);
    else if (message->kind == IPC_ERROR_LOG && current)
        take_log(c, message);
    else if (message->kind == IPC_SOCKETS && current)
        take_sockets(c, message);
    else if (message->kind == IPC_READY && current)
        mark_ready(c);
    else if (message->kind == IPC_RELOADING && c->state == SERVING)
        sd_notify_reloading();
    ipc_close_fds(message);
}

/* Reads a limited number of messages, so that a server cannot starve signals and the other servers. */
static void read_messages(struct child *c)
{
    static struct ipc_message message; /* more than 4 KB */
    int err = 0;
    if (c->ipc_fd < 0)
        return;
    for (int i = 0; i < MESSAGES_AT_ONCE && err == 0; i++) {
        err = ipc_receive(c->ipc_fd, &message);
        if (err == 0)
            handle_message(c, &message);
    }
    if (err == -EBADMSG)
        mk_log_error("supervisor: process %d sent an invalid message; its channel is closed", c->pid);
    if (err != 0 && err != -EAGAIN) {
        close(c->ipc_fd);
        c->ipc_fd = -1;
    }
}

/* ── the end of a server ── */

static void describe_exit(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "ended with exit code %d", WEXITSTATUS(status));
}

static int get_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUN;
}

/*
 * Handles the death of a server that was starting or serving: stops with it, or starts another one unless there is one.
 * `c` is a copy that is not among the children any more.
 */
static void handle_death(const struct child *c, int status, const char *what)
{
    assert(c->state == STARTING || c->state == SERVING);
    if (c->state == STARTING && find_child(SERVING)) {
        output_log(&c->output, MK_LOG_ERROR, c->pid);
        mk_log_error("supervisor: process %d %s before it served; the old process keeps serving", c->pid, what);
        return;
    }
    if (!sv.has_served) { /* it has logged the reason */
        if (WIFSIGNALED(status))
            mk_log_error("supervisor: process %d %s before it served: the supervisor stops", c->pid, what);
        sv.stopping = true;
        sv.exit_code = get_exit_code(status);
        return;
    }
    if (c->state == SERVING && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        mk_log_info("supervisor: process %d was asked to stop; the supervisor stops too", c->pid);
        sv.stopping = true;
        return;
    }
    if (find_child(STARTING) && c->state == SERVING) {
        mk_log_error("supervisor: process %d %s; its successor is starting", c->pid, what);
        return;
    }
    if (c->state == SERVING && ipc_now_ms() - c->since_ms >= STABLE_MS)
        sv.delay_ms = FIRST_DELAY_MS;
    if (c->state == STARTING)
        failures_add(&c->output, c->pid, status, what, sv.delay_ms);
    else
        mk_log_error("supervisor: process %d %s; another one starts in %d ms", c->pid, what, sv.delay_ms);
    sd_notify_send("STATUS=process %d %s", c->pid, what);
    schedule_start();
}

static void reap_child(struct child *c, int status)
{
    assert(c->state != FREE && c->pid > 0);
    char what[80];
    read_messages(c); /* its last messages */
    output_read(&c->output);
    output_close(&c->output);
    describe_exit(status, what, sizeof(what));
    if (c->ipc_fd >= 0)
        close(c->ipc_fd);
    ipc_clear_sockets(&c->sockets, true);
    struct child dead = *c;
    c->state = FREE; /* find_child() must not find it below */
    if (!sv.stopping && dead.state != DRAINING) {
        handle_death(&dead, status, what);
        return;
    }
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    clean |= dead.state == STARTING && WIFSIGNALED(status); /* killed by our stop signal before it handled it */
    if (!clean)
        mk_log_error("supervisor: process %d %s", dead.pid, what);
    if (sv.stopping && !clean && sv.exit_code == 0)
        sv.exit_code = get_exit_code(status);
}

static void reap_children(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (struct child *c = sv.children; c < sv.children + CHILDREN_MAX; c++)
            if (c->state != FREE && c->pid == pid)
                reap_child(c, status);
}

/* ── signals ── */

static void on_sigchld(int number)
{
    (void)number;
    reap_children();
}

static void stop_all(int number)
{
    if (!sv.stopping)
        sd_notify_send("STOPPING=1\nSTATUS=draining");
    sv.stopping = true;
    sv.restart_ms = 0;
    for (struct child *c = sv.children; c < sv.children + CHILDREN_MAX; c++)
        if (c->state != FREE)
            kill(c->pid, number);
}

/* Without a server, SIGHUP starts one at once: the configuration may have been corrected. */
static void forward_signal(int number)
{
    struct child *serving = find_child(SERVING), *starting = find_child(STARTING);
    if (number == SIGHUP && sv.restart_ms)
        restart_server();
    if (serving)
        kill(serving->pid, number);
    if (starting)
        starting->signals |= 1u << (number - 1);
}

/* Without a server nothing is to do: the next start runs the new program. */
static void start_upgrade(int number)
{
    struct child *starting = find_child(STARTING);
    if (sv.stopping)
        return;
    if (find_child(SERVING))
        start_successor();
    else if (starting)
        starting->signals |= 1u << (number - 1); /* upgraded when it is ready */
}

static const struct {
    int number;
    void (*act)(int number);
} actions[] = {{SIGCHLD, on_sigchld},    {SIGTERM, stop_all},       {SIGINT, stop_all},
               {SIGHUP, forward_signal}, {SIGUSR1, forward_signal}, {SIGUSR2, start_upgrade}};
enum { ACTIONS = MK_COUNT_OF(actions) };

/* Returns a descriptor or -errno. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ACTIONS; i++)
        sigaddset(&set, actions[i].number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void read_signals(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        for (int i = 0; i < ACTIONS; i++)
            if (actions[i].number == (int)info.ssi_signo)
                actions[i].act(actions[i].number);
}

/* ── the loop ── */

/* 0: never. */
static int64_t get_earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

/* Returns whether connections are closed until the next start, because the last starts failed. */
static bool is_refusing(void)
{
    return failures_must_refuse() && sv.restart_ms && !find_child(SERVING);
}

static void run_timers(void)
{
    struct child *c = find_child(STARTING);
    int64_t now = ipc_now_ms();
    if (is_refusing())
        failures_close_pending(&sv.sockets);
    if (c && now >= c->since_ms + START_MS_MAX) {
        mk_log_error("supervisor: process %d is not ready after %d s: it is killed", c->pid, START_MS_MAX / 1000);
        kill(c->pid, SIGKILL);
        c->since_ms = now; /* its end is reported by SIGCHLD; until then not to be killed in each turn */
    }
    if (sv.restart_ms && now >= sv.restart_ms)
        restart_server();
}

static int get_poll_timeout(void)
{
    const struct child *c = find_child(STARTING);
    int64_t end = get_earlier(sv.restart_ms, c ? c->since_ms + START_MS_MAX : 0), now = ipc_now_ms();
    if (is_refusing())
        end = get_earlier(end, now + REFUSE_MS);
    return !end ? -1 : end > now ? (int)(end - now) : 0;
}

/* Waits for and handles events: both descriptors of each server, then the signals. */
static void poll_once(int signals)
{
    struct pollfd fds[2 * CHILDREN_MAX + 1] = {[2 * CHILDREN_MAX] = {.fd = signals, .events = POLLIN}};
    for (int i = 0; i < CHILDREN_MAX; i++) {
        const struct child *c = &sv.children[i];
        fds[2 * i] = (struct pollfd){.fd = c->state == FREE ? -1 : c->ipc_fd, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = c->state == FREE ? -1 : c->output.fd, .events = POLLIN};
    }
    mk_poll(fds, 2 * CHILDREN_MAX + 1, get_poll_timeout());
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (fds[2 * i].revents)
            read_messages(&sv.children[i]);
        if (fds[2 * i + 1].revents)
            output_read(&sv.children[i].output);
    }
    if (fds[2 * CHILDREN_MAX].revents)
        read_signals(signals);
    run_timers();
}

static void add_inherited_socket(int fd, bool own, void *ctx)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    ipc_add_socket(ctx, fd, own);
}

/* Prepares the process and starts the first server. Returns the descriptor of the signals, or -errno. */
static int start_supervisor(const struct options *o)
{
    sv.options = o;
    sv.delay_ms = FIRST_DELAY_MS;
    int err = privileges_set_no_new_privs();
    daemon_raise_descriptors();
    launcher_each_listen_fd(add_inherited_socket, &sv.sockets);
    if (err == 0 && o->daemon)
        err = daemon_fork();
    int signals = err == 0 ? open_signals() : err; /* after the fork: a signalfd belongs to a process */
    sv.log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    mk_log_to(sv.log_fd, MK_LOG_INFO);
    err = signals >= 0 ? start_child() : signals;
    if (err < 0) {
        fprintf(stderr, "monkey: the supervisor cannot start: %s\n", strerror(-err));
        return err;
    }
    return signals;
}

int supervisor_run(const struct options *o)
{
    int signals = start_supervisor(o);
    if (signals < 0)
        sv.exit_code = EXIT_RUN;
    while (signals >= 0 && !(sv.stopping && has_no_children()))
        poll_once(signals);
    daemon_ready(sv.exit_code, false); /* the parent may still wait for the first server */
    if (sv.has_pid_file)
        daemon_remove_pid(sv.pid_file);
    ipc_clear_sockets(&sv.sockets, true);
    return sv.exit_code;
}
