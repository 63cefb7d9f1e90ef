// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between the server and its starter: packets on Unix sockets, with descriptors. Both are the same program, so
 * a struct is sent as it lies in memory.
 */
#ifndef MK_KIT_CHILD_MESSAGE_H
#define MK_KIT_CHILD_MESSAGE_H

#include <monkey/kit/child.h>

enum mk__message_kind {
    MK__MESSAGE_ATTACH = 1, /* to the starter: a channel, a descriptor */
    MK__MESSAGE_START,      /* to the starter: a child; up to three descriptors */
    MK__MESSAGE_STOP,       /* to the starter: the child, and all that descends from it, is to end */
    MK__MESSAGE_REAP,       /* to the starter: the child is closed */
    MK__MESSAGE_STARTED,    /* from the starter: with a pidfd, or an error */
    MK__MESSAGE_EXITED,     /* from the starter: with a status */
};

enum { MK__MESSAGE_FDS_MAX = 3 };

/* After it: path, folder, arguments and variables, each string with a NUL. */
struct mk__message {
    uint32_t kind, id;
    uint32_t fd_bits;                                        /* which of stdin, stdout, stderr are sent */
    uint32_t path_bytes, folder_bytes, arg_bytes, env_bytes; /* with their NULs */
    int32_t pid, err, status;
    uint32_t step; /* enum mk_child_step */
    uint32_t grace_ms;
    struct mk_child_limits limits;
};

static_assert(sizeof(struct mk__message) == 12 * sizeof(uint32_t) + sizeof(struct mk_child_limits),
              "all bytes are sent");

enum { MK__MESSAGE_BYTES_MAX = sizeof(struct mk__message) + MK_CHILD_BYTES_MAX };

/* What a START has: strings of the packet. */
struct mk__message_parts {
    const char *path, *folder;
    char *argv[MK_CHILD_ARGS_MAX + 1], *envp[MK_CHILD_ENV_MAX + 1]; /* with a NULL at the end */
};

/*
 * Splits a packet of `len` bytes, which is a START and begins with its struct mk__message.
 * Returns 0, -EBADMSG (a length is not that of the packet, or a NUL is missing) or -E2BIG (too many strings).
 */
int mk__message_split(char *packet, size_t len, struct mk__message_parts *ret);

/* Makes a pair of sockets. Returns 0 or -errno. */
int mk__message_open_pair(int fds[2]);
/* Sends a packet with `n` descriptors. Returns 0 or -errno; -EAGAIN: later. */
int mk__message_send(int sock, struct mk_str packet, const int *fds, unsigned n);
/*
 * Receives a packet of at most `size` bytes, and up to MK__MESSAGE_FDS_MAX descriptors, close-on-exec, in `fds`.
 * Returns its bytes, 0 (the other end is closed, or the packet is empty), -EAGAIN or another -errno; -EBADMSG: it is
 * too long; -EMFILE: not all of its descriptors could be received, as this process may open no more, or they are too
 * many. `to` has the packet then, and the others are closed.
 */
ssize_t mk__message_receive(int sock, char *to, size_t size, int fds[MK__MESSAGE_FDS_MAX], unsigned *ret_n);

#endif
