// SPDX-License-Identifier: Apache-2.0
/*
 * Sends and receives messages. Calls only what is allowed after a fork of a process with threads.
 */
#include "child.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one more than allowed, so that too many are noticed and closed. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * (MK__MESSAGE_FDS_MAX + 1))];
};

/* Checks that the lengths are those of the packet, and that each string ends within its part. */
static bool is_whole(const struct mk__message *m, const char *at, size_t left)
{
    const uint32_t parts[] = {m->path_bytes, m->folder_bytes, m->arg_bytes, m->env_bytes};
    for (size_t i = 0; i < MK_COUNT_OF(parts); i++) {
        if (parts[i] > left || (parts[i] && at[parts[i] - 1] != '\0'))
            return false;
        at += parts[i];
        left -= parts[i];
    }
    return left == 0 && m->path_bytes && m->folder_bytes;
}

/* Splits strings with a NUL after each into `to`, of `max` and a NULL. Returns false if there are more. */
static bool split_strings(char *at, size_t bytes, char **to, unsigned max)
{
    unsigned n = 0;
    for (char *end = at + bytes; at < end; at += strlen(at) + 1) {
        if (n == max)
            return false;
        to[n++] = at;
    }
    to[n] = NULL;
    return true;
}

int mk__message_split(char *packet, size_t len, struct mk__message_parts *ret)
{
    struct mk__message m;
    char *path = packet + sizeof(m);
    memcpy(&m, packet, sizeof(m));
    if (!is_whole(&m, path, len - sizeof(m)))
        return -EBADMSG;
    ret->path = path;
    ret->folder = path + m.path_bytes;
    char *args = path + m.path_bytes + m.folder_bytes;
    bool fits = split_strings(args, m.arg_bytes, ret->argv, MK_CHILD_ARGS_MAX) &&
                split_strings(args + m.arg_bytes, m.env_bytes, ret->envp, MK_CHILD_ENV_MAX);
    return fits ? 0 : -E2BIG;
}

int mk__message_open_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ? -errno : 0;
}

int mk__message_send(int sock, struct mk_str packet, const int *fds, unsigned n)
{
    union control control;
    struct iovec part = {.iov_base = (char *)(uintptr_t)packet.p, .iov_len = packet.len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n) {
        memset(&control, 0, sizeof(control));
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * n)};
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    ssize_t sent;
    do
        sent = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* Gets the descriptors. Returns how many there are; those above MK__MESSAGE_FDS_MAX are closed, but counted. */
static unsigned take_fds(struct msghdr *m, int fds[MK__MESSAGE_FDS_MAX])
{
    unsigned n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++, n++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (n < MK__MESSAGE_FDS_MAX)
                fds[n] = fd;
            else
                close(fd);
        }
    }
    return n;
}

ssize_t mk__message_receive(int sock, char *to, size_t size, int fds[MK__MESSAGE_FDS_MAX], unsigned *ret_n)
{
    union control control;
    struct iovec part = {.iov_base = to, .iov_len = size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    ssize_t n;
    *ret_n = 0;
    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    unsigned count = take_fds(&m, fds);
    *ret_n = count < MK__MESSAGE_FDS_MAX ? count : MK__MESSAGE_FDS_MAX;
    bool has_all = count <= MK__MESSAGE_FDS_MAX && !(m.msg_flags & MSG_CTRUNC);
    if (n > 0 && has_all && !(m.msg_flags & MSG_TRUNC))
        return n;
    for (unsigned i = 0; i < *ret_n; i++)
        close(fds[i]);
    *ret_n = 0;
    return n == 0 ? 0 : has_all ? -EBADMSG : -EMFILE;
}
