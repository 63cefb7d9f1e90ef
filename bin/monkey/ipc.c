// SPDX-License-Identifier: Apache-2.0
/*
 * Messages with descriptors (ipc.h). Each is one SOCK_SEQPACKET packet, so a message is never received in part.
 */
#include "ipc.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
};

int ipc_send(int fd, const struct ipc_message *message)
{
    assert(message->len <= sizeof(message->text) && message->n_fds <= IPC_FDS_MAX);
    union control control;
    struct iovec parts[] = {{(void *)(size_t)&message->kind, 1}, {(void *)(size_t)message->text, message->len}};
    struct msghdr head = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    if (message->n_fds) {
        memset(&control, 0, sizeof(control));
        head.msg_control = &control;
        head.msg_controllen = CMSG_SPACE(sizeof(int) * message->n_fds);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int) * message->n_fds);
        memcpy(CMSG_DATA(&control.head), message->fds, sizeof(int) * message->n_fds);
    }
    do
        n = sendmsg(fd, &head, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* close() of a socket with SO_LINGER could block. */
static void close_unwanted(int fd)
{
    const struct linger none = {0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(fd);
}

static void take_fds(struct ipc_message *ret, struct msghdr *head)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)c + at, sizeof(fd));
            if (ret->n_fds < IPC_FDS_MAX)
                ret->fds[ret->n_fds++] = fd;
            else
                close_unwanted(fd);
        }
    }
}

int ipc_receive(int fd, struct ipc_message *ret)
{
    union control control;
    struct iovec parts[] = {{&ret->kind, 1}, {ret->text, sizeof(ret->text) - 1}};
    struct msghdr head = {.msg_iov = parts,
                          .msg_iovlen = 2,
                          .msg_control = &control,
                          .msg_controllen = sizeof(control)};
    ssize_t n;
    do
        n = recvmsg(fd, &head, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    ret->n_fds = 0;
    ret->len = n ? (size_t)n - 1 : 0;
    ret->text[ret->len] = '\0';
    take_fds(ret, &head);
    if (n > 0 && !(head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    int err = n == 0 && !ret->n_fds ? -EPIPE : -EBADMSG;
    ipc_close_fds(ret);
    return err;
}

void ipc_close_fds(struct ipc_message *message)
{
    for (unsigned i = 0; i < message->n_fds; i++)
        close_unwanted(message->fds[i]);
    message->n_fds = 0;
}

static int get_socket_option(int fd, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

int64_t ipc_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool ipc_is_listener(int fd)
{
    int domain = get_socket_option(fd, SO_DOMAIN);
    if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX)
        return false;
    return get_socket_option(fd, SO_TYPE) == SOCK_STREAM && get_socket_option(fd, SO_ACCEPTCONN) == 1;
}

static bool is_same_file(const struct stat *a, int fd)
{
    struct stat b;
    return fstat(fd, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

/*
 * Opens the file again, because O_NONBLOCK belongs to the open file description, which the other process shares. It
 * could write to the file already, so this grants no new right.
 */
int ipc_open_log(int fd)
{
    char path[32];
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (flags & O_PATH || (flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    if (is_same_file(&st, STDERR_FILENO))
        return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return -EINVAL;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0 && errno == ENOENT && S_ISREG(st.st_mode)) /* without /proc; writes to a regular file do not block */
        return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return own < 0 ? -errno : own;
}

/* ── sockets ── */

int ipc_add_socket(struct ipc_sockets *list, int fd, bool own)
{
    assert(fd >= 0);
    size_t size = sizeof(*list->items);
    void *items = mk_account_grow(NULL, list->items, list->n * size, (list->n + 1) * size);
    if (!items)
        return -ENOMEM;
    list->items = items;
    list->items[list->n].fd = fd;
    list->items[list->n++].own = own;
    return 0;
}

void ipc_clear_sockets(struct ipc_sockets *list, bool close_all)
{
    for (unsigned i = 0; close_all && i < list->n; i++)
        close(list->items[i].fd);
    mk_account_free(NULL, list->items, 0);
    *list = (struct ipc_sockets){0};
}

int ipc_send_sockets(const struct ipc_sockets *list, int ipc_fd)
{
    struct ipc_message message = {.kind = IPC_SOCKETS};
    int err = 0;
    for (unsigned i = 0; i < list->n && err == 0; i += message.n_fds) {
        message.len = 1;
        message.text[0] = i == 0;
        for (message.n_fds = 0; message.n_fds < IPC_FDS_MAX && i + message.n_fds < list->n; message.n_fds++) {
            message.fds[message.n_fds] = list->items[i + message.n_fds].fd;
            message.text[message.len++] = list->items[i + message.n_fds].own;
        }
        err = ipc_send(ipc_fd, &message);
    }
    return err;
}

unsigned ipc_receive_sockets(struct ipc_sockets *list, struct ipc_message *message, unsigned max)
{
    unsigned refused = 0;
    if (message->len && message->text[0])
        ipc_clear_sockets(list, true);
    for (unsigned i = 0; i < message->n_fds; i++) {
        int fd = message->fds[i];
        bool good = i + 1 < message->len && list->n < max && ipc_is_listener(fd);
        if (good && ipc_add_socket(list, fd, message->text[i + 1]) == 0)
            continue;
        close_unwanted(fd);
        refused++;
    }
    message->n_fds = 0;
    return refused;
}
