// SPDX-License-Identifier: Apache-2.0
/*
 * Starts, runs and stops a server (serve.h). The order matters: first what needs root, then root's privileges are
 * dropped, then the first thread starts.
 */
#include "serve.h"

#include "daemon.h"
#include "errorlog.h"
#include "launcher.h"
#include "print.h"
#include "privileges.h"
#include "report.h"
#include "signals.h"
#include "urls.h"

#include <monkey/base/file.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Each step of a start prints what failed, and returns an exit code. */

static int write_pid(const char *path)
{
    int err = !path ? 0 : launcher_claim_pid_file(path);
    if (err == -EWOULDBLOCK)
        fprintf(stderr, "monkey: another server is running: it holds %s\n", path);
    else if (err < 0)
        fprintf(stderr, "monkey: cannot write %s: %s\n", path, mk_file_error(err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

/* Opens what only root can open, and becomes the configured user. Does nothing if this is not root. */
static int open_and_drop_root(struct mk_server *server, const struct options *o)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    if (!process.user && geteuid() == 0)
        mk_log_warn("the server runs as root: set User in monkey.conf, or start it as another user");
    if (!privileges_must_drop(&process))
        return EXIT_OK;
    if (mk_server_listen(server) < 0)
        return print_problems(server, EXIT_RUN);
    report_as_user(server, o);
    errorlog_chown(process.uid, process.gid);
    if (privileges_drop(&process) < 0)
        return EXIT_RUN;
    mk_log_info("running as user %s (%u:%u)", process.user, process.uid, process.gid);
    return EXIT_OK;
}

/* With a supervisor or a predecessor the background is left to it: it waits for this very process. */
static int go_to_background(const struct mk_server_info *info, const struct options *o)
{
    if (!o->daemon || launcher_exists())
        return EXIT_OK;
    if (!info->error_log)
        fprintf(stderr, "monkey: the log on stderr is lost in the background; ErrorLog keeps it in a file\n");
    int err = daemon_fork();
    if (err < 0)
        fprintf(stderr, "monkey: cannot go to the background: %s\n", strerror(-err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

static int open_error_log(const struct mk_server_info *info, const struct options *o)
{
    int err = errorlog_open(info, o->daemon);
    if (err < 0)
        fprintf(stderr, "monkey: cannot open the error log %s: %s\n", info->error_log ? info->error_log : "stderr",
                mk_file_error(err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

static int start_server(struct mk_server *server, const struct mk_server_info *info, const struct options *o)
{
    int code = go_to_background(info, o);
    if (code == EXIT_OK)
        code = open_error_log(info, o);
    if (code == EXIT_OK)
        code = write_pid(info->pid_file);
    if (code != EXIT_OK)
        return code;
    launcher_report_counters();
    launcher_inherit_listen_fds(server);
    code = open_and_drop_root(server, o);
    privileges_apply_core_dumps(server);
    if (code == EXIT_OK && mk_server_start(server) < 0)
        code = print_problems(server, EXIT_RUN);
    if (code != EXIT_OK)
        daemon_remove_pid(info->pid_file);
    return code;
}

/* Returns whether the launcher is the process being replaced, which has printed its URLs. */
static bool is_upgrade(void)
{
    return launcher_exists() && !launcher_is_supervisor();
}

static void print_urls(const struct mk_server *server, const struct options *o)
{
    if (is_upgrade())
        return;
    const char *served = o->backend ? o->backend : o->root;
    if (served)
        urls_print(server, served);
    else
        urls_print_on_terminal(server);
}

int serve_run(struct mk_server *server, const struct options *o)
{
    char pid_file[PATH_MAX];
    struct mk_server_info info;
    mk_server_info(server, &info);
    if (info.pid_file) { /* a copy: a reload replaces `info`, but not the pid file */
        snprintf(pid_file, sizeof(pid_file), "%s", info.pid_file);
        info.pid_file = pid_file;
    }
    signals_block();
    daemon_raise_descriptors();
    if (privileges_set_no_new_privs() < 0)
        return EXIT_RUN;
    signals_take_commands(server);
    int code = start_server(server, &info, o);
    if (code == EXIT_OK)
        mk_log_info("monkey %s serves with %u workers", mk_version(), info.workers);
    if (code == EXIT_OK) {
        errorlog_write_problems(server, MK_LOG_WARN);
        launcher_notify_ready(server, info.workers);
        print_urls(server, o);
    }
    daemon_ready(code, o->daemon);
    if (code != EXIT_OK)
        return code;
    signals_serve(server);
    daemon_remove_pid(info.pid_file);
    return EXIT_OK;
}
