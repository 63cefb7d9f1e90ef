// SPDX-License-Identifier: Apache-2.0
/*
 * Starts one program. The child shares the memory of the starter until it has executed the program, as with
 * vfork(2), so that the cost does not depend on that memory, and an error can be written to it.
 */
#include "child.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024, USUAL_FILES = 1024, SIGNALS_MAX = 64 };

/*
 * For functions that run in the child: they never return to the starter, in whose memory a sanitizer would keep what it
 * notes of their frames.
 */
#define IN_CHILD __attribute__((no_sanitize("address"), no_sanitize("thread")))

/* What the child writes for the starter. */
struct attempt {
    const struct mk__spawn *spawn;
    pid_t starter;
    int err;
    enum mk_child_step step;
};

IN_CHILD static int set_limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
    return value && setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* The server may have many more descriptors than a program expects that has never seen them. */
IN_CHILD static int set_usual_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if (limit.rlim_cur > USUAL_FILES)
        limit.rlim_cur = USUAL_FILES;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

IN_CHILD static int set_tag(uint64_t tag)
{
    struct rlimit limit;
    if (!tag)
        return 0;
    if (getrlimit(RLIMIT_LOCKS, &limit) < 0)
        return -errno;
    limit.rlim_max = tag;
    if (limit.rlim_cur > tag)
        limit.rlim_cur = tag;
    return setrlimit(RLIMIT_LOCKS, &limit) < 0 ? -errno : 0;
}

IN_CHILD static int set_limits(const struct mk_child_limits *limits, uint64_t tag)
{
    int err = set_tag(tag);
    if (err == 0)
        err = limits->files ? set_limit(RLIMIT_NOFILE, limits->files) : set_usual_files();
    if (err == 0)
        err = set_limit(RLIMIT_CPU, limits->cpu_seconds);
    if (err == 0)
        err = set_limit(RLIMIT_NPROC, limits->processes);
    return err == 0 ? set_limit(RLIMIT_AS, limits->memory_bytes) : err;
}

IN_CHILD static void reset_signals(void)
{
    sigset_t none;
    for (int number = 1; number <= SIGNALS_MAX; number++)
        signal(number, SIG_DFL); /* fails for those that have no other */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD static int place_descriptors(const int *fds)
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            return -errno;
    close_range(3, ~0U, 0); /* they are close-on-exec, too */
    return 0;
}

/* Without the starter the child would run unobserved: the kernel kills it then. Returns 0 or -errno. */
IN_CHILD static int die_with_starter(pid_t starter)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    return getppid() == starter ? 0 : -ESRCH; /* it has ended before that call */
}

/*
 * Gives up the inheritable, ambient and effective capabilities, so that the program has none. A sandbox may forbid
 * capset(2): without ambient ones execve() gives capabilities to root alone. Returns 0 or -errno.
 */
IN_CHILD static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_capset, &head, none) < 0 && geteuid() == 0 ? -errno : 0;
}

/* In the child, which shares the memory of the starter. */
IN_CHILD static int run_child(void *arg)
{
    struct attempt *a = arg;
    const struct mk__spawn *s = a->spawn;
    setsid();
    reset_signals();
    a->step = MK_CHILD_FORK;
    a->err = die_with_starter(a->starter);
    if (a->err == 0)
        a->err = place_descriptors(s->fds);
    if (a->err == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        a->err = -errno;
    if (a->err == 0) {
        a->step = MK_CHILD_FOLDER;
        a->err = chdir(s->folder) < 0 ? -errno : 0;
    }
    if (a->err == 0) {
        a->step = MK_CHILD_LIMITS;
        a->err = set_limits(s->limits, s->tag);
    }
    if (a->err == 0) {
        a->step = MK_CHILD_RIGHTS;
        a->err = drop_capabilities(); /* after the limits, which may need one */
    }
    if (a->err == 0) {
        a->step = MK_CHILD_EXEC;
        execve(s->path, s->argv, s->envp);
        a->err = -errno;
    }
    _exit(127);
}

pid_t mk__spawn_start(const struct mk__spawn *s, int *ret_pidfd, enum mk_child_step *ret_step)
{
    static char stack[STACK_BYTES] __attribute__((aligned(64))); /* the starter has one thread */
    struct attempt a = {.spawn = s, .starter = getpid()};
    pid_t pid = clone(run_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &a, ret_pidfd);
    *ret_step = pid < 0 ? MK_CHILD_FORK : a.step;
    if (pid < 0)
        return -errno;
    if (a.err == 0)
        return pid;
    close(*ret_pidfd);
    waitpid(pid, NULL, 0);
    return a.err;
}
