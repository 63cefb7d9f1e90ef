// SPDX-License-Identifier: Apache-2.0
/*
 * Opens listening sockets and sets their options.
 */
#ifndef MK_NET_LISTEN_H
#define MK_NET_LISTEN_H

#include "net/addr.h"

/* Of the entry of a Unix socket; each may be MK__LISTEN_DEFAULT. */
struct mk__listen_rights {
    uint32_t mode; /* default: read and write where the umask allows to read: 0666 with 0022 */
    uint32_t user, group;
};

#define MK__LISTEN_DEFAULT UINT32_MAX
#define MK__LISTEN_DEFAULT_RIGHTS \
    ((struct mk__listen_rights){MK__LISTEN_DEFAULT, MK__LISTEN_DEFAULT, MK__LISTEN_DEFAULT})

struct mk__listen_options {
    int backlog;
    int defer_seconds;   /* TCP_DEFER_ACCEPT, seconds; 0: off */
    int fast_open_queue; /* TCP_FASTOPEN; 0: off */
    int send_buffer;     /* SO_SNDBUF, bytes; 0: the system adjusts the size */
    int not_sent_lowat;  /* TCP_NOTSENT_LOWAT, bytes; 0: the system's net.ipv4.tcp_notsent_lowat */
    bool shared_port;    /* SO_REUSEPORT: joins sockets that listen to the port; without it there must be none */
    const struct mk__listen_rights *rights; /* NULL: the defaults */
};

/* What `listener` of struct mk_io refers to: the server's listener begins with it. */
struct mk__listener_name {
    struct mk_str text; /* the value of Listen */
};

/*
 * Opens and binds a socket, which does not listen yet. `*:port` covers IPv4 and IPv6, or IPv4 alone if the system has
 * no IPv6. Fills in `addr` what was bound (family, and the port if it was 0). Replaces a Unix socket that no process
 * listens to.
 * Returns the descriptor or -errno.
 */
MK_COLD int mk__listen_bind(struct mk__addr *addr, const struct mk__listen_options *options);
/*
 * Changes the rights of the Unix socket at `path`, but for those that are the default. `owner` is the user that it has.
 * Returns 0 or -errno: -EPERM (only root may give it to another user, and others only to their groups), -EMLINK
 * (another user may have put it there).
 */
MK_COLD int mk__listen_set_rights(const char *path, const struct mk__listen_rights *rights, uint32_t owner);
/* Returns the mode of a socket by default. */
MK_COLD uint32_t mk__listen_default_mode(void);
/* Sets the options and starts to listen; called again, changes the options. Returns 0 or -errno. */
MK_COLD int mk__listen_start(int fd, const struct mk__addr *addr, const struct mk__listen_options *options);

/*
 * Returns whether clients that connect to `path` come to the listening Unix socket `fd`. Connects to it; if the queue
 * is full or the socket is not for this user, it is taken for that of `fd`.
 */
bool mk__listen_is_at(int fd, const char *path);
/* Removes the path of a Unix socket that is closed, unless the socket of another process has replaced it. */
MK_COLD void mk__listen_unlink(int fd, const char *path);

/*
 * Takes a TCP socket out of service: from now on connections come to another socket of the port, or are refused.
 * Handshakes that have begun end in its queue, where they are accepted. Returns 0, or -errno: Linux before 5.7 cannot
 * do it, nor can it for a link-local address.
 */
MK_COLD int mk__listen_retire(int fd);
/* Undoes that for a socket from another process, if it is so. Returns 0 or -errno: it gets no connections. */
int mk__listen_unretire(int fd);

/* Returns whether TCP Fast Open is enabled for servers in this network namespace. */
bool mk__listen_has_fast_open(void);

#endif
