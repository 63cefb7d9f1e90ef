// SPDX-License-Identifier: Apache-2.0
/*
 * The starter: it starts children, tells their channel of their ends, and reaps them.
 *
 *     START ─► RUNNING ─ it exits ─► EXITED (a zombie, so that its number stays) ─ REAP ─► free
 *
 * STOP ends a child and all its descendants, in any group and session: SIGTERM, and SIGKILL after a time, or when the
 * child has exited, until none is left. When a channel is closed, its children are stopped. When the control socket is
 * closed, all children and the orphans of former ones are stopped. What a former starter has left is killed first.
 * The starter was forked by a process with threads, so it calls only functions that are safe for signal
 * handlers, and allocates nothing: its tables are static.
 */
#include "child.h"

#include <monkey/base/poll.h>
#include <monkey/base/time.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNELS_MAX = 512, CONTROL_FD = 3, GRACE_MS = 2000, RESCAN_MS = 10, GIVE_UP_MS = 2000 };

static_assert(MK_CHILD_RUNNING_MAX <= 1 << MK__TAG_INDEX_BITS, "the index of a tag is that of its row");

enum row_state { FREE, RUNNING, EXITED, FAILED /* to be reported */ };
enum row_report { REPORT_STARTED = 1, REPORT_EXITED = 2 };

/* What is to end, and how far that is. */
enum ending_stage { STAYS, TO_TERMINATE, TERMINATED, KILLED };

struct ending {
    uint8_t stage;   /* enum ending_stage */
    bool has_others; /* the last scan has found processes beside the child */
    int64_t next_ms; /* when to kill, then when to give up: a process may hang in the kernel */
};

struct row {
    uint8_t state;   /* enum row_state */
    uint8_t reports; /* enum row_report: what the channel has not reported yet */
    bool is_released;
    uint16_t channel;
    uint32_t id;
    pid_t pid;
    int pidfd; /* until it is sent; -1 */
    int status, err;
    enum mk_child_step step;
    uint64_t tag;
    struct ending ending;
};

