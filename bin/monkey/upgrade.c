// SPDX-License-Identifier: Apache-2.0
/*
 * The upgrade of a server without a supervisor (upgrade.h): the server starts the new process, which reports its
 * progress over the ipc channel and receives the locked pid file through it.
 */
#include "upgrade.h"

#include "ipc.h"
#include "daemon.h"
#include "errorlog.h"
#include "sd_notify.h"
#include "output.h"
#include "launcher.h"
#include "exec.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS_MAX = 60000 };

static bool pid_file_sent;

static void answer_pid_file(int ipc_fd, const char *path)
{
    struct ipc_message answer = {.kind = IPC_PID_FILE, .len = 1};
    answer.fds[0] = daemon_pid_fd(path);
    if (answer.fds[0] >= 0)
        answer.n_fds = pid_file_sent = true;
    else
        answer.text[0] = EAGAIN; /* a different file: the new process opens it */
    ipc_send(ipc_fd, &answer);
}

/* Returns a descriptor that is readable while a stop signal is pending. It is never read, so the signal stays pending.
 */
static int open_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Waits for a message until `end`, and reads the output of the process in the meantime.
 * Returns 1, 0 (timeout), -ECANCELED (a signal asks this server to stop) or another -errno.
 */
static int await_message(int ipc_fd, int stop_signals, struct output *output, int64_t end)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = ipc_fd, .events = POLLIN},
                               {.fd = output->fd, .events = POLLIN},
                               {.fd = stop_signals, .events = POLLIN}};
        int64_t left = end - ipc_now_ms();
        int n = left > 0 ? poll(fds, 3, (int)left) : 0;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (fds[1].revents)
            output_read(output);
        if (fds[0].revents)
            return 1;
        if (fds[2].revents)
            return -ECANCELED;
    }
}

/* Answers messages until the process is ready. Returns 0, -ETIMEDOUT, -ECANCELED or another -errno. */
static int wait_until_ready(int ipc_fd, int stop_signals, struct output *output)
{
    assert(ipc_fd >= 0);
    int64_t end = ipc_now_ms() + START_MS_MAX;
    for (;;) {
        struct ipc_message message;
        int n = await_message(ipc_fd, stop_signals, output, end);
        if (n == 0)
            return -ETIMEDOUT;
        int err = n < 0 ? n : ipc_receive(ipc_fd, &message);
        if (err == -EINTR)
            continue;
        if (err < 0)
            return err;
        if (message.kind == IPC_PID_FILE)
            answer_pid_file(ipc_fd, (const char *)message.text);
        ipc_close_fds(&message);
        if (message.kind == IPC_READY)
            return 0;
    }
}

static void add_socket(int fd, bool own, void *ctx)
{
    ipc_add_socket(ctx, fd, own);
}

/* Ends a process that did not become ready, and logs why. */
static void kill_and_log(pid_t pid, int err, struct output *output)
{
    int status = 0;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    output_read(output);
    output_log(output, MK_LOG_ERROR, pid);
    if (err == -ETIMEDOUT)
        mk_log_error("upgrade: process %d did not serve within %d s; the old process keeps serving", pid,
                     START_MS_MAX / 1000);
    else if (err == -ECANCELED)
        mk_log_error("upgrade: process %d was killed before it served: this server is asked to stop", pid);
    else if (WIFEXITED(status))
        mk_log_error("upgrade: process %d ended with exit code %d before it served; the old process keeps serving", pid,
                     WEXITSTATUS(status));
    else
        mk_log_error("upgrade: process %d failed before it served; the old process keeps serving", pid);
}

/*
 * Forwards the signals that arrived while the new process started: it may have read its files before the change that
 * they announce.
 */
static void forward_deferred_signals(pid_t pid)
{
    const struct timespec now = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    for (int number; (number = sigtimedwait(&set, NULL, &now)) > 0;)
        kill(pid, number);
}

static bool start_new_program(struct mk_server *server)
{
    struct ipc_sockets list = {0};
    struct output output = {.fd = -1};
    int ipc_fd;
    pid_file_sent = false;
    mk_server_each_socket(server, add_socket, &list);
    pid_t pid =
        exec_start_server(&list, EXEC_ENV_PREDECESSOR, &ipc_fd, output_is_needed(errorlog_fd()) ? &output.fd : NULL);
    ipc_clear_sockets(&list, false);
    if (pid < 0) {
        mk_log_error("upgrade: cannot start the new program: %s; the old process keeps serving", strerror(-pid));
        return false;
    }
    mk_log_info("upgrade: process %d starts", pid);
    int stop_signals = open_stop_signals();
    int err = wait_until_ready(ipc_fd, stop_signals, &output);
    if (stop_signals >= 0)
        close(stop_signals);
    close(ipc_fd);
    if (err < 0)
        kill_and_log(pid, err, &output);
    else
        output_log(&output, MK_LOG_WARN, pid);
    output_close(&output);
    if (err < 0)
        return false;
    if (pid_file_sent)
        daemon_release_pid();
    sd_notify_send("MAINPID=%d", pid);
    mk_log_info("upgrade: process %d serves", pid);
    forward_deferred_signals(pid);
    return true;
}

bool upgrade_run(struct mk_server *server)
{
    if (!launcher_is_supervisor() && !start_new_program(server))
        return false;
    mk_server_hand_over(server);
    return true;
}
