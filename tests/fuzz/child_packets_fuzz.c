// SPDX-License-Identifier: Apache-2.0
/*
 * What the starter of child processes is sent, amid children that exit and channels that close. The input is a script:
 * each operation is a byte, and its arguments follow. Children, signals and the clock are those of this file. Arguments
 * and descriptors of each start must be whole, signals go only to children that are there, and in the end no row, child
 * or descriptor is left.
 */
#include "child/child.h"

#include <monkey/base/time.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS = 4, CHILDREN = 64, FIRST_PID = 1000000, SCRIPT_BYTES_MAX = 4096, END_MS = 10000 };

enum child_state { CHILD_NONE, CHILD_RUNS, CHILD_ZOMBIE };

static struct {
    const uint8_t *at, *end;
    int control[2], peers[PEERS]; /* our ends; -1: none */
    struct {
        enum child_state state;
        int status;
    } children[CHILDREN];
    unsigned n_children;
    bool fails; /* the next start */
    int64_t now_ms;
} run;

static void require(bool right)
{
    if (!right)
        abort();
}

static unsigned next(void)
{
    return run.at < run.end ? *run.at++ : 0;
}

/* ── the system ── */

static int run_kill(pid_t session, int signal_number)
{
    unsigned n = (unsigned)(-session - FIRST_PID);
    require(n < run.n_children && run.children[n].state != CHILD_NONE);
    if (signal_number == SIGKILL && run.children[n].state == CHILD_RUNS) {
        run.children[n].state = CHILD_ZOMBIE;
        run.children[n].status = SIGKILL;
    }
    return 0;
}

static int run_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    unsigned n = type == P_PID ? id - FIRST_PID : 0;
    (void)options;
    while (type == P_ALL && n < run.n_children && run.children[n].state != CHILD_ZOMBIE)
        n++;
    if (type == P_ALL && n == run.n_children)
        return -1;
    require(n < run.n_children && run.children[n].state != CHILD_NONE);
    info->si_pid = run.children[n].state == CHILD_ZOMBIE ? (pid_t)(FIRST_PID + n) : 0;
    info->si_code = run.children[n].status == SIGKILL ? CLD_KILLED : CLD_EXITED;
    info->si_status = run.children[n].status;
    return 0;
}

static pid_t run_waitpid(pid_t pid, int *status, int options)
{
    unsigned n = (unsigned)(pid - FIRST_PID);
    (void)status, (void)options;
    require(n < run.n_children && run.children[n].state == CHILD_ZOMBIE);
    run.children[n].state = CHILD_NONE;
    return pid;
}

static uint64_t run_clock(void)
{
    return (uint64_t)run.now_ms;
}

#define kill run_kill
#define waitid run_waitid
#define waitpid run_waitpid
#define mk_time_monotonic_ms run_clock
#include "child/starter_loop.c"

/* There are no tags: descendants of children are tested with real ones. */
void mk__tag_open(struct mk__tags *tags)
{
    *tags = (struct mk__tags){0};
}

uint64_t mk__tag_new(struct mk__tags *tags, unsigned index)
{
    (void)tags, (void)index;
    return 0;
}

unsigned mk__tag_index(const struct mk__tags *tags, uint64_t tag)
{
    (void)tags;
    return (unsigned)tag;
}

void mk__tag_begin(struct mk__tags *tags, uint64_t starter)
{
    (void)tags, (void)starter;
}

bool mk__tag_is_own(const struct mk__tags *tags, uint64_t tag)
{
    (void)tags, (void)tag;
    return true;
}

void mk__tag_each(const struct mk__tags *tags, mk__tag_choose_fn choose)
{
    (void)tags, (void)choose;
}

/* A child of a child. */
static void add_orphan(void)
{
    if (run.n_children < CHILDREN)
        run.children[run.n_children++].state = CHILD_ZOMBIE;
}

static void check_strings(char *const *strings, unsigned max)
{
    unsigned n = 0;
    while (strings[n])
        require(strnlen(strings[n++], sizeof(st.packet)) < sizeof(st.packet));
    require(n <= max);
}

pid_t mk__spawn_start(const struct mk__spawn *s, int *ret_pidfd, enum mk_child_step *ret_step)
{
    require(strnlen(s->path, MK_CHILD_BYTES_MAX) < MK_CHILD_BYTES_MAX);
    require(strnlen(s->folder, MK_CHILD_BYTES_MAX) < MK_CHILD_BYTES_MAX);
    check_strings(s->argv, MK_CHILD_ARGS_MAX);
    check_strings(s->envp, MK_CHILD_ENV_MAX);
    for (unsigned i = 0; i < 3; i++)
        require(s->fds[i] < 0 || fcntl(s->fds[i], F_GETFD) == FD_CLOEXEC);
    *ret_step = MK_CHILD_EXEC;
    if (run.fails || run.n_children == CHILDREN)
        return -ENOENT;
    *ret_pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    run.children[run.n_children].state = CHILD_RUNS;
    return (pid_t)(FIRST_PID + run.n_children++);
}

/* ── operations ── */

/* Sends a packet with the same descriptor several times, up to one more than allowed. */
static void send_packet(unsigned n, const void *packet, size_t len, unsigned n_fds)
{
    int fds[MK__MESSAGE_FDS_MAX + 1], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (unsigned i = 0; i < MK__MESSAGE_FDS_MAX + 1; i++)
        fds[i] = null;
    if (run.peers[n] >= 0)
        mk__message_send(run.peers[n], mk_str(packet, len), fds, n_fds % (MK__MESSAGE_FDS_MAX + 2));
    close(null);
}

