// SPDX-License-Identifier: Apache-2.0
/*
 * Listening sockets: how they are opened, and what the system says to their options.
 */
#ifndef MK_NET_LISTEN_H
#define MK_NET_LISTEN_H

#include "net/addr.h"

struct mk__listen_options {
    int backlog;
    int defer_seconds;   /* TCP_DEFER_ACCEPT; 0 = off */
    int fast_open_queue; /* TCP_FASTOPEN; 0 = off */
    int send_buffer;     /* SO_SNDBUF, bytes; 0 = as large as the system lets it grow */
    int not_sent_lowat;  /* TCP_NOTSENT_LOWAT, bytes; 0 = the system's net.ipv4.tcp_notsent_lowat */
    bool shared_port;    /* SO_REUSEPORT: joins sockets that listen there; without it there must be none */
};

/*
 * Binds (not listening yet): the descriptor or -errno. `*:port` covers IPv4 and IPv6, or IPv4 alone where
 * there is no IPv6; `addr` is completed with what was bound (family, port 0 replaced). A Unix socket that
 * nobody answers at is replaced.
 */
int mk__listen_bind(struct mk__addr *addr, const struct mk__listen_options *options);
/* Begins to listen. 0 or -errno. */
int mk__listen_start(int fd, const struct mk__addr *addr, const struct mk__listen_options *options);

/* Is the server's side of TCP Fast Open enabled in this network namespace? */
bool mk__listen_has_fast_open(void);

#endif
