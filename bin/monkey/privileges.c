// SPDX-License-Identifier: Apache-2.0
/*
 * From root to another user: real, effective and saved user and group ids, supplementary groups and
 * capabilities. Each step is verified, because a step that failed silently would be noticed only by an attacker.
 */
#include "program.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUPS_MAX = 4096 };

int privileges_set_no_new_privs(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return 0;
    fprintf(stderr, "monkey: cannot set no_new_privs: %s\n", strerror(errno));
    return -EPERM;
}

void privileges_forbid_dumps(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail */
}

void privileges_apply_core_dumps(const struct mk_server *server)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    prctl(PR_SET_DUMPABLE, process.core_dumps, 0, 0, 0);
}

bool privileges_must_drop(const struct mk_server_process *p)
{
    return p->user && p->uid != 0 && geteuid() == 0;
}

static int report_failure(const struct mk_server_process *p, const char *step, int err)
{
    fprintf(stderr, "monkey: cannot become the user %s: %s: %s\n", p->user, step, strerror(err));
    return -err;
}

/* setresuid() keeps the inheritable capabilities, and with some securebits all. Returns whether none is left. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}}, now[2] = {{0}};
    return syscall(SYS_capset, &head, none) == 0 && syscall(SYS_capget, &head, now) == 0 &&
           memcmp(now, none, sizeof(none)) == 0;
}

static bool has_group(const gid_t *groups, int n, gid_t group)
{
    for (int i = 0; i < n; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Returns whether the process has groups that the user is not a member of, or whether that is not certain. */
static bool has_foreign_groups(const struct mk_server_process *p)
{
    gid_t own[GROUPS_MAX], now[GROUPS_MAX];
    int n_own = GROUPS_MAX, n_now = getgroups(GROUPS_MAX, now);
    if (n_now < 0 || getgrouplist(p->user, p->gid, own, &n_own) < 0)
        return true;
    for (int i = 0; i < n_now; i++)
        if (!has_group(own, n_own, now[i]))
            return true;
    return false;
}

static int verify_identity(const struct mk_server_process *p)
{
    uid_t uid[3];
    gid_t gid[3];
    if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
        return report_failure(p, "reading the user and group ids", errno);
    for (int i = 0; i < 3; i++)
        if (uid[i] != p->uid || gid[i] != p->gid)
            return report_failure(p, "another user or group id remains", EPERM);
    if (has_foreign_groups(p))
        return report_failure(p, "supplementary groups remain", EPERM);
    if (setuid(0) == 0 || seteuid(0) == 0)
        return report_failure(p, "it can become root again", EPERM);
    return 0;
}

int privileges_drop(const struct mk_server_process *p)
{
    assert(privileges_must_drop(p));
    if (initgroups(p->user, p->gid) < 0)
        return report_failure(p, "supplementary groups", errno);
    if (setresgid(p->gid, p->gid, p->gid) < 0)
        return report_failure(p, "group", errno);
    if (setresuid(p->uid, p->uid, p->uid) < 0)
        return report_failure(p, "user", errno);
    launcher_set_pdeathsig(); /* the kernel clears it when the user changes */
    if (!drop_capabilities())
        return report_failure(p, "capabilities remain", EPERM);
    return verify_identity(p);
}

int privileges_run_as_user(const struct mk_server_process *p, int (*check)(void *ctx), void *ctx)
{
    assert(privileges_must_drop(p));
    int status = 0;
    fflush(NULL); /* else the child could write what is buffered a second time */
    pid_t pid = fork();
    if (pid < 0)
        return 0;
    if (pid == 0)
        _exit(privileges_drop(p) == 0 ? check(ctx) : 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}
