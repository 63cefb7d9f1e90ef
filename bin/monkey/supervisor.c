// SPDX-License-Identifier: Apache-2.0
/*
 * The supervisor (supervisor.h). It reads no configuration and opens nothing: whatever it holds its servers have sent
 * it. It keeps the rights that it was started with, and so trusts a server as little as possible: it takes listening
 * sockets, a log that the server can write to and, before a server has ever been ready, the place of the pid file.
 *
 *     starting ─► serving ─► leaving ─► ended            (a signal, or a successor that serves)
 *         └──────────┴─ dies ─► another one starts after a while
 */
#include "supervisor.h"

#include "channel.h"
#include "daemon.h"
#include "failures.h"
#include "notify.h"
#include "output.h"
#include "parent.h"
#include "privileges.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SOCKETS_MAX = 4096, RESERVED_FDS = 256, MESSAGES_AT_ONCE = 128, REFUSE_MS = 100 };
enum { CHILDREN_MAX = 8, FIRST_DELAY_MS = 100, DELAY_MS_MAX = 10000, GOOD_LIFE_MS = 10000, START_MS_MAX = 60000 };

enum state { FREE, STARTING, SERVING, LEAVING };

struct child {
    enum state state;
    pid_t pid;
    int channel; /* -1: it has closed it */
    int64_t since_ms;
    bool complained;        /* about what it sends */
    unsigned signals;       /* that came while it started: by number, a bit each */
    struct sockets sockets; /* what it has sent since it was last ready */
    struct output output;   /* its stderr while it starts */
};

static struct supervisor {
    struct child children[CHILDREN_MAX];
    struct sockets sockets;
    const struct options *options;
    char pid_file[PATH_MAX];
    int log, code;
    bool stopping, has_served, has_pid_file;
    int64_t restart_ms; /* when the next one starts; 0: none is due */
    int delay_ms;
} all;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct child *find(enum state state)
{
    for (struct child *c = all.children; c < all.children + CHILDREN_MAX; c++)
        if (c->state == state)
            return c;
    return NULL;
}

static bool is_alone(void)
{
    return !find(STARTING) && !find(SERVING) && !find(LEAVING);
}

/* ── starting ── */

static void start_later(void)
{
    all.restart_ms = now_ms() + all.delay_ms;
    all.delay_ms = all.delay_ms * 2 < DELAY_MS_MAX ? all.delay_ms * 2 : DELAY_MS_MAX;
}

static int start_child(void)
{
    struct child *c = find(FREE);
    all.restart_ms = 0;
    if (!c)
        return -EBUSY;
    *c = (struct child){.since_ms = now_ms(), .output.fd = -1};
    c->pid =
        spawn_server(&all.sockets, SPAWN_SUPERVISOR, &c->channel, output_is_needed(all.log) ? &c->output.fd : NULL);
    if (c->pid < 0)
        return c->pid;
    c->state = STARTING;
    fcntl(c->channel, F_SETFL, O_NONBLOCK);
    return 0;
}

static void start_again(void)
{
    int err = start_child();
    if (err == 0)
        return;
    failures_add_error(err, all.delay_ms);
    start_later();
}

/* ── what a server says ── */

static void answer_pid_file(struct child *c, const char *path)
{
    struct channel_message answer = {.kind = CHANNEL_PID_FILE, .len = 1};
    if (!all.has_served && !all.has_pid_file) {
        int err = daemon_write_pid(path);
        answer.text[0] = (unsigned char)-err;
        all.has_pid_file = err == 0;
        snprintf(all.pid_file, sizeof(all.pid_file), "%s", path);
    }
    channel_send(c->channel, &answer);
}

static void take_log(const struct child *c, const struct channel_message *message)
{
    int fd = message->n_fds == 1 ? channel_open_log(message->fds[0]) : -EINVAL;
    if (fd < 0) {
        mk_log_warn("supervisor: cannot use the error log of process %d: %s", c->pid, strerror(-fd));
        return;
    }
    dup3(fd, all.log, O_CLOEXEC);
    close(fd);
    mk_log_to(all.log, MK_LOG_INFO);
}

/* Lists of sockets exist three times at most: the one in use, and those of a starting and of a reloading server. */
static unsigned most_sockets(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= RESERVED_FDS)
        return 0;
    rlim_t most = (limit.rlim_cur - RESERVED_FDS) / 3;
    return most < SOCKETS_MAX ? (unsigned)most : SOCKETS_MAX;
}

static void take_sockets(struct child *c, struct channel_message *message)
{
    unsigned most = most_sockets(), refused = sockets_receive(&c->sockets, message, most);
    if (refused && !c->complained)
        mk_log_error("supervisor: process %d sent descriptors that are no listening sockets, or more than %u; "
                     "they are closed",
                     c->pid, most);
    c->complained |= refused > 0;
}

/* It may have read its files before somebody changed them. */
static void pass_on_late(struct child *c)
{
    for (int number = 1; c->signals; number++, c->signals >>= 1)
        if (c->signals & 1)
            kill(c->pid, number);
}

