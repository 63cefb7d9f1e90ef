// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of the channel (channel.h), and what a service manager hears when there is none (parent.h).
 */
#include "parent.h"

#include "channel.h"
#include "daemon.h"
#include "notify.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS_MAX = 10000 };

static int channel = -1;
static bool supervised;
static int later_stderr = -1; /* for the time when we serve */

static int take_channel(const char *name)
{
    uint64_t number;
    int type = 0;
    socklen_t len = sizeof(type);
    const char *text = getenv(name);
    if (!text || !mk_str_u64(mk_str_c(text), INT_MAX, &number))
        return -1;
    unsetenv(name);
    if (getsockopt((int)number, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
        return -1;
    fcntl((int)number, F_SETFD, FD_CLOEXEC);
    return (int)number;
}

static void take_stderr(void)
{
    uint64_t number;
    const char *text = getenv(SPAWN_STDERR);
    if (text && mk_str_u64(mk_str_c(text), INT_MAX, &number) && fcntl((int)number, F_SETFD, FD_CLOEXEC) == 0)
        later_stderr = (int)number;
    unsetenv(SPAWN_STDERR);
}

int parent_stderr(void)
{
    return later_stderr >= 0 ? later_stderr : STDERR_FILENO;
}

static void restore_stderr(void)
{
    if (later_stderr < 0)
        return;
    fflush(stderr);
    dup2(later_stderr, STDERR_FILENO);
    close(later_stderr);
    later_stderr = -1;
}

void parent_init(void)
{
    notify_init();
    take_stderr();
    channel = take_channel(SPAWN_SUPERVISOR);
    supervised = channel >= 0;
    if (channel < 0)
        channel = take_channel(SPAWN_PREDECESSOR);
    parent_follow();
}

bool parent_supervises(void)
{
    return supervised;
}

bool parent_exists(void)
{
    return channel >= 0;
}

void parent_follow(void)
{
    struct pollfd one = {.fd = channel};
    if (!supervised)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (poll(&one, 1, 0) == 1 && (one.revents & POLLHUP)) /* it ended before that */
        raise(SIGTERM);
}

static void send_message(const struct channel_message *message)
{
    if (channel >= 0 && channel_send(channel, message) == -EPIPE) {
        close(channel);
        channel = -1;
    }
}

static void send_kind(unsigned char kind)
{
    send_message(&(struct channel_message){.kind = kind});
}

static int ask_for_pid_file(const char *path, struct channel_message *answer)
{
    struct channel_message question = {.kind = CHANNEL_PID_FILE, .len = strlen(path)};
    struct pollfd one = {.fd = channel, .events = POLLIN};
    if (question.len >= sizeof(question.text))
        return -ENAMETOOLONG;
    memcpy(question.text, path, question.len);
    int err = channel_send(channel, &question);
    if (err == 0 && poll(&one, 1, ANSWER_MS_MAX) != 1)
        err = -ETIMEDOUT;
    if (err == 0)
        err = channel_receive(channel, answer);
    return err < 0 ? err : -answer->text[0];
}

int parent_pid_file(const char *path)
{
    struct channel_message answer = {0};
    if (!path)
        return 0;
    if (channel < 0)
        return daemon_write_pid(path);
    int err = ask_for_pid_file(path, &answer);
    if (err == 0 && answer.n_fds)
        daemon_take_pid(answer.fds[0]);
    return err == -EAGAIN ? daemon_write_pid(path) : err;
}

void parent_log(int fd)
{
    if (supervised)
        send_message(&(struct channel_message){.kind = CHANNEL_ERROR_LOG, .fds = {fd}, .n_fds = 1});
}

static void add_socket(int fd, bool own, void *ctx)
{
    sockets_add(ctx, fd, own);
}

static void send_sockets(const struct mk_server *server)
{
    struct sockets list = {0};
    mk_server_each_socket(server, add_socket, &list);
    int err = sockets_send(&list, channel);
    if (err < 0)
        mk_log_warn("the supervisor does not get the listeners: %s", strerror(-err));
    sockets_clear(&list, false);
}

void parent_reloading(void)
{
    if (supervised)
        send_kind(CHANNEL_RELOADING);
    else
        notify_reloading();
}

void parent_ready(struct mk_server *server, unsigned workers)
{
    if (supervised && channel >= 0)
        send_sockets(server);
    daemon_confirm_pid();
    restore_stderr();
    send_kind(CHANNEL_READY);
    if (supervised)
        return;
    if (channel >= 0) {
        close(channel);
        channel = -1;
    }
    notify("READY=1\nMAINPID=%d\nSTATUS=serving with %u workers", getpid(), workers);
}

void parent_stopping(void)
{
    if (supervised)
        send_kind(CHANNEL_STOPPING);
    else
        notify("STOPPING=1\nSTATUS=finishing what has begun");
}