/* Gives the starter what has come. */
static void serve_all(void)
{
    for (unsigned i = 0; i < st.n_channels; i++)
        if (st.channels[i] >= 0)
            serve_channel(i, POLLIN | POLLOUT);
    finish_turn();
}

static void attach_channel(void)
{
    struct mk__message m = {.kind = MK__MESSAGE_ATTACH};
    unsigned n = next() % PEERS, n_fds = next() % 3;
    int pair[2];
    if (run.peers[n] >= 0)
        return;
    require(mk__message_open_pair(pair) == 0);
    require(mk__message_send(run.control[0], mk_str((char *)&m, sizeof(m)), pair, n_fds ? 1 : 0) == 0);
    run.peers[n] = pair[1];
    close(pair[0]);
    require(read_message(run.control[1], -1));
}

static void send_bytes(void)
{
    unsigned n = next() % PEERS, n_fds = next();
    size_t len = next() << 8 | next(), left = (size_t)(run.end - run.at);
    len = len < left ? len : left;
    send_packet(n, run.at, len, n_fds);
    run.at += len;
    serve_all();
}

/* A start whose strings are as long as the script says, and are whole unless it says otherwise. */
static void send_start(void)
{
    static char bytes[sizeof(struct mk__message) + 4 * 1024];
    struct mk__message m = {.kind = MK__MESSAGE_START};
    unsigned n = next() % PEERS;
    uint32_t *const lengths[] = {&m.path_bytes, &m.folder_bytes, &m.arg_bytes, &m.env_bytes};
    size_t len = sizeof(m);
    m.id = next() % 8;
    m.fd_bits = next();
    run.fails = next() & 1;
    for (unsigned i = 0; i < 4; i++) {
        *lengths[i] = next() * 4;
        memset(bytes + len, i < 2 ? 'a' : (char)(next() & 1), *lengths[i]);
        len += *lengths[i];
        bytes[len - 1] = '\0';
    }
    m.path_bytes += next() == 1;
    memcpy(bytes, &m, sizeof(m));
    send_packet(n, bytes, len, (unsigned)__builtin_popcount(m.fd_bits & 7) + (next() == 1));
    serve_all();
}

static void send_order(void)
{
    unsigned n = next() % PEERS, what = next();
    struct mk__message m = {.kind = what & 1 ? MK__MESSAGE_REAP : MK__MESSAGE_STOP};
    m.id = next() % 8;
    m.grace_ms = (what >> 1) * 100;
    send_packet(n, &m, sizeof(m), 0);
    serve_all();
}

static void exit_child(void)
{
    unsigned n = next() % CHILDREN;
    if (n < run.n_children && run.children[n].state == CHILD_RUNS)
        run.children[n].state = CHILD_ZOMBIE;
    check_rows();
}

static void read_reports(void)
{
    unsigned n = next() % PEERS, n_fds = 0;
    int fds[MK__MESSAGE_FDS_MAX];
    struct mk__message m;
    ssize_t len;
    while (run.peers[n] >= 0 && (len = mk__message_receive(run.peers[n], (char *)&m, sizeof(m), fds, &n_fds)) > 0) {
        require(len == sizeof(m) && (m.kind == MK__MESSAGE_STARTED || m.kind == MK__MESSAGE_EXITED));
        require(n_fds == (m.kind == MK__MESSAGE_STARTED && !m.err));
        close_fds(fds, n_fds);
    }
    serve_all();
}

static void close_peer(unsigned n)
{
    if (run.peers[n] >= 0)
        close(run.peers[n]);
    run.peers[n] = -1;
    serve_all();
}

static void pass_time(void)
{
    if (next() & 1)
        add_orphan();
    run.now_ms += 1000;
    kill_late();
    check_rows();
    scan_if_due();
}

static void run_operation(void)
{
    switch (next() % 8) {
    case 0:
        attach_channel();
        break;
    case 1:
        send_bytes();
        break;
    case 2:
    case 3:
        send_start();
        break;
    case 4:
        send_order();
        break;
    case 5:
        exit_child();
        break;
    case 6:
        if (next() & 1)
            read_reports();
        else
            close_peer(next() % PEERS);
        break;
    default:
        pass_time();
    }
}

/* ── the run ── */

/* Returns how many descriptors are open, of the first hundred. */
static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 100; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void begin_run(const uint8_t *data, size_t size)
{
    memset(&run, 0, sizeof(run));
    memset(&st, 0, sizeof(st));
    run.at = data;
    run.end = data + size;
    st.signal_fd = -1;
    for (unsigned i = 0; i < CHANNELS_MAX; i++)
        st.channels[i] = -1;
    for (unsigned i = 0; i < PEERS; i++)
        run.peers[i] = -1;
    require(mk__message_open_pair(run.control) == 0);
}

/* The server ends: its children are ended, those that stay are killed. */
static void end_run(void)
{
    for (unsigned i = 0; i < PEERS; i++)
        close_peer(i);
    close(run.control[0]);
    require(!read_message(run.control[1], -1));
    end_all();
    for (unsigned i = 0; i < 2; i++) {
        scan_if_due();
        run.now_ms += END_MS;
        kill_late();
        check_rows();
    }
    finish_turn();
    require(st.n_rows == 0);
    for (unsigned i = 0; i < run.n_children; i++)
        require(run.children[i].state == CHILD_NONE);
    close(run.control[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int before = count_fds();
    if (size > SCRIPT_BYTES_MAX)
        return 0;
    begin_run(data, size);
    while (run.at < run.end)
        run_operation();
    end_run();
    require(count_fds() == before);
    return 0;
}
