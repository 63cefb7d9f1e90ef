// SPDX-License-Identifier: Apache-2.0
/*
 * Pipes through which bodies move from one socket to another by splice(2). A thread keeps one that is empty; a transfer
 * whose client takes no more keeps its own, with what waits in it.
 */
#ifndef MK_GATEWAY_PIPES_H
#define MK_GATEWAY_PIPES_H

#include <monkey/base/arena.h>

#include <sys/types.h>

enum {
    MK__GW_PIPES_MAX = 32,           /* of a thread; bodies are copied then */
    MK__GW_PIPE_BYTES = 256 * 1024,  /* of one, if the kernel permits that */
    MK__GW_SPLICE_BYTES_MIN = 32768, /* of a body, below which a copy costs less */
};

struct mk__gw_pipe {
    struct mk__gw_pipes *owner;
    int read_fd, write_fd;
    size_t bytes; /* in the pipe */
};

/* Of a thread. */
struct mk__gw_pipes {
    struct mk_account *account;
    struct mk__gw_pipe *idle; /* empty; or NULL */
    unsigned n;               /* in use, and the idle one */
};

/* Returns an empty pipe; NULL: there are enough, or the system has no more. */
struct mk__gw_pipe *mk__gw_pipes_take(struct mk__gw_pipes *all);
/* Closes the idle one. */
void mk__gw_pipes_release(struct mk__gw_pipes *all);

/* Ends the use of a pipe; bytes that are in it are lost. */
void mk__gw_pipe_put(struct mk__gw_pipe *pipe);

/*
 * Moves bytes of a socket into an empty pipe. Returns their number, 0 at the end, -EOPNOTSUPP (the system does not move
 * bytes from this one) or another -errno.
 */
ssize_t mk__gw_pipe_fill(struct mk__gw_pipe *pipe, int fd, size_t size);
/* Moves up to `size` bytes to a socket. Returns their number, -EOPNOTSUPP (as above) or another -errno. */
ssize_t mk__gw_pipe_drain(struct mk__gw_pipe *pipe, int fd, size_t size);
/* Reads bytes that are in the pipe, of which there are some. Returns their number. */
ssize_t mk__gw_pipe_read(struct mk__gw_pipe *pipe, char *to, size_t size);

#endif
