// SPDX-License-Identifier: Apache-2.0
/*
 * Pipes through which bodies move from one socket to another by splice(2). A thread keeps one that is empty; a transfer
 * whose client takes no more keeps its own, with what waits in it.
 */
#ifndef PROXY_PIPES_H
#define PROXY_PIPES_H

#include <monkey/arena.h>

#include <sys/types.h>

enum {
    PIPES_MAX = 32,           /* of a thread; bodies are copied then */
    PIPE_BYTES = 256 * 1024,  /* of one, if the kernel permits that */
    SPLICE_BYTES_MIN = 32768, /* of a body, below which a copy costs less */
};

struct pipe {
    struct pipes *owner;
    int read_fd, write_fd;
    size_t bytes; /* in the pipe */
};

/* Of a thread. */
struct pipes {
    struct mk_account *account;
    struct pipe *idle; /* empty; or NULL */
    unsigned n;        /* in use, and the idle one */
};

/* Returns an empty pipe; NULL: there are enough, or the system has no more. */
struct pipe *pipes_take(struct pipes *all);
/* Closes the idle one. */
void pipes_release(struct pipes *all);

/* Ends the use of a pipe; bytes that are in it are lost. */
void pipe_put(struct pipe *pipe);

/*
 * Moves bytes of a socket into an empty pipe. Returns their number, 0 at the end, -EOPNOTSUPP (the system does not move
 * bytes from this one) or another -errno.
 */
ssize_t pipe_fill(struct pipe *pipe, int fd, size_t size);
/* Moves up to `size` bytes to a socket. Returns their number, -EOPNOTSUPP (as above) or another -errno. */
ssize_t pipe_drain(struct pipe *pipe, int fd, size_t size);
/* Reads bytes that are in the pipe, of which there are some. Returns their number. */
ssize_t pipe_read(struct pipe *pipe, char *to, size_t size);

#endif