static void start_successor(void)
{
    int err = find(STARTING) ? -EALREADY : start_child();
    if (err < 0)
        mk_log_error("supervisor: cannot start the new program: %s; the one before goes on", strerror(-err));
    else
        mk_log_info("supervisor: the new program starts");
}

static void send_away(struct child *c)
{
    c->state = LEAVING;
    sockets_clear(&c->sockets, true);
    mk_log_info("supervisor: process %d finishes what has begun", c->pid);
    kill(c->pid, SIGUSR2);
}

static void be_ready(struct child *c)
{
    const unsigned upgrade = 1u << (SIGUSR2 - 1);
    struct child *before = c->state == STARTING ? find(SERVING) : NULL;
    bool next = c->signals & upgrade && !all.stopping; /* a matter of ours */
    if (c->sockets.n) {                                /* or those of before are still the best that there are */
        sockets_clear(&all.sockets, true);
        all.sockets = c->sockets;
        c->sockets = (struct sockets){0};
    }
    if (c->state == STARTING) {
        output_read(&c->output);
        output_log(&c->output, MK_LOG_WARN, c->pid);
        output_close(&c->output);
        mk_log_info("supervisor: process %d serves", c->pid);
        failures_clear();
        c->since_ms = now_ms();
        c->signals &= ~upgrade;
        pass_on_late(c);
    }
    c->state = SERVING;
    if (before)
        send_away(before);
    if (!all.has_served)
        daemon_ready(0, all.options->daemon);
    all.has_served = true;
    notify("READY=1\nSTATUS=process %d serves", c->pid);
    if (next)
        start_successor();
}

static void listen_to(struct child *c, struct channel_message *message)
{
    bool counts = c->state == STARTING || c->state == SERVING;
    if (message->kind == CHANNEL_PID_FILE)
        answer_pid_file(c, (const char *)message->text);
    else if (message->kind == CHANNEL_ERROR_LOG && counts)
        take_log(c, message);
    else if (message->kind == CHANNEL_SOCKETS && counts)
        take_sockets(c, message);
    else if (message->kind == CHANNEL_READY && counts)
        be_ready(c);
    else if (message->kind == CHANNEL_RELOADING && c->state == SERVING)
        notify_reloading();
    channel_close_fds(message);
}

/* Some messages at a time: a server that sends without an end must not keep us from signals and the other servers. */
static void read_channel(struct child *c)
{
    static struct channel_message message;
    int err = 0;
    for (int i = 0; i < MESSAGES_AT_ONCE && err == 0; i++)
        if (c->channel >= 0 && (err = channel_receive(c->channel, &message)) == 0)
            listen_to(c, &message);
    if (err == -EBADMSG)
        mk_log_error("supervisor: process %d sent a message that cannot be read; it is not listened to any more",
                     c->pid);
    if (c->channel >= 0 && err != 0 && err != -EAGAIN) {
        close(c->channel);
        c->channel = -1;
    }
}

/* ── the end of a server ── */

static void describe_end(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "ended with exit code %d", WEXITSTATUS(status));
}

/* Of a server that should serve. */
static void replace(const struct child *c, int status, const char *what)
{
    if (c->state == STARTING && find(SERVING)) {
        output_log(&c->output, MK_LOG_ERROR, c->pid);
        mk_log_error("supervisor: process %d %s before it served; the one before goes on", c->pid, what);
        return;
    }
    if (!all.has_served) { /* it has said why */
        if (WIFSIGNALED(status))
            mk_log_error("supervisor: process %d %s before it ever served: giving up", c->pid, what);
        all.stopping = true;
        all.code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUN;
        return;
    }
    if (c->state == SERVING && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        mk_log_info("supervisor: process %d was asked to end; so do I", c->pid);
        all.stopping = true;
        return;
    }
    if (find(STARTING) && c->state == SERVING) {
        mk_log_error("supervisor: process %d %s; its successor starts already", c->pid, what);
        return;
    }
    if (c->state == SERVING && now_ms() - c->since_ms >= GOOD_LIFE_MS)
        all.delay_ms = FIRST_DELAY_MS;
    if (c->state == STARTING)
        failures_add(&c->output, c->pid, status, what, all.delay_ms);
    else
        mk_log_error("supervisor: process %d %s; another one starts in %d ms", c->pid, what, all.delay_ms);
    notify("STATUS=process %d %s", c->pid, what);
    start_later();
}

static void bury(struct child *c, int status)
{
    char what[80];
    read_channel(c); /* what it said last */
    output_read(&c->output);
    output_close(&c->output);
    describe_end(status, what, sizeof(what));
    struct child dead = *c;
    c->state = FREE;
    if (c->channel >= 0)
        close(c->channel);
    sockets_clear(&c->sockets, true);
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    clean |= dead.state == STARTING && WIFSIGNALED(status); /* of our own signal, before it could take it */
    if (!all.stopping && dead.state != LEAVING) {
        replace(&dead, status, what);
        return;
    }
    if (!clean)
        mk_log_error("supervisor: process %d %s", dead.pid, what);
    if (all.stopping && !clean && all.code == 0)
        all.code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUN;
}

