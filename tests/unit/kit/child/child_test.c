// SPDX-License-Identifier: Apache-2.0
/*
 * Children: real processes, started by a starter that the test forks when its job runs.
 */
#include "turn.h"

#include "kit/child/child.h"

#include <monkey/kit/child.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CHILDREN = 100 };

/* A child, and what has become of it. */
struct run {
    struct mk_child child;
    unsigned started, ended;
    int err, status, out; /* out: the end of its stdout that the test reads; -1 */
    enum mk_child_step step;
    bool keeps; /* it is not closed when it ends */
    char text[4096];
    size_t len;
    bool has_eof;
};

static struct mk_loop loop;
static struct mk_account account;
static struct mk_child_starter *starter;
static struct mk_child_channel *channel;
static struct mk_job *pending;
static bool refuses_jobs;
static int fork_err, socketpair_err;
static uint64_t killed_in_fork, reaped_in_fork; /* the serial of the starter; 0: none */
static struct run runs[CHILDREN];

/* ── calls in their place ── */

int mk_job_submit(struct mk_loop *l, struct mk_job *job)
{
    assert_ptr_equal(l, &loop);
    assert_null(pending);
    if (refuses_jobs)
        return -EAGAIN;
    pending = job;
    return 0;
}

pid_t fork(void)
{
    if (killed_in_fork)
        mk__starter_kill(starter, killed_in_fork); /* under the lock */
    if (reaped_in_fork)
        mk__starter_reap(starter, reaped_in_fork);
    killed_in_fork = reaped_in_fork = 0;
    errno = fork_err;
    return fork_err ? -1 : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    fds[0] = fds[1] = -1; /* MemorySanitizer does not see what syscall(2) writes */
    errno = socketpair_err;
    return socketpair_err ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

/* ── the fixture ── */

static int open_fixture(void **state)
{
    (void)state;
    memset(runs, 0, sizeof(runs));
    account = (struct mk_account){0};
    refuses_jobs = false;
    fork_err = socketpair_err = 0;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    assert_int_equal(mk_child_starter_new(&starter), 0);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
    return 0;
}

/* Nothing is left: no memory, and no process, not even a zombie. */
static int close_fixture(void **state)
{
    (void)state;
    mk_child_channel_close(channel);
    mk_child_starter_free(starter);
    assert_int_equal(account.bytes, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    mk__loop_close(&loop);
    return 0;
}

static void on_started(struct mk_child *child, int err, enum mk_child_step step)
{
    struct run *r = MK_CONTAINER_OF(child, struct run, child);
    r->started++;
    r->err = err;
    r->step = step;
    assert_int_equal(mk_child_pid(child) > 0, err == 0);
}

static void on_ended(struct mk_child *child, int status)
{
    struct run *r = MK_CONTAINER_OF(child, struct run, child);
    r->ended++;
    r->status = status;
    if (!r->keeps)
        mk_child_close(child);
}

static const struct mk_child_events events = {on_started, on_ended};

/* Waits for what happens: in the loop, or in the output of a child. */
static void wait_turn(struct run *r)
{
    if (pending) {
        struct mk_job *job = pending;
        job->work(job);
        pending = NULL;
        job->done(job);
    }
    mk_test_turn(&loop);
    struct pollfd fds = {.fd = r->has_eof ? -1 : r->out, .events = POLLIN};
    if (poll(&fds, 1, 1) != 1)
        return;
    ssize_t n = read(r->out, r->text + r->len, sizeof(r->text) - 1 - r->len);
    r->has_eof = n <= 0;
    r->len += n > 0 ? (size_t)n : 0;
}

static void wait_for(struct run *r, const unsigned *count)
{
    while (!*count)
        wait_turn(r);
}

/* Starts a program. `args` is a list of words that ends with NULL. */
static int start(struct run *r, const char *path, const char *const *args, const struct mk_child_options *more)
{
    char words[2048];
    size_t n = 0;
    int pair[2];
    for (; *args; args++) {
        memcpy(words + n, *args, strlen(*args) + 1);
        n += strlen(*args) + 1;
    }
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    struct mk_child_options options = more ? *more : (struct mk_child_options){0};
    options.path = path;
    options.args = mk_str(words, n);
    options.fds[0] = options.fds[2] = -1;
    options.fds[1] = pair[1];
    *r = (struct run){.out = pair[0]};
    return mk_child_start(&r->child, channel, NULL, &events, &options);
}

static int start_shell(struct run *r, const char *script, const struct mk_child_options *more)
{
    const char *const args[] = {"sh", "-c", script, NULL};
    return start(r, "/bin/sh", args, more);
}

/* Runs a script to its end, and returns what it has written. */
static const char *run_shell(struct run *r, const char *script, const struct mk_child_options *more)
{
    assert_int_equal(start_shell(r, script, more), 0);
    wait_for(r, &r->ended);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
    assert_int_equal(r->started, 1);
    assert_int_equal(r->err, 0);
    return r->text;
}

/* ── what a child gets ── */

TEST(arguments_and_variables, open_fixture, close_fixture)
{
    const struct mk_child_options options = {.env = MK_STR("A=one two\0B=\0"), .folder = "/usr"};
    assert_string_equal(run_shell(&runs[0], "echo \"$A|$B|${C-none}\"; pwd; exit 3", &options),
                        "one two||none\n/usr\n");
    assert_int_equal(WEXITSTATUS(runs[0].status), 3);
}

static const char *find_line(const char *text, const char *name)
{
    static char line[128];
    const char *at = strstr(text, name);
    assert_non_null(at);
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* No descriptor, signal or right of the server; its input is empty. */
TEST(surroundings, open_fixture, close_fixture)
{
    int extra = open("/dev/null", O_RDONLY); /* without close-on-exec */
    sigset_t blocked, before;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, &before);
    signal(SIGPIPE, SIG_IGN);
    const char *text = run_shell(&runs[0],
                                 "cat; cat /proc/$$/status; echo pid $$; "
                                 "cut -d ' ' -f 5,6 /proc/$$/stat",
                                 NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
    const char *open_fds = run_shell(&runs[1], "exec ls /proc/self/fd", NULL);
    assert_string_equal(open_fds, "0\n1\n2\n3\n"); /* the last one is that of ls */
    close(extra);
    assert_int_equal(strncmp(text, "Name:", 5), 0); /* `cat` has read nothing */
    assert_non_null(strstr(find_line(text, "NoNewPrivs:"), "1"));
    static const char *const empty[] = {"SigIgn:", "CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
    for (size_t i = 0; i < MK_COUNT_OF(empty); i++)
        assert_null(strpbrk(find_line(text, empty[i]) + 7, "123456789abcdef"));
    const char *pid = strstr(text, "pid ");
    unsigned number, group, session;
    assert_non_null(pid);
    assert_int_equal(sscanf(pid, "pid %u %u %u", &number, &group, &session), 3);
    assert_int_equal(number, group);
    assert_int_equal(number, session);
}

TEST(limits, open_fixture, close_fixture)
{
    const struct mk_child_options options = {
        .limits = {.memory_bytes = 1 << 30, .cpu_seconds = 7, .files = 33, .processes = 4000}};
    assert_string_equal(run_shell(&runs[0], "ulimit -v; ulimit -t; ulimit -n; ulimit -p", &options),
                        "1048576\n7\n33\n4000\n");
    uint64_t files = 0;
    assert_true(mk_str_u64(mk_str_c(run_shell(&runs[1], "printf $(ulimit -n)", NULL)), 1024, &files));
}

/* ── failures ── */

static void check_failure(const char *path, const struct mk_child_options *options, int err, enum mk_child_step step)
{
    struct run *r = &runs[0];
    const char *const args[] = {"a", NULL};
    assert_int_equal(start(r, path, args, options), 0);
    wait_for(r, &r->started);
    assert_int_equal(r->err, err);
    assert_int_equal(r->step, step);
    assert_int_equal(r->ended, 0);
    assert_true(strlen(mk_child_step_text(step)) > 0);
    close(r->out);
}

TEST(programs_that_cannot_be_run, open_fixture, close_fixture)
{
    const struct mk_child_options folder = {.folder = "/missing"};
    const struct mk_child_options limits = {.limits = {.files = UINT64_C(1) << 60}};
    check_failure("/missing", NULL, -ENOENT, MK_CHILD_EXEC);
    check_failure("/etc/passwd", NULL, -EACCES, MK_CHILD_EXEC);
    check_failure("/bin/sh", &folder, -ENOENT, MK_CHILD_FOLDER);
    check_failure("/bin/sh", &limits, -EPERM, MK_CHILD_LIMITS);
    assert_string_equal(run_shell(&runs[1], "echo fine", NULL), "fine\n");
}

TEST(starts_that_fail, open_fixture, close_fixture)
{
    fork_err = EAGAIN;
    check_failure("/bin/sh", NULL, -EAGAIN, MK_CHILD_STARTER);
    fork_err = 0;
    socketpair_err = EMFILE;
    check_failure("/bin/sh", NULL, -EMFILE, MK_CHILD_STARTER);
    socketpair_err = 0;
    refuses_jobs = true;
    check_failure("/bin/sh", NULL, -EAGAIN, MK_CHILD_STARTER);
    refuses_jobs = false;
    assert_string_equal(run_shell(&runs[1], "echo fine", NULL), "fine\n");
}

TEST(too_long, open_fixture, close_fixture)
{
    static char env[MK_CHILD_BYTES_MAX + 1];
    struct mk_child_options options = {.env = mk_str(env, MK_CHILD_ENV_MAX + 1)};
    assert_int_equal(start_shell(&runs[0], "echo", &options), -E2BIG);
    close(runs[0].out);
    memset(env, 'a', sizeof(env));
    options.env = mk_str(env, sizeof(env));
    assert_int_equal(start_shell(&runs[0], "echo", &options), -E2BIG);
    close(runs[0].out);
    memcpy(env, "LONG=", 5);
    env[MK_CHILD_BYTES_MAX - 65] = '\0';
    options.env = mk_str(env, MK_CHILD_BYTES_MAX - 64);
    assert_string_equal(run_shell(&runs[0], "echo ${#LONG}", &options), "131002\n");
}

static int start_and_run(void *ctx)
{
    struct mk_child_starter *s;
    struct mk_child_channel *c;
    struct run r = {.out = -1};
    const struct mk_child_options options = {.path = "/missing", .args = MK_STR("a\0"), .fds = {-1, -1, -1}};
    (void)ctx;
    int err = mk_child_starter_new(&s);
    if (err < 0)
        return err;
    err = mk_child_channel_open(s, &loop, NULL, &c);
    if (err == 0) {
        err = mk_child_start(&r.child, c, NULL, &events, &options);
        while (err == 0 && !r.started)
            wait_turn(&r);
        mk_child_channel_close(c);
    }
    mk_child_starter_free(s);
    return err < 0 ? err : r.err == -ENOENT ? 0 : r.err;
}

TEST(failing_memory, open_fixture, close_fixture)
{
    assert_true(mk_test_failing_allocs(start_and_run, NULL) >= 4);
}

/* ── ends ── */

/* SIGTERM is enough for one, and for all that it has forked. */
TEST(stop, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, "sleep 1000 & echo ready; wait", NULL), 0);
    while (!r->len)
        wait_turn(r);
    mk_child_stop(&r->child, 60000);
    mk_child_stop(&r->child, 1);
    wait_for(r, &r->ended);
    while (!r->has_eof)
        wait_turn(r);
    assert_int_equal(WTERMSIG(r->status), SIGTERM);
    close(r->out);
}

/* One that ignores SIGTERM is killed, with what it has forked. */
TEST(kill_after_grace, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, "trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done", NULL), 0);
    while (!r->len)
        wait_turn(r);
    mk_child_stop(&r->child, 50);
    wait_for(r, &r->ended);
    while (!r->has_eof)
        wait_turn(r);
    assert_int_equal(WTERMSIG(r->status), SIGKILL);
    close(r->out);
}

