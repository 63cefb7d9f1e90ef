// SPDX-License-Identifier: Apache-2.0
/*
 * What a server and the process that started it say to each other: messages over a socket pair, some with descriptors.
 *
 *     server                        supervisor, or the process before
 *       PID_FILE path          ─►
 *                              ◄─   PID_FILE errno [the locked file]
 *       ERROR_LOG [file]       ─►
 *       SOCKETS first own... [sockets] ─►     (as often as they need)
 *       READY                  ─►
 *       RELOADING ... SOCKETS, READY; STOPPING
 */
#ifndef MONKEY_IPC_H
#define MONKEY_IPC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    IPC_PID_FILE = 'P', /* may we be the owner of this file? Answered with an errno: 0 and no file means that the
                               other one is, EAGAIN that it is for us to open */
    IPC_ERROR_LOG = 'E',
    IPC_SOCKETS = 'L',
    IPC_READY = 'R',
    IPC_RELOADING = 'r',
    IPC_STOPPING = 'S',
};

enum { IPC_FDS_MAX = 64, IPC_TEXT_MAX = PATH_MAX };

struct ipc_message {
    unsigned char kind;
    unsigned char text[IPC_TEXT_MAX]; /* ends with a zero that is not counted */
    size_t len;
    int fds[IPC_FDS_MAX]; /* close-on-exec */
    unsigned n_fds;
};

/* 0 or -errno. Descriptors stay the sender's. */
int ipc_send(int fd, const struct ipc_message *message);
/*
 * 0; -EAGAIN, when there is none and the descriptor does not block; -EPIPE at the end; -EBADMSG for a message that does
 * not fit or is empty, whose descriptors are closed; or another -errno. The other process may have more rights than it
 * should use, or fewer: its descriptors can be anything.
 */
int ipc_receive(int fd, struct ipc_message *ret);
void ipc_close_fds(struct ipc_message *message);

/* Whether it is a listening stream socket of a family that servers use. */
bool ipc_is_listener(int fd);
/*
 * Opens the log of another process for this one, so that writing to it never waits. Returns a descriptor or -errno:
 * -EBADF if it is not open for writing, -EINVAL if it is neither a file nor our stderr.
 */
int ipc_open_log(int fd);

/* Listening sockets, as one process holds them for another. */
struct ipc_sockets {
    struct {
        int fd;
        bool own; /* the server made it */
    } * items;
    unsigned n;
};

/* 0 or -ENOMEM. Does not take the descriptor in that case. */
int ipc_add_socket(struct ipc_sockets *list, int fd, bool own);
/* Forgets all; `close_all`: they are ours to close. */
void ipc_clear_sockets(struct ipc_sockets *list, bool close_all);
/* Sends them all, in as many messages as it takes. */
int ipc_send_sockets(const struct ipc_sockets *list, int ipc_fd);
/*
 * Takes the listening sockets of a message of that kind, up to `max` in the list, and closes all other descriptors.
 * Returns how many it has closed.
 */
unsigned ipc_receive_sockets(struct ipc_sockets *list, struct ipc_message *message, unsigned max);

#endif