static void reap(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (struct child *c = all.children; c < all.children + CHILDREN_MAX; c++)
            if (c->state != FREE && c->pid == pid)
                bury(c, status);
}

/* ── signals ── */

static void on_child(int number)
{
    (void)number;
    reap();
}

static void stop_all(int number)
{
    if (!all.stopping)
        notify("STOPPING=1\nSTATUS=finishing what has begun");
    all.stopping = true;
    all.restart_ms = 0;
    for (struct child *c = all.children; c < all.children + CHILDREN_MAX; c++)
        if (c->state != FREE)
            kill(c->pid, number);
}

/* Without any server, a reload is the next start: perhaps somebody has mended the files. */
static void pass_on(int number)
{
    struct child *serving = find(SERVING), *starting = find(STARTING);
    if (number == SIGHUP && all.restart_ms)
        start_again();
    if (serving)
        kill(serving->pid, number);
    if (starting)
        starting->signals |= 1u << (number - 1);
}

/* Without any server the next one is the new program anyway. */
static void upgrade(int number)
{
    struct child *starting = find(STARTING);
    if (all.stopping)
        return;
    if (find(SERVING))
        start_successor();
    else if (starting)
        starting->signals |= 1u << (number - 1); /* of the program that was there then */
}

static const struct {
    int number;
    void (*act)(int number);
} calls[] = {{SIGCHLD, on_child}, {SIGTERM, stop_all}, {SIGINT, stop_all},
             {SIGHUP, pass_on},   {SIGUSR1, pass_on},  {SIGUSR2, upgrade}};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CALLS; i++)
        sigaddset(&set, calls[i].number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void read_signals(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        for (int i = 0; i < CALLS; i++)
            if (calls[i].number == (int)info.ssi_signo)
                calls[i].act(calls[i].number);
}

/* ── the loop ── */

static int64_t soonest(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

static bool is_refusing(void)
{
    return failures_refuse() && all.restart_ms && !find(SERVING);
}

static void expire(void)
{
    struct child *c = find(STARTING);
    int64_t now = now_ms();
    if (is_refusing())
        failures_close_waiting(&all.sockets);
    if (c && now >= c->since_ms + START_MS_MAX) {
        mk_log_error("supervisor: process %d does not serve after %d s", c->pid, START_MS_MAX / 1000);
        kill(c->pid, SIGKILL);
        c->since_ms = now;
    }
    if (all.restart_ms && now >= all.restart_ms)
        start_again();
}

static int time_left(void)
{
    const struct child *c = find(STARTING);
    int64_t end = soonest(all.restart_ms, c ? c->since_ms + START_MS_MAX : 0), now = now_ms();
    if (is_refusing())
        end = soonest(end, now + REFUSE_MS);
    return !end ? -1 : end > now ? (int)(end - now) : 0;
}

/* Both descriptors of each server, then the signals. */
static void turn(int signals)
{
    struct pollfd fds[2 * CHILDREN_MAX + 1] = {[2 * CHILDREN_MAX] = {.fd = signals, .events = POLLIN}};
    for (int i = 0; i < CHILDREN_MAX; i++) {
        const struct child *c = &all.children[i];
        fds[2 * i] = (struct pollfd){.fd = c->state == FREE ? -1 : c->channel, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = c->state == FREE ? -1 : c->output.fd, .events = POLLIN};
    }
    if (poll(fds, 2 * CHILDREN_MAX + 1, time_left()) < 0)
        return;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (fds[2 * i].revents)
            read_channel(&all.children[i]);
        if (fds[2 * i + 1].revents)
            output_read(&all.children[i].output);
    }
    if (fds[2 * CHILDREN_MAX].revents)
        read_signals(signals);
    expire();
}

static void keep_socket(int fd, bool own, void *ctx)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    sockets_add(ctx, fd, own);
}

static int begin(const struct options *o)
{
    all.options = o;
    all.delay_ms = FIRST_DELAY_MS;
    int err = privileges_freeze();
    daemon_raise_descriptors();
    inherit_each(keep_socket, &all.sockets);
    if (err == 0 && o->daemon)
        err = daemon_fork();
    int signals = err == 0 ? open_signals() : err;
    all.log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    mk_log_to(all.log, MK_LOG_INFO);
    if (signals >= 0) {
        err = start_child();
        if (err < 0)
            signals = err;
    }
    if (signals < 0)
        fprintf(stderr, "monkey: the supervisor cannot start: %s\n", strerror(signals == -1 ? errno : -signals));
    return signals;
}

int supervisor_run(const struct options *o)
{
    int signals = begin(o);
    if (signals < 0)
        all.code = EXIT_RUN;
    while (signals >= 0 && !(all.stopping && is_alone()))
        turn(signals);
    daemon_ready(all.code, false); /* whoever still waits for the first server */
    if (all.has_pid_file)
        daemon_remove_pid(all.pid_file);
    sockets_clear(&all.sockets, true);
    return all.code;
}