/* What a program has left behind ends with the stop, too. */
TEST(stop_of_what_is_left, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, "sleep 1000 & exit 0", NULL), 0);
    r->keeps = true;
    wait_for(r, &r->ended);
    wait_turn(r);
    assert_false(r->has_eof);
    mk_child_stop(&r->child, 60000);
    mk_child_close(&r->child);
    while (!r->has_eof)
        wait_turn(r);
    mk_child_close(&r->child);
    close(r->out);
}

/* Ways to leave the parent, the group and the session of a script; each says when it has. */
#define LEFT "exec sleep 1000"
static const char *const ways[] = {
    "setsid sh -c 'echo left; " LEFT "' & wait",
    "setsid sh -c 'echo left; " LEFT "' & exit 0",
    "setsid sh -c 'setsid sh -c \"echo left; " LEFT "\" & exit' & wait",
    "setsid -f sh -c 'echo left; trap \"\" TERM; while :; do sleep 1000; done'; exit 0",
    "setsid -f env -i sh -c 'cd /; echo left; " LEFT "'; sleep 1000",
    "timeout 1000 sh -c 'echo left; " LEFT "'",
    "trap '' TERM; setsid sh -c 'echo left; " LEFT "' & wait; wait",
    "setsid -f sh -c 'ulimit -t 1000; echo left; " LEFT "'; sleep 1000",
    "setsid -f prlimit --rttime=1000000:1000000 sh -c 'echo left; " LEFT "'; sleep 1000",
    /* without a tag within the session of the script, in another group */
    "prlimit --locks=5:5 timeout 1000 sh -c 'echo left; " LEFT "'",
    /* each process starts the next one, and ends */
    "f='setsid -f sh -c \"$0\" \"$0\"'; echo left; sh -c \"$f\" \"$f\"; sleep 1000",
};

