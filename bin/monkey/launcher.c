// SPDX-License-Identifier: Apache-2.0
/*
 * The server's end of the ipc channel (ipc.h); without one, notifications to the service manager; and the listening
 * sockets that either passed on.
 */
#include "program.h"

#include <monkey/counters.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ── sd_notify(3): one datagram to a Unix socket for each notification ── */

static char socket_variable[sizeof("NOTIFY_SOCKET=") + sizeof(((struct sockaddr_un *)0)->sun_path)];
enum { NAME_BYTES = sizeof("NOTIFY_SOCKET=") - 1 };

/* Reads NOTIFY_SOCKET and removes it from the environment. */
static void sd_notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path && (path[0] == '/' || path[0] == '@') && path[1] &&
        strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path))
        snprintf(socket_variable, sizeof(socket_variable), "NOTIFY_SOCKET=%s", path);
    unsetenv("NOTIFY_SOCKET");
}

char *sd_notify_variable(void)
{
    return socket_variable[0] ? socket_variable : NULL;
}

void sd_notify_send(const char *format, ...)
{
    char text[256];
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    va_list args;
    if (!socket_variable[0])
        return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || n < 0)
        return;
    const char *path = socket_variable + NAME_BYTES;
    size_t len = strlen(path);
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0'; /* abstract socket: the name has no terminating NUL */
    else
        len++;
    sendto(fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL,
           (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void sd_notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

/* ── the ipc channel ── */

enum { ANSWER_MS_MAX = 10000 };

static int ipc_fd = -1;
static bool supervised;
static int counters_err;      /* there is no error log yet when they are taken */
static int final_stderr = -1; /* becomes stderr when the server is ready */

static int take_ipc_fd(const char *name)
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
    const char *text = getenv(EXEC_ENV_STDERR);
    if (text && mk_str_u64(mk_str_c(text), INT_MAX, &number) && fcntl((int)number, F_SETFD, FD_CLOEXEC) == 0)
        final_stderr = (int)number;
    unsetenv(EXEC_ENV_STDERR);
}

static void take_counters(void)
{
    uint64_t number;
    const char *text = getenv(EXEC_ENV_COUNTERS);
    counters_err = text && mk_str_u64(mk_str_c(text), INT_MAX, &number) ? mk_counters_inherit((int)number) : 0;
    unsetenv(EXEC_ENV_COUNTERS);
}

void launcher_report_counters(void)
{
    if (counters_err < 0)
        mk_log_warn("counters begin at 0: those of the process before cannot be used: %s", strerror(-counters_err));
}

int launcher_get_stderr(void)
{
    return final_stderr >= 0 ? final_stderr : STDERR_FILENO;
}

static void restore_stderr(void)
{
    if (final_stderr < 0)
        return;
    fflush(stderr);
    dup2(final_stderr, STDERR_FILENO);
    close(final_stderr);
    final_stderr = -1;
}

void launcher_init(void)
{
    assert(ipc_fd < 0);
    sd_notify_init();
    take_stderr();
    take_counters();
    ipc_fd = take_ipc_fd(EXEC_ENV_SUPERVISOR);
    supervised = ipc_fd >= 0;
    if (ipc_fd < 0)
        ipc_fd = take_ipc_fd(EXEC_ENV_PREDECESSOR);
    launcher_set_pdeathsig();
}

bool launcher_is_supervisor(void)
{
    return supervised;
}

bool launcher_exists(void)
{
    return ipc_fd >= 0;
}

void launcher_set_pdeathsig(void)
{
    struct pollfd one = {.fd = ipc_fd};
    if (!supervised)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (poll(&one, 1, 0) == 1 && (one.revents & POLLHUP)) /* it ended before prctl() */
        raise(SIGTERM);
}

static void send_message(const struct ipc_message *message)
{
    if (ipc_fd >= 0 && ipc_send(ipc_fd, message) == -EPIPE) {
        close(ipc_fd);
        ipc_fd = -1;
    }
}

static void send_kind(unsigned char kind)
{
    send_message(&(struct ipc_message){.kind = kind});
}

static int ask_for_pid_file(const char *path, struct ipc_message *answer)
{
    assert(ipc_fd >= 0);
    struct ipc_message question = {.kind = IPC_PID_FILE, .len = strlen(path)};
    struct pollfd one = {.fd = ipc_fd, .events = POLLIN};
    if (question.len >= sizeof(question.text))
        return -ENAMETOOLONG;
    memcpy(question.text, path, question.len);
    int err = ipc_send(ipc_fd, &question);
    if (err == 0 && poll(&one, 1, ANSWER_MS_MAX) != 1)
        err = -ETIMEDOUT;
    if (err == 0)
        err = ipc_receive(ipc_fd, answer);
    return err < 0 ? err : -answer->text[0];
}

int launcher_claim_pid_file(const char *path)
{
    struct ipc_message answer = {0};
    if (!path)
        return 0;
    if (ipc_fd < 0)
        return daemon_write_pid(path);
    int err = ask_for_pid_file(path, &answer);
    if (err == 0 && answer.n_fds)
        daemon_take_pid(answer.fds[0]);
    return err == -EAGAIN ? daemon_write_pid(path) : err;
}

void launcher_send_log(int fd)
{
    assert(fd >= 0);
    if (supervised)
        send_message(&(struct ipc_message){.kind = IPC_ERROR_LOG, .fds = {fd}, .n_fds = 1});
}

static void add_socket(int fd, bool own, void *ctx)
{
    ipc_add_socket(ctx, fd, own);
}

static void send_sockets(const struct mk_server *server)
{
    struct ipc_sockets list = {0};
    mk_server_each_socket(server, add_socket, &list);
    int err = ipc_send_sockets(&list, ipc_fd);
    if (err < 0)
        mk_log_warn("cannot send the listeners to the supervisor: %s", strerror(-err));
    ipc_clear_sockets(&list, false);
}

void launcher_notify_reloading(void)
{
    if (supervised)
        send_kind(IPC_RELOADING);
    else
        sd_notify_reloading();
}

void launcher_notify_ready(struct mk_server *server, unsigned workers)
{
    assert(server && workers > 0);
    if (supervised && ipc_fd >= 0)
        send_sockets(server);
    daemon_confirm_pid();
    restore_stderr();
    send_kind(IPC_READY);
    if (supervised)
        return;
    if (ipc_fd >= 0) {
        close(ipc_fd);
        ipc_fd = -1;
    }
    sd_notify_send("READY=1\nMAINPID=%d\nSTATUS=serving with %u workers", getpid(), workers);
}

void launcher_notify_stopping(void)
{
    if (supervised)
        send_kind(IPC_STOPPING);
    else
        sd_notify_send("STOPPING=1\nSTATUS=draining");
}

/* ── inherited listening sockets: the protocol of sd_listen_fds(3) ── */

enum { FIRST_FD = 3, FDS_MAX = 65536 };

static unsigned read_env_number(const char *name)
{
    uint64_t number = 0;
    const char *text = getenv(name);
    return text && mk_str_u64(mk_str_c(text), INT_MAX, &number) ? (unsigned)number : 0;
}

static void call_for_each(unsigned n, const char *names, void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    for (unsigned i = 0; i < n; i++) {
        size_t len = names ? strcspn(names, ":") : 0;
        fn(FIRST_FD + (int)i, len == sizeof(EXEC_FD_NAME) - 1 && strncmp(names, EXEC_FD_NAME, len) == 0, ctx);
        if (names)
            names += len + (names[len] == ':');
    }
}

static bool has_listen_fds(unsigned *ret_n)
{
    *ret_n = read_env_number("LISTEN_FDS");
    return *ret_n > 0 && *ret_n <= FDS_MAX && read_env_number("LISTEN_PID") == (unsigned)getpid();
}

void launcher_each_listen_fd(void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    unsigned n;
    if (has_listen_fds(&n))
        call_for_each(n, getenv("LISTEN_FDNAMES"), fn, ctx);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
}

static void inherit_listener(int fd, bool own, void *ctx)
{
    int err = mk_server_inherit(ctx, fd, own);
    if (err == 0)
        return;
    mk_log_warn("inherited descriptor %d is no listening stream socket (%s): it is closed", fd, strerror(-err));
    close(fd);
}

static void offer_socket(int fd, bool own, void *ctx)
{
    (void)ctx;
    if (own)
        mk_socket_offer(fd);
}

void launcher_offer_listen_fds(void)
{
    unsigned n;
    if (has_listen_fds(&n))
        call_for_each(n, getenv("LISTEN_FDNAMES"), offer_socket, NULL);
}

void launcher_inherit_listen_fds(struct mk_server *server)
{
    launcher_each_listen_fd(inherit_listener, server);
}
