// SPDX-License-Identifier: Apache-2.0
/*
 * Checks that a configuration can be used on this machine: its listeners, its log and its pid file (server/check.h).
 */
#include "server/check.h"

#include "base/file.h"
#include "net/port_owner.h"
#include "server/listen/limits.h"
#include "server/listen/listeners.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── listeners ── */

static bool is_this_process(int pid, void *ctx)
{
    (void)ctx;
    return pid == getpid();
}

/*
 * Describes why an address cannot be had, after the error itself. A reload after User took effect cannot bind ports
 * below 1024, nor an address with a port that root has opened.
 */
static void describe_reason(const struct mk__settings *settings, const struct mk__addr *addr, int err,
                            struct mk_buf *out)
{
    struct mk__port_owner owner;
    enum mk__port_owner_kind kind =
        err == -EADDRINUSE ? mk__port_owner_find(addr, is_this_process, NULL, &owner) : MK__PORT_OWNER_NONE;
    if (kind == MK__PORT_OWNER_OTHER && owner.pid)
        mk_buf_addf(out, ": the process %d (%s) listens there", owner.pid, owner.name);
    if (kind == MK__PORT_OWNER_OWN)
        mk_buf_addf(out, ": this server has the port itself");
    if ((err == -EACCES || kind == MK__PORT_OWNER_OWN) && settings->user.name.p && geteuid() != 0)
        mk_buf_addf(out, "; root rights were given up (User): restart the server, or send SIGUSR2 to the supervisor");
    if (err == -EPERM && addr->sa.sa_family == AF_UNIX)
        mk_buf_addf(out, ": only root can give a socket to another user, and others only to their own groups");
}

/* Returns whether the path of a Unix socket is a file that is none, which is not replaced. */
static bool is_other_file(const struct mk__addr *addr)
{
    struct stat st;
    return addr->sa.sa_family == AF_UNIX && lstat(addr->un.sun_path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

void mk__check_report_listener(struct mk_generation *g, unsigned nth, int err)
{
    const struct mk__settings *settings = g->settings;
    assert(err < 0 && nth < settings->listen.n);
    MK_BUF_ON_STACK(reason, 256);
    const struct mk__addr *addr = &settings->listen.items[nth].addr;
    bool is_file = err == -EADDRINUSE && is_other_file(addr);
    describe_reason(settings, addr, err, &reason);
    mk__conf_error(g->conf,
                   mk__conf_origin(g->set, settings, offsetof(struct mk__settings, listen),
                                   mk__settings_listen_line(settings, nth)),
                   "cannot listen on %.*s: %s%s", MK_STR_ARG(settings->listen.items[nth].text),
                   is_file ? "the path is that of a file that is no socket" : mk_file_error(err), mk_buf_cstr(&reason));
}

/* An existing Unix socket is not bound by the check, because that would replace it. */
static bool is_socket(const struct mk__addr *addr)
{
    struct stat st;
    return addr->sa.sa_family == AF_UNIX && lstat(addr->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Binds an address for a moment, alone: SO_REUSEPORT would join any process of this user. Returns 0 or -errno. */
static int try_to_bind(const struct mk__listen_conf *directive, const struct mk__settings *settings)
{
    struct mk__listen_options options = mk__listeners_options(settings);
    struct mk__addr addr = directive->addr;
    options.shared_port = false;
    options.rights = &directive->rights;
    int fd = mk__listen_bind(&addr, &options);
    if (fd < 0)
        return fd;
    if (addr.sa.sa_family == AF_UNIX)
        mk__file_unlink_socket(addr.un.sun_path);
    close(fd);
    return 0;
}

/* Returns 0, or -errno if a start could not have the address and no process that `is_own` has it. */
static int check_listener(const struct mk__settings *settings, const struct mk__listen_conf *directive,
                          mk_server_is_own_fn is_own, void *ctx)
{
    struct mk__port_owner owner;
    bool is_unix = is_socket(&directive->addr);
    int err = is_unix ? -EADDRINUSE : try_to_bind(directive, settings);
    if (err != -EADDRINUSE)
        return is_unix ? 0 : err;
    enum mk__port_owner_kind kind = mk__port_owner_find(&directive->addr, is_own, ctx, &owner);
    bool is_free = kind == MK__PORT_OWNER_OWN || (is_unix && kind == MK__PORT_OWNER_NONE);
    return is_free ? 0 : err;
}

/* ── files ── */

/* Checks that the file could be written, without creating it. */
static int check_writable(struct mk_str path)
{
    return path.len ? mk_file_check_output(path.p) : 0;
}

/* Reports why the file of the setting at `offset` cannot be written. Returns 0 for an `err` of 0, else -EINVAL. */
static int report_output(struct mk_generation *g, struct mk_str path, size_t offset, const char *what, int err)
{
    if (err < 0)
        mk__conf_error(g->conf, mk__conf_origin(g->set, g->settings, offset, 0), "cannot write the %s %s: %s", what,
                       path.p, mk_file_error(err));
    return err < 0 ? -EINVAL : 0;
}

static int check_pid_file(struct mk_generation *g)
{
    const struct mk__settings *settings = g->settings;
    int err = check_writable(settings->pid_file);
    int fd = settings->pid_file.len && err == 0 ? mk_file_open_pid(settings->pid_file.p, 0) : -ENOENT;
    if (fd >= 0)
        close(fd);
    else if (fd != -ENOENT)
        err = fd;
    return report_output(g, settings->pid_file, offsetof(struct mk__settings, pid_file), "pid file", err);
}

int mk__check_log(struct mk_generation *g)
{
    struct mk_str path = g->settings->error_log;
    return report_output(g, path, offsetof(struct mk__settings, error_log), "error log", check_writable(path));
}

/* ── all of it ── */

/* Warns if the hard limit of descriptors is lower than FDLimit. */
static void check_fd_limit(struct mk_generation *g)
{
    const struct mk__settings *settings = g->settings;
    uint64_t limit = mk__limits_hard_fd_limit();
    if ((uint64_t)settings->descriptors_max > limit)
        mk__conf_warn(g->conf, mk__conf_origin(g->set, settings, offsetof(struct mk__settings, descriptors_max), 0),
                      "FDLimit is more than the hard limit (ulimit -Hn), which would be used instead: %" PRIu64, limit);
}

int mk__check_generation(struct mk_generation *g, mk_server_is_own_fn is_own, void *ctx)
{
    const struct mk__settings *settings = g->settings;
    int result = mk__check_log(g);
    if (check_pid_file(g) < 0)
        result = -EINVAL;
    check_fd_limit(g);
    for (unsigned i = 0; i < settings->listen.n; i++) {
        int err = check_listener(settings, &settings->listen.items[i], is_own, ctx);
        if (err == 0)
            continue;
        mk__check_report_listener(g, i, err);
        result = -EINVAL;
    }
    return result;
}