/* All that descends from a child ends with it; the pipe that each of them holds is the proof. */
static void stop_descendants(void)
{
    for (size_t i = 0; i < MK_COUNT_OF(ways); i++) {
        struct run *r = &runs[i];
        assert_int_equal(start_shell(r, ways[i], NULL), 0);
        r->keeps = true;
        while (!strstr(r->text, "left"))
            wait_turn(r);
        assert_false(r->has_eof);
        mk_child_stop(&r->child, 100);
        wait_for(r, &r->ended);
        mk_child_close(&r->child);
        while (!r->has_eof)
            wait_turn(r);
        close(r->out);
    }
}

TEST(stop_of_descendants, open_fixture, close_fixture)
{
    stop_descendants();
}

/* Also where the service manager limits the server. This cannot be undone in this process. */
TEST(stop_of_descendants_with_limits, open_fixture, close_fixture)
{
    struct rlimit time = {.rlim_cur = 60000000, .rlim_max = 60000000}, locks;
    assert_int_equal(setrlimit(RLIMIT_RTTIME, &time), 0);
    assert_int_equal(getrlimit(RLIMIT_LOCKS, &locks), 0);
    locks.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_LOCKS, &locks), 0);
    stop_descendants();
}

/* Those of another child continue. */
TEST(stop_spares_others, open_fixture, close_fixture)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(start_shell(&runs[i], "setsid -f sh -c 'echo left; exec sleep 1000'; sleep 1000", NULL), 0);
        while (!runs[i].len)
            wait_turn(&runs[i]);
    }
    mk_child_stop(&runs[0].child, 100);
    while (!runs[0].has_eof)
        wait_turn(&runs[0]);
    wait_turn(&runs[1]);
    assert_false(runs[1].has_eof);
    assert_int_equal(runs[1].ended, 0);
    mk_child_stop(&runs[1].child, 100);
    while (!runs[1].has_eof || !runs[1].ended)
        wait_turn(&runs[1]);
    close(runs[0].out);
    close(runs[1].out);
}

