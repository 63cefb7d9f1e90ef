// SPDX-License-Identifier: Apache-2.0
/*
 * The starter (starter_loop.h): it starts children, tells their channel of their ends, and reaps them.
 *
 *     START ─► RUNNING ─ it exits ─► EXITED (a zombie, so that its number stays) ─ REAP ─► free
 *
 * A channel that is closed, or the control socket, means that its children are of no use: they get SIGTERM, and SIGKILL
 * after a time. It was forked by a process with threads, so it calls only functions that are safe for signal
 * handlers, and allocates nothing: its tables are static.
 */
#include "starter_loop.h"

#include "message.h"
#include "spawn.h"

#include <monkey/time.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNELS_MAX = 512, CONTROL_FD = 3, GRACE_MS = 2000 };

enum row_state { FREE, RUNNING, EXITED, FAILED /* to be reported */ };
enum row_report { REPORT_STARTED = 1, REPORT_EXITED = 2 };

struct row {
    uint8_t state;   /* enum row_state */
    uint8_t reports; /* enum row_report: what the channel has not reported yet */
    bool is_released, is_killed;
    uint16_t channel;
    uint32_t id;
    pid_t pid;
    int pidfd; /* until it is sent; -1 */
    int status, err;
    enum mk_child_step step;
    int64_t kill_ms; /* 0: not set */
};

/* Those of the starter: the server has them, too, and does not use them. */
static struct {
    int signal_fd, channels[CHANNELS_MAX]; /* -1: none */
    bool ends, has_reaped;
    unsigned n_channels, n_rows; /* those after are free */
    struct row rows[MK_CHILD_RUNNING_MAX];
    union {
        struct mk__message head;
        char bytes[MK__MESSAGE_BYTES_MAX];
    } packet;
    char *argv[MK_CHILD_ARGS_MAX + 1], *envp[MK_CHILD_ENV_MAX + 1];
    struct pollfd polled[CHANNELS_MAX + 2];
} st;

static struct row *find_row(unsigned channel, uint32_t id)
{
    for (struct row *r = st.rows; r < st.rows + st.n_rows; r++)
        if (r->state != FREE && r->channel == channel && r->id == id)
            return r;
    return NULL;
}

static struct row *add_row(void)
{
    for (struct row *r = st.rows; r < st.rows + MK_CHILD_RUNNING_MAX; r++) {
        if (r->state != FREE)
            continue;
        if (st.n_rows <= (unsigned)(r - st.rows))
            st.n_rows = (unsigned)(r - st.rows) + 1;
        return r;
    }
    return NULL;
}

static bool is_open(const struct row *r)
{
    return st.channels[r->channel] >= 0;
}

/* ── ends ── */

static void free_row(struct row *r)
{
    if (r->pidfd >= 0)
        close(r->pidfd);
    *r = (struct row){.pidfd = -1};
    while (st.n_rows && st.rows[st.n_rows - 1].state == FREE)
        st.n_rows--;
}

/* Reaps a child that has exited; what it has left behind is killed if the child was to be. */
static void reap_child(struct row *r)
{
    if (r->kill_ms)
        kill(-r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    free_row(r);
    st.has_reaped = true; /* it may have hidden others */
}

/* The child is of no use any more. */
static void end_row(struct row *r)
{
    r->reports = 0;
    if (r->state == FAILED) {
        free_row(r);
        return;
    }
    kill(-r->pid, SIGTERM);
    r->kill_ms = (int64_t)mk_time_monotonic_ms() + GRACE_MS;
    if (r->state == EXITED)
        reap_child(r);
}

static void end_channel(unsigned channel)
{
    close(st.channels[channel]);
    st.channels[channel] = -1;
    for (unsigned i = st.n_rows; i-- > 0;)
        if (st.rows[i].state != FREE && st.rows[i].channel == channel)
            end_row(&st.rows[i]);
}

static void end_all(void)
{
    st.ends = true;
    for (unsigned i = 0; i < st.n_channels; i++)
        if (st.channels[i] >= 0)
            end_channel(i);
}

/* ── reports ── */

/* Returns false if the channel takes no more now. */
static bool send_report(struct row *r, enum row_report what)
{
    struct mk__message m = {.kind = what == REPORT_STARTED ? MK__MESSAGE_STARTED : MK__MESSAGE_EXITED,
                            .id = r->id,
                            .pid = r->pid,
                            .err = r->err,
                            .step = (uint32_t)r->step,
                            .status = r->status};
    unsigned n_fds = what == REPORT_STARTED && r->pidfd >= 0;
    if (mk__message_send(st.channels[r->channel], mk_str((char *)&m, sizeof(m)), &r->pidfd, n_fds) == -EAGAIN)
        return false; /* of any other error the channel itself tells */
    r->reports &= (uint8_t)~what;
    if (n_fds)
        close(r->pidfd);
    if (n_fds)
        r->pidfd = -1;
    return true;
}

static void report_end(struct row *r)
{
    if (r->reports & REPORT_STARTED && !send_report(r, REPORT_STARTED))
        return;
    if (r->reports & REPORT_EXITED && !send_report(r, REPORT_EXITED))
        return;
    if (r->state == FAILED)
        free_row(r);
}

static void report_channel(unsigned channel)
{
    for (unsigned i = st.n_rows; i-- > 0;)
        if (st.rows[i].reports && st.rows[i].channel == channel)
            report_end(&st.rows[i]);
}

/* ── exits ── */

static void check_row(struct row *r)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != r->pid)
        return;
    r->state = EXITED;
    r->status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    if (!is_open(r) || r->is_released) {
        reap_child(r);
        return;
    }
    r->reports |= REPORT_EXITED;
    report_end(r);
}

