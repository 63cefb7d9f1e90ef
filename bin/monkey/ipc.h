// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between a server and the process that started it, over a socket pair, some with descriptors.
 *
 *     server                        supervisor or previous process
 *       PID_FILE path          ─►
 *                              ◄─   PID_FILE errno [the locked file]
 *       ERROR_LOG [file]       ─►
 *       SOCKETS first own... [sockets] ─►     (as many messages as needed)
 *       READY                  ─►
 *       RELOADING ... SOCKETS, READY; STOPPING
 */
#ifndef MONKEY_IPC_H
#define MONKEY_IPC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    IPC_PID_FILE = 'P', /* asks for the pid file. The answer is an errno: 0 with the locked file, 0 without a file (the
                               other process keeps it), or EAGAIN (the server opens it itself) */
    IPC_ERROR_LOG = 'E',
    IPC_SOCKETS = 'L',
    IPC_READY = 'R',
    IPC_RELOADING = 'r',
    IPC_STOPPING = 'S',
};

enum { IPC_FDS_MAX = 64, IPC_TEXT_MAX = PATH_MAX };

struct ipc_message {
    unsigned char kind;
    unsigned char text[IPC_TEXT_MAX]; /* NUL-terminated; `len` does not count the NUL */
    size_t len;
    int fds[IPC_FDS_MAX]; /* close-on-exec */
    unsigned n_fds;
};

/* Sends a message; its descriptors stay open. Returns 0 or -errno. */
int ipc_send(int fd, const struct ipc_message *message);
/*
 * Receives a message. The descriptors in it can be of any kind: the sender is not trusted.
 * Returns 0, -EAGAIN (no message, and the descriptor does not block), -EPIPE (the other end is closed), -EBADMSG (empty
 * or too large; its descriptors are closed) or another -errno.
 */
int ipc_receive(int fd, struct ipc_message *ret);
/* Closes the descriptors of a message that was received. */
void ipc_close_fds(struct ipc_message *message);

/* Returns the time of a monotonic clock, for the deadlines of messages. */
int64_t ipc_now_ms(void);

/* Returns whether it is a listening stream socket of IPv4, IPv6 or AF_UNIX. */
bool ipc_is_listener(int fd);
/*
 * Opens the log of another process's descriptor again, so that writes by this process never block.
 * Returns a descriptor, -EBADF (not open for writing), -EINVAL (neither a file, FIFO or character device nor our
 * stderr) or another -errno.
 */
int ipc_open_log(int fd);

/* Listening sockets that one process keeps for another. */
struct ipc_sockets {
    struct {
        int fd;
        bool own; /* opened by the server, not by a service manager */
    } * items;
    unsigned n;
};

/* Appends a socket. Returns 0 or -ENOMEM; on failure the descriptor stays the caller's. */
int ipc_add_socket(struct ipc_sockets *list, int fd, bool own);
/* Empties the list; with `close_all` closes the sockets too. */
void ipc_clear_sockets(struct ipc_sockets *list, bool close_all);
/* Sends all sockets, in as many messages as needed. Returns 0 or -errno. */
int ipc_send_sockets(const struct ipc_sockets *list, int ipc_fd);
/*
 * Moves the listening sockets of an IPC_SOCKETS message into the list, up to `max` in total, and closes all other
 * descriptors of the message.
 * Returns how many descriptors it closed.
 */
unsigned ipc_receive_sockets(struct ipc_sockets *list, struct ipc_message *message, unsigned max);

#endif