/* What children leave behind that have ended by themselves continues, until the starter ends. */
TEST(end_of_what_is_left, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, "setsid -f sh -c 'echo left; exec sleep 1000'; exit 0", NULL), 0);
    wait_for(r, &r->ended);
    while (!r->len)
        wait_turn(r);
    assert_false(r->has_eof);
    mk_child_channel_close(channel);
    mk_child_starter_free(starter);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
    assert_int_equal(mk_child_starter_new(&starter), 0);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
}

TEST(stop_before_the_start, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, "sleep 1000", NULL), 0);
    mk_child_stop(&r->child, 60000);
    wait_for(r, &r->ended);
    assert_int_equal(r->started, 1);
    assert_int_equal(WTERMSIG(r->status), SIGTERM);
    close(r->out);
}

/* The starter ends what a channel leaves, also what ignores SIGTERM. */
TEST(closed_channel, open_fixture, close_fixture)
{
    assert_int_equal(start_shell(&runs[0], "echo ready; sleep 1000", NULL), 0);
    assert_int_equal(start_shell(&runs[1], "trap '' TERM; echo ready; while :; do sleep 1000; done", NULL), 0);
    for (int i = 0; i < 2; i++)
        while (!runs[i].len)
            wait_turn(&runs[i]);
    mk_child_channel_close(channel);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
    for (int i = 0; i < 2; i++) {
        while (!runs[i].has_eof)
            wait_turn(&runs[i]);
        assert_int_equal(runs[i].ended, 0);
        close(runs[i].out);
    }
}

