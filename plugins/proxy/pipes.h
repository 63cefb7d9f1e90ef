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
    int read_fd, write_fd;
    size_t bytes; /* in the pipe */
};

struct pipes {
    struct pipe *idle; /* empty; or NULL */
    unsigned n;        /* in use, and the idle one */
};

/* Returns an empty pipe; NULL: there are enough, or the system has no more. */
struct pipe *pipes_take(struct pipes *all, struct mk_account *account);
/* Ends the use; bytes that are in the pipe are lost. */
void pipes_put(struct pipes *all, struct mk_account *account, struct pipe *pipe);
void pipes_release(struct pipes *all, struct mk_account *account);

/* Moves bytes of a socket into an empty pipe. Returns their number, 0 at the end, or -errno. */
ssize_t pipe_fill(struct pipe *pipe, int fd, size_t size);
/* Moves up to `size` bytes to a socket. Returns their number, or -errno. */
ssize_t pipe_drain(struct pipe *pipe, int fd, size_t size);
/* Reads bytes that are in the pipe, of which there are some. Returns their number. */
ssize_t pipe_read(struct pipe *pipe, char *to, size_t size);

#endif
