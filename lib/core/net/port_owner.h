// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out which process listens on an address that is in use, in /proc. For starts, reloads and checks: it reads the
 * descriptors of all processes.
 */
#ifndef MK_NET_PORT_OWNER_H
#define MK_NET_PORT_OWNER_H

#include "net/addr.h"

enum { MK__HANDSHAKES_MAX = 256 };

/* Returns whether a process is one of the server's own. */
typedef bool (*mk__port_owner_own_fn)(int pid, void *ctx);

struct mk__port_owner {
    int pid;       /* 0: not known, since /proc hides the descriptors of other users' processes */
    char name[16]; /* of its program */
};

enum mk__port_owner_kind {
    MK__PORT_OWNER_NONE, /* no socket listens there */
    MK__PORT_OWNER_OWN,
    MK__PORT_OWNER_OTHER, /* at least one, which is in `*ret` */
};

/* Finds the processes whose listening sockets conflict with `addr`. */
enum mk__port_owner_kind mk__port_owner_find(const struct mk__addr *addr, mk__port_owner_own_fn is_own, void *ctx,
                                             struct mk__port_owner *ret);

/* A listening socket. */
struct mk__port_owner_socket {
    struct mk__addr addr;
    unsigned uid; /* of the process that has opened it */
    unsigned long inode;
    bool own, announced;
    int pid;       /* of another server's process that has it; 0: none was found */
    uint64_t peer; /* hash of the client's address, of a TCP handshake */
};

/* Clients that were in a TCP handshake with an address when they were looked for first. */
struct mk__handshakes {
    uint64_t peers[MK__HANDSHAKES_MAX]; /* hashes of their addresses; those of more are not waited for */
    unsigned n;
};

/* Finds the clients that are in a handshake with a socket at `addr`, or at an address that includes it. */
void mk__handshakes_find(struct mk__handshakes *h, const struct mk__addr *addr);
/* Drops those that are in none any more. */
void mk__handshakes_update(struct mk__handshakes *h, const struct mk__addr *addr);

/* Parse a line of /proc/net/tcp or tcp6, and of /proc/net/unix. Return false if it is no socket that listens. */
bool mk__port_owner_parse_tcp(const char *line, struct mk__port_owner_socket *ret);
bool mk__port_owner_parse_unix(const char *line, struct mk__port_owner_socket *ret);
/* Parses a line of /proc/net/tcp or tcp6. Returns false if it is no connection whose handshake has not ended. */
bool mk__port_owner_parse_handshake(const char *line, struct mk__port_owner_socket *ret);

#endif