/* A channel that is closed while its job is under way. */
TEST(closed_channel_before_the_start, open_fixture, close_fixture)
{
    assert_int_equal(start_shell(&runs[0], "echo", NULL), 0);
    mk_child_channel_close(channel);
    wait_turn(&runs[0]);
    assert_int_equal(runs[0].started, 0);
    close(runs[0].out);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
}

/* Until there is another starter: it is not forked within a second. */
static void run_with_next_starter(struct run *r)
{
    do {
        assert_int_equal(start_shell(r, "echo fine", NULL), 0);
        wait_for(r, &r->started);
        if (r->err < 0)
            close(r->out);
    } while (r->err < 0);
    wait_for(r, &r->ended);
    assert_int_equal(r->status, 0);
    close(r->out);
}

/* Starts a program that does not end, and waits until it runs. */
static void start_sleep(struct run *r)
{
    assert_int_equal(start_shell(r, "echo ready; exec sleep 1000", NULL), 0);
    while (!r->len || !r->started)
        wait_turn(r);
}

/* The starter is killed: its children end with it, and another starter takes its place. */
TEST(starter_that_ends, open_fixture, close_fixture)
{
    struct run *r = &runs[0], *next = &runs[1];
    start_sleep(r);
    for (uint64_t serial = 1; serial < 3; serial++) {
        mk__starter_kill(starter, serial);
        run_with_next_starter(next);
    }
    wait_for(r, &r->ended);
    assert_int_equal(r->status, -1);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
}

#define LEAVE "setsid -f sh -c 'echo left; exec sleep 1000'; exec sleep 1000"

/* What descends from the children of a starter that is killed ends with the next one, of whose children none does. */
TEST(descendants_of_a_starter_that_ends, open_fixture, close_fixture)
{
    for (uint64_t serial = 1; serial < 3; serial++) {
        struct run *r = &runs[serial];
        do {
            assert_int_equal(start_shell(r, LEAVE, NULL), 0);
            wait_for(r, &r->started);
            if (r->err < 0)
                close(r->out);
        } while (r->err < 0);
        while (!strstr(r->text, "left"))
            wait_turn(r);
        if (serial == 1)
            mk__starter_kill(starter, serial);
    }
    while (!runs[1].has_eof || !runs[1].ended)
        wait_turn(&runs[1]);
    wait_turn(&runs[2]);
    assert_false(runs[2].has_eof);
    assert_int_equal(runs[2].ended, 0);
    mk_child_stop(&runs[2].child, 60000);
    while (!runs[2].has_eof || !runs[2].ended)
        wait_turn(&runs[2]);
    close(runs[1].out);
    close(runs[2].out);
}

/* They end with the server, too, if there was no next one. */
TEST(descendants_of_the_last_starter, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    assert_int_equal(start_shell(r, LEAVE, NULL), 0);
    while (!strstr(r->text, "left"))
        wait_turn(r);
    mk__starter_kill(starter, 1);
    wait_for(r, &r->ended);
    mk_child_channel_close(channel);
    mk_child_starter_free(starter);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
    assert_int_equal(mk_child_starter_new(&starter), 0);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
}

