// SPDX-License-Identifier: Apache-2.0
/*
 * Shows which listening sockets a process has to processes that may not read its descriptors: `monkey -t` of another
 * user tells them from those of other programs by that. Abstract Unix sockets that do not listen have
 * the inodes of the sockets in their names, which /proc/net/unix shows in the same network namespace:
 *
 *     @monkey/PID/NUMBER/INODE,INODE ...    up to eight, hexadecimal
 *     @monkey/PID/NUMBER/changing           they are being changed, and not all are named
 *
 * Any process can bind such names, so they are good for a diagnosis only.
 */
#ifndef MK_NET_ANNOUNCE_H
#define MK_NET_ANNOUNCE_H

#include <monkey/status.h>

#include <stdbool.h>

enum { MK__ANNOUNCE_NAMES_MAX = 64, MK__ANNOUNCE_INODES = 8 };

struct mk__announcement {
    int fds[MK__ANNOUNCE_NAMES_MAX]; /* of the names */
    unsigned n;
    int changing; /* descriptor + 1; 0: none */
    bool failed;
    unsigned n_pending; /* sockets for the next name */
    unsigned pending[MK__ANNOUNCE_INODES];
};

/* The sockets change until mk__announce_end(). If there is no descriptor for that, no socket is named meanwhile. */
MK_COLD void mk__announce_begin(struct mk__announcement *a);
/*
 * Names the sockets that mk__announce_add() adds in between, and no others any more. Without descriptors, or for more
 * than 512 sockets, none is named.
 */
MK_COLD void mk__announce_clear(struct mk__announcement *a);
MK_COLD void mk__announce_add(struct mk__announcement *a, int socket);
MK_COLD void mk__announce_end(struct mk__announcement *a);
/* Names none any more. */
MK_COLD void mk__announce_close(struct mk__announcement *a);

struct mk__announced {
    int pid;
    bool changing;
    unsigned n;
    unsigned long inodes[MK__ANNOUNCE_INODES];
};

/* Parses a line of /proc/net/unix. Returns false if it is no such name. */
MK_COLD bool mk__announce_parse(const char *line, struct mk__announced *ret);

#endif