static bool is_child(pid_t pid)
{
    for (const struct row *r = st.rows; r < st.rows + st.n_rows; r++)
        if (r->state != FREE && r->pid == pid)
            return true;
    return false;
}

/* Reaps what children have left behind, up to the first zombie that is a child and stays. */
static void reap_orphans(void)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid && !is_child(info.si_pid)) {
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
}

static void check_rows(void)
{
    struct signalfd_siginfo signals[8];
    while (read(st.signal_fd, signals, sizeof(signals)) > 0)
        ;
    for (unsigned i = st.n_rows; i-- > 0;)
        if (st.rows[i].state == RUNNING)
            check_row(&st.rows[i]);
    reap_orphans();
}

/* Kills those whose time is over. Returns how long to wait for the next one; -1: none. */
static int kill_late(void)
{
    int64_t now = (int64_t)mk_time_monotonic_ms(), next = -1;
    for (struct row *r = st.rows; r < st.rows + st.n_rows; r++) {
        if (r->state != RUNNING || !r->kill_ms || r->is_killed)
            continue;
        int64_t left = r->kill_ms - now;
        if (left <= 0) {
            kill(-r->pid, SIGKILL);
            r->is_killed = true;
        } else if (next < 0 || left < next) {
            next = left;
        }
    }
    return (int)next;
}

/* ── starts ── */

/* Splits strings with a NUL after each into `to`, of `max` and a NULL. Returns false if there are more. */
static bool split_strings(char *at, size_t bytes, char **to, unsigned max)
{
    unsigned n = 0;
    for (char *end = at + bytes; at < end; at += strlen(at) + 1) {
        if (n == max)
            return false;
        to[n++] = at;
    }
    to[n] = NULL;
    return true;
}

/* Places the descriptors that have come. Returns false if their number is not that of the message. */
static bool place_fds(uint32_t bits, const int *fds, unsigned n, int placed[3])
{
    unsigned used = 0;
    for (unsigned i = 0; i < 3; i++) {
        bool has = bits & 1u << i && used < n;
        placed[i] = has ? fds[used++] : -1;
    }
    return used == n && used == (unsigned)__builtin_popcount(bits & 7);
}

/* Checks that the lengths are those of the packet, and that each string ends within its part. */
static bool is_whole(const struct mk__message *m, size_t len)
{
    const uint32_t parts[] = {m->path_bytes, m->folder_bytes, m->arg_bytes, m->env_bytes};
    const char *at = st.packet.bytes + sizeof(*m);
    size_t left = len - sizeof(*m);
    for (size_t i = 0; i < MK_COUNT_OF(parts); i++) {
        if (parts[i] > left || (parts[i] && at[parts[i] - 1] != '\0'))
            return false;
        at += parts[i];
        left -= parts[i];
    }
    return left == 0 && m->path_bytes && m->folder_bytes;
}

/* Starts what the packet says. Returns its number or -errno. */
static pid_t spawn_packet(size_t len, const int *fds, unsigned n, struct row *r)
{
    const struct mk__message *m = &st.packet.head;
    char *path = st.packet.bytes + sizeof(*m), *folder = path + m->path_bytes, *args = folder + m->folder_bytes;
    int placed[3];
    r->step = MK_CHILD_STARTER;
    if (!is_whole(m, len) || !place_fds(m->fd_bits, fds, n, placed))
        return -EBADMSG;
    if (!split_strings(args, m->arg_bytes, st.argv, MK_CHILD_ARGS_MAX) ||
        !split_strings(args + m->arg_bytes, m->env_bytes, st.envp, MK_CHILD_ENV_MAX))
        return -E2BIG;
    const struct mk__spawn spawn = {
        .path = path, .folder = folder, .argv = st.argv, .envp = st.envp, .fds = placed, .limits = &m->limits};
    return mk__spawn_start(&spawn, &r->pidfd, &r->step);
}

static void refuse_start(unsigned channel, int err)
{
    struct mk__message m = {.kind = MK__MESSAGE_STARTED, .id = st.packet.head.id, .err = err};
    mk__message_send(st.channels[channel], mk_str((char *)&m, sizeof(m)), NULL, 0); /* else its time will be over */
}