/* Tells whether no child of the test's process is left, not even a zombie. */
static bool has_no_process(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* A starter that ends is reaped without another start; the channel keeps no descriptor of it. */
TEST(starter_that_is_reaped, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    start_sleep(r);
    int before = dup(0);
    close(before);
    mk__starter_kill(starter, 1);
    wait_for(r, &r->ended);
    while (!has_no_process())
        wait_turn(r);
    int after = dup(0);
    close(after);
    assert_true(after <= before);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
}

/* A channel is closed before its starter has ended, or is reaped: the end of the starter's record does that. */
TEST(starter_that_ends_behind_its_channel, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    start_sleep(r);
    mk__starter_kill(starter, 1);
    wait_for(r, &r->ended);
    mk_child_channel_close(channel);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
}

/* There is another starter before the end of the first one is noticed: that one stays. */
TEST(starter_that_is_reaped_late, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    start_sleep(r);
    mk__starter_reap(starter, 0);
    mk__starter_reap(starter, 2);
    assert_false(has_no_process());
    mk_child_stop(&r->child, 60000);
    wait_for(r, &r->ended);
    assert_int_equal(r->status, SIGTERM);
    close(r->out);
}

/* A thread that reaps the starter does not wait for one that forks. */
TEST(starter_that_is_reaped_while_it_is_forked, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    reaped_in_fork = 1;
    assert_int_equal(start_shell(r, "exec sleep 1000", NULL), 0);
    wait_for(r, &r->started);
    assert_int_equal(reaped_in_fork, 0);
    if (r->err == 0)
        wait_for(r, &r->ended);
    while (!has_no_process())
        wait_turn(r);
    close(r->out);
}

/* There was no descriptor for the pidfds: the ends are reported at once. A callback closes one of the others. */
TEST(starter_that_ends_without_pidfds, open_fixture, close_fixture)
{
    for (int i = 0; i < 3; i++) {
        start_sleep(&runs[i]);
        close(runs[i].child.pidfd);
        runs[i].child.pidfd = -1;
    }
    runs[1].keeps = true;
    mk__starter_kill(starter, 1);
    for (int i = 0; i < 3; i++) {
        wait_for(&runs[i], &runs[i].ended);
        assert_int_equal(runs[i].ended, 1);
        assert_int_equal(runs[i].status, -1);
        close(runs[i].out);
    }
    mk_child_close(&runs[1].child);
}

TEST(stop_of_a_lost_child, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    start_sleep(r);
    mk__starter_kill(starter, 1);
    run_with_next_starter(&runs[1]);
    mk_child_stop(&r->child, 60000);
    wait_for(r, &r->ended);
    assert_int_equal(r->ended, 1);
    close(r->out);
}

TEST(closed_channel_of_a_lost_child, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    start_sleep(r);
    mk__starter_kill(starter, 1);
    mk_child_channel_close(channel);
    assert_int_equal(mk_child_channel_open(starter, &loop, &account, &channel), 0);
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
}

/* The starter ends before anything knows of the child. */
TEST(child_that_was_not_reported, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char name[] = "sleep", seconds[] = "1000";
        char *const argv[] = {name, seconds, NULL}, *const envp[] = {NULL};
        const int fds[] = {-1, pair[1], -1};
        const struct mk_child_limits limits = {0};
        const struct mk__spawn spawn = {"/bin/sleep", "/", argv, envp, fds, &limits, 0};
        enum mk_child_step step;
        int pidfd;
        _exit(mk__spawn_start(&spawn, &pidfd, &step) > 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(pair[1]);
    *r = (struct run){.out = pair[0]};
    while (!r->has_eof)
        wait_turn(r);
    close(r->out);
}

/* A thread that kills the starter does not wait for one that forks. */
TEST(starter_that_is_killed_while_it_is_forked, open_fixture, close_fixture)
{
    struct run *r = &runs[0];
    killed_in_fork = 1;
    assert_int_equal(start_shell(r, "exec sleep 1000", NULL), 0);
    wait_for(r, &r->started);
    assert_int_equal(killed_in_fork, 0);
    if (r->err == 0)
        wait_for(r, &r->ended);
    close(r->out);
    run_with_next_starter(&runs[1]);
}

/* ── many ── */

TEST(many, open_fixture, close_fixture)
{
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(start_shell(&runs[i], "echo x", NULL), 0);
    for (int i = 0; i < CHILDREN; i++) {
        wait_for(&runs[i], &runs[i].ended);
        while (!runs[i].has_eof)
            wait_turn(&runs[i]);
        assert_string_equal(runs[i].text, "x\n");
        close(runs[i].out);
    }
}

TEST(statuses)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {{0, "ended with status 0"},
                {3 << 8, "ended with status 3"},
                {9, "was killed by signal 9 (Killed)"},
                {-1, "was killed with the process that starts others"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[64];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk_child_print_status(rows[i].status, &out);
        assert_str_equal(mk_buf_str(&out), rows[i].text);
    }
}
