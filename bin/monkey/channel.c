// SPDX-License-Identifier: Apache-2.0
/*
 * Messages with descriptors (channel.h). Each is one packet, so that none is ever seen in part.
 */
#include "channel.h"

#include <monkey/arena.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
};

int channel_send(int fd, const struct channel_message *message)
{
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

static void take_fds(struct channel_message *ret, struct msghdr *head)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        ret->n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(ret->fds, CMSG_DATA(c), ret->n_fds * sizeof(int));
    }
}

int channel_receive(int fd, struct channel_message *ret)
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
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    ret->n_fds = 0;
    ret->len = (size_t)n - 1;
    ret->text[ret->len] = '\0';
    take_fds(ret, &head);
    return 0;
}

void channel_close_fds(struct channel_message *message)
{
    for (unsigned i = 0; i < message->n_fds; i++)
        close(message->fds[i]);
    message->n_fds = 0;
}

/* ── sockets ── */

int sockets_add(struct sockets *list, int fd, bool own)
{
    void *items = mk_account_alloc(NULL, (list->n + 1) * sizeof(*list->items));
    if (!items)
        return -ENOMEM;
    if (list->n)
        memcpy(items, list->items, list->n * sizeof(*list->items));
    mk_account_free(NULL, list->items, 0);
    list->items = items;
    list->items[list->n].fd = fd;
    list->items[list->n++].own = own;
    return 0;
}

void sockets_clear(struct sockets *list, bool close_all)
{
    for (unsigned i = 0; close_all && i < list->n; i++)
        close(list->items[i].fd);
    mk_account_free(NULL, list->items, 0);
    *list = (struct sockets){0};
}

int sockets_send(const struct sockets *list, int channel)
{
    struct channel_message message = {.kind = CHANNEL_SOCKETS};
    int err = 0;
    for (unsigned i = 0; i < list->n && err == 0; i += message.n_fds) {
        message.len = 1;
        message.text[0] = i == 0;
        for (message.n_fds = 0; message.n_fds < CHANNEL_FDS_MAX && i + message.n_fds < list->n; message.n_fds++) {
            message.fds[message.n_fds] = list->items[i + message.n_fds].fd;
            message.text[message.len++] = list->items[i + message.n_fds].own;
        }
        err = channel_send(channel, &message);
    }
    return err;
}

void sockets_receive(struct sockets *list, struct channel_message *message)
{
    if (message->len && message->text[0])
        sockets_clear(list, true);
    for (unsigned i = 0; i < message->n_fds; i++)
        if (i + 1 >= message->len || sockets_add(list, message->fds[i], message->text[i + 1]) < 0)
            close(message->fds[i]);
    message->n_fds = 0;
}