/* Those of the starter: the server has them, too, and does not use them. */
static struct {
    int signal_fd, channels[CHANNELS_MAX]; /* -1: none */
    bool ends, has_reaped, must_scan;
    unsigned n_channels, n_rows; /* those after are free */
    struct mk__tags tags;
    struct ending left;   /* orphans of children that are gone */
    struct ending former; /* what a former starter has left */
    struct row rows[MK_CHILD_RUNNING_MAX];
    union {
        struct mk__message head;
        char bytes[MK__MESSAGE_BYTES_MAX];
    } packet;
    struct mk__message_parts parts;
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

static void reap_child(struct row *r)
{
    waitpid(r->pid, NULL, 0);
    free_row(r);
    st.has_reaped = true; /* it may have hidden others */
}

static int64_t get_time(void)
{
    return (int64_t)mk_time_monotonic_ms();
}

static void kill_row(struct row *r)
{
    kill(-r->pid, SIGKILL);
    r->ending = (struct ending){.stage = KILLED, .has_others = true, .next_ms = get_time() + GIVE_UP_MS};
    st.must_scan = true;
}

/* Ends a child and its descendants: its group at once, the others by the next scan. */
static void stop_row(struct row *r, uint32_t grace_ms)
{
    if (r->ending.stage != STAYS)
        return;
    kill(-r->pid, SIGTERM);
    r->ending = (struct ending){.stage = TO_TERMINATE, .next_ms = get_time() + grace_ms};
    st.must_scan = true;
}

/* The child has exited, and its number is not needed any more; what it has left behind is killed if it was to end. */
static void close_exited(struct row *r)
{
    if (r->ending.stage == STAYS)
        reap_child(r);
    else if (r->ending.stage != KILLED)
        kill_row(r);
    else
        st.must_scan = true;
}

/* The child is of no use any more. */
static void end_row(struct row *r)
{
    r->reports = 0;
    if (r->state == FAILED) {
        free_row(r);
        return;
    }
    stop_row(r, GRACE_MS);
    if (r->state == EXITED)
        close_exited(r);
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
    st.ends = st.must_scan = true;
    st.left = (struct ending){.stage = TO_TERMINATE, .next_ms = get_time() + GRACE_MS};
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
        close_exited(r);
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

/* ── descendants ── */

static struct row *find_tagged(uint64_t tag)
{
    struct row *r = &st.rows[mk__tag_index(&st.tags, tag)];
    return r->state != FREE && r->tag == tag ? r : NULL;
}

/* Finds the child of which a process without a tag is a descendant: that one leads its session. */
static struct row *find_leader(pid_t pid)
{
    pid_t leader = getsid(pid);
    for (struct row *r = st.rows; r < st.rows + st.n_rows; r++)
        if (leader > 0 && r->pid == leader)
            return r;
    return NULL;
}

/* Finds what is to become of a process. Returns NULL if it descends from no child. */
static struct ending *find_ending(pid_t pid, uint64_t tag, pid_t *ret_child)
{
    struct row *r = tag ? find_tagged(tag) : find_leader(pid);
    *ret_child = r ? r->pid : 0;
    if (r)
        return &r->ending;
    if (!tag)
        return NULL;
    return mk__tag_is_own(&st.tags, tag) ? &st.left : &st.former;
}

/* Returns the signal for a process. */
static int choose_signal(pid_t pid, uint64_t tag)
{
    static const int signals[] = {[TO_TERMINATE] = SIGTERM, [TERMINATED] = 0, [KILLED] = SIGKILL};
    pid_t child;
    struct ending *ending = find_ending(pid, tag, &child);
    if (!ending || pid == child || ending->stage == STAYS || waitpid(pid, NULL, WNOHANG) == pid)
        return 0;
    ending->has_others = true;
    bool has_it = child && ending->stage == TO_TERMINATE && getpgid(pid) == child; /* from stop_row() */
    return has_it ? 0 : signals[ending->stage];
}

static void begin_scan(struct ending *ending)
{
    ending->has_others = false;
}

static void end_scan(struct ending *ending)
{
    if (ending->stage == TO_TERMINATE)
        ending->stage = TERMINATED;
    if (ending->stage == KILLED && get_time() >= ending->next_ms)
        ending->has_others = false;
}

static void close_gone(struct row *r)
{
    bool is_closed = r->state == EXITED && (r->is_released || !is_open(r));
    if (is_closed && r->ending.stage == KILLED && !r->ending.has_others)
        reap_child(r);
}

/* Sends the signals that are due to descendants, and frees the rows of which there are none any more. */
static void scan_processes(void)
{
    st.must_scan = false;
    begin_scan(&st.left);
    begin_scan(&st.former);
    for (unsigned i = 0; i < st.n_rows; i++)
        begin_scan(&st.rows[i].ending);
    mk__tag_each(&st.tags, choose_signal);
    end_scan(&st.left);
    end_scan(&st.former);
    for (unsigned i = st.n_rows; i-- > 0;) {
        end_scan(&st.rows[i].ending);
        close_gone(&st.rows[i]);
    }
}

static int64_t get_earlier(int64_t a, int64_t b)
{
    return a < 0 || b < a ? b : a;
}

/* Kills those whose time is over. Returns how long to wait for the next one; -1: none. */
static int kill_late(void)
{
    int64_t now = get_time(), next = -1;
    for (struct row *r = st.rows; r < st.rows + st.n_rows; r++) {
        bool waits = r->state != FREE && (r->ending.stage == TO_TERMINATE || r->ending.stage == TERMINATED);
        if (waits && now >= r->ending.next_ms)
            kill_row(r);
        else if (waits)
            next = get_earlier(next, r->ending.next_ms - now);
        if (r->ending.stage == KILLED && r->ending.has_others)
            next = get_earlier(next, RESCAN_MS);
    }
    if (st.left.stage == TERMINATED && (!st.left.has_others || now >= st.left.next_ms))
        st.left = (struct ending){.stage = KILLED, .has_others = true, .next_ms = now + GIVE_UP_MS};
    if (st.left.has_others || st.former.has_others)
        next = get_earlier(next, RESCAN_MS);
    return st.must_scan ? 0 : (int)next;
}

/* Those that are killed, and what is left at the end, are looked for again until there are none. */
static void scan_if_due(void)
{
    bool is_due = st.must_scan || st.left.has_others || st.former.has_others;
    for (const struct row *r = st.rows; r < st.rows + st.n_rows && !is_due; r++)
        is_due = r->ending.stage == KILLED && r->ending.has_others;
    if (is_due)
        scan_processes();
}

/* After all events: a scan may reap a child that has hidden orphans. */
static void finish_turn(void)
{
    scan_if_due();
    if (st.has_reaped)
        reap_orphans();
    st.has_reaped = false;
}

/* ── starts ── */

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

/* Starts what the packet says. Returns its number or -errno. */
static pid_t spawn_packet(size_t len, const int *fds, unsigned n, struct row *r)
{
    const struct mk__message *m = &st.packet.head;
    int placed[3], err = mk__message_split(st.packet.bytes, len, &st.parts);
    r->step = MK_CHILD_STARTER;
    if (err < 0)
        return err;
    if (!place_fds(m->fd_bits, fds, n, placed))
        return -EBADMSG;
    const struct mk__spawn spawn = {.path = st.parts.path,
                                    .folder = st.parts.folder,
                                    .argv = st.parts.argv,
                                    .envp = st.parts.envp,
                                    .fds = placed,
                                    .limits = &m->limits,
                                    .tag = r->tag};
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
    r->tag = mk__tag_new(&st.tags, (unsigned)(r - st.rows));
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
        close_exited(r);
}

static void handle_message(unsigned channel, size_t len, const int *fds, unsigned n)
{
    const struct mk__message *m = &st.packet.head;
    struct row *r = m->kind == MK__MESSAGE_START ? NULL : find_row(channel, m->id);
    if (m->kind == MK__MESSAGE_START)
        start_child(channel, len, fds, n);
    else if (r && m->kind == MK__MESSAGE_STOP && r->state != FAILED)
        stop_row(r, m->grace_ms);
    else if (r && m->kind == MK__MESSAGE_REAP)
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
    return mk_poll_unlogged(st.polled, n, timeout) > 0 ? n : 0;
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
    if (n && st.polled[1].revents)
        check_rows();
    for (unsigned i = 2; i < n; i++)
        if (st.polled[i].revents && st.channels[i - 2] >= 0)
            serve_channel(i - 2, st.polled[i].revents);
    if (n && st.polled[0].revents && !read_message(CONTROL_FD, -1))
        end_all();
    finish_turn();
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

_Noreturn void mk__starter_loop_run(int control, const struct mk__tags *tags, uint64_t number)
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
    st.tags = *tags;
    mk__tag_begin(&st.tags, number);
    if (number) {
        /* has all killed that carries the tag of a former starter; those still start processes while they end */
        st.former = (struct ending){.stage = KILLED, .has_others = true, .next_ms = get_time() + GIVE_UP_MS};
        st.must_scan = true;
    }
    while (!st.ends || st.n_rows || st.left.stage != KILLED || st.left.has_others || st.former.has_others)
        serve_channels();
    _exit(0);
}