static void start_child(unsigned channel, size_t len, const int *fds, unsigned n)
{
    struct row *r = add_row();
    if (!r) {
        refuse_start(channel, -EBUSY);
        return;
    }
    *r = (struct row){.channel = (uint16_t)channel, .id = st.packet.head.id, .pidfd = -1};
    pid_t pid = spawn_packet(len, fds, n, r);
    r->state = pid < 0 ? FAILED : RUNNING;
    r->pid = pid < 0 ? 0 : pid;
    r->err = pid < 0 ? pid : 0;
    if (pid < 0)
        r->pidfd = -1;
    r->reports = REPORT_STARTED;
    report_end(r);
}

/* ── messages ── */

static void release_row(struct row *r)
{
    r->is_released = true;
    r->reports = 0;
    if (r->state == EXITED)
        reap_child(r);
}

static void handle_message(unsigned channel, size_t len, const int *fds, unsigned n)
{
    const struct mk__message *m = &st.packet.head;
    struct row *r = m->kind == MK__MESSAGE_REAP ? find_row(channel, m->id) : NULL;
    if (m->kind == MK__MESSAGE_START)
        start_child(channel, len, fds, n);
    else if (r)
        release_row(r);
}

/* Takes a new channel over. Returns false if it is none, or if there are too many. */
static bool accept_channel(const int *fds, unsigned n)
{
    for (unsigned i = 0; n == 1 && i < CHANNELS_MAX; i++) {
        if (st.channels[i] >= 0)
            continue;
        st.channels[i] = fds[0];
        if (st.n_channels <= i)
            st.n_channels = i + 1;
        return true;
    }
    return false;
}

static void close_fds(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
}

/* Reads one message. Returns false at the end of the socket. */
static bool read_message(int fd, int channel)
{
    int fds[MK__MESSAGE_FDS_MAX];
    unsigned n;
    ssize_t len = mk__message_receive(fd, st.packet.bytes, sizeof(st.packet.bytes), fds, &n);
    if (len == -EAGAIN || len == -EBADMSG || len == -EMFILE)
        return true;
    if (len < (ssize_t)sizeof(struct mk__message)) {
        close_fds(fds, n);
        return len > 0;
    }
    if (channel < 0 && accept_channel(fds, n))
        return true;
    if (channel >= 0)
        handle_message((unsigned)channel, (size_t)len, fds, n);
    close_fds(fds, n);
    return true;
}

/* ── the loop ── */

/* Waits for what happens next. Returns how many descriptors are polled. */
static unsigned wait_for_events(void)
{
    static short wants[CHANNELS_MAX];
    unsigned n = 2;
    memset(wants, 0, sizeof(wants));
    for (const struct row *r = st.rows; r < st.rows + st.n_rows; r++)
        if (r->reports)
            wants[r->channel] = POLLOUT;
    st.polled[0] = (struct pollfd){.fd = st.ends ? -1 : CONTROL_FD, .events = POLLIN};
    st.polled[1] = (struct pollfd){.fd = st.signal_fd, .events = POLLIN};
    for (unsigned i = 0; i < st.n_channels; i++, n++)
        st.polled[n] = (struct pollfd){.fd = st.channels[i], .events = (short)(POLLIN | wants[i])};
    int timeout = kill_late();
    return poll(st.polled, n, timeout) > 0 ? n : 0;
}

static void serve_channel(unsigned channel, short events)
{
    if (events & POLLOUT)
        report_channel(channel);
    if (events & (POLLIN | POLLHUP | POLLERR) && !read_message(st.channels[channel], (int)channel))
        end_channel(channel);
}

static void serve_channels(void)
{
    unsigned n = wait_for_events();
    if (!n)
        return;
    if (st.polled[1].revents)
        check_rows();
    for (unsigned i = 2; i < n; i++)
        if (st.polled[i].revents && st.channels[i - 2] >= 0)
            serve_channel(i - 2, st.polled[i].revents);
    if (st.polled[0].revents && !read_message(CONTROL_FD, -1))
        end_all();
    if (st.has_reaped)
        reap_orphans();
    st.has_reaped = false;
}

/* Closes all that is the server's. Returns false if that cannot be done. */
static bool keep_only(int control)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        return false;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0)
            return false;
    if (control != CONTROL_FD && dup3(control, CONTROL_FD, O_CLOEXEC) < 0)
        return false;
    return close_range(CONTROL_FD + 1, ~0U, 0) == 0;
}

_Noreturn void mk__starter_loop_run(int control)
{
    sigset_t all;
    memset(&st, 0, sizeof(st));
    for (unsigned i = 0; i < CHANNELS_MAX; i++)
        st.channels[i] = -1;
    setsid(); /* signals of a terminal are the server's */
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "monkey: starter");
    prctl(PR_SET_DUMPABLE, 0); /* its memory is a copy of the server's, and its children have the same user */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!keep_only(control) || chdir("/") < 0)
        _exit(1);
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    st.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (st.signal_fd < 0)
        _exit(1);
    while (!st.ends || st.n_rows)
        serve_channels();
    _exit(0);
}
