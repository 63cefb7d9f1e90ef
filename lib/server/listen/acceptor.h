// SPDX-License-Identifier: Apache-2.0
/*
 * Accepting, apart from serving: an acceptor watches a listening socket in some loop (a worker's own, or that of the
 * process context) and hands each new connection on.
 */
#ifndef MK_SERVER_LISTEN_ACCEPTOR_H
#define MK_SERVER_LISTEN_ACCEPTOR_H

#include <monkey/loop.h>

struct mk__acceptor;
struct mk__limits;

/* What an acceptor tells whom it works for. */
struct mk__acceptor_callbacks {
    /* The descriptor is the receiver's, who counts it out when it is gone; -ENOMEM: no more for now. */
    int (*on_accept)(struct mk__acceptor *a, int fd);
    bool (*evict)(struct mk__acceptor *a); /* descriptors ran out: could some be freed? */
};

struct mk__acceptor {
    struct mk_event event;
    struct mk_timer retry;
    struct mk_loop *loop;
    const struct mk__acceptor_callbacks *callbacks;
    void *ctx;
    struct mk__limits *limits; /* set by the caller, as `listening` is */
    const struct mk__listener *listener;
    uint64_t warned_ms;
    int fd_limit;   /* connections get descriptors below this one */
    bool exclusive; /* the socket is watched by other loops too */
    bool open;
};

/* Accepts at `fd`, which stays the caller's. 0 or -errno. */
int mk__acceptor_open(struct mk__acceptor *a, struct mk_loop *loop, int fd, bool exclusive,
                      const struct mk__acceptor_callbacks *callbacks, void *ctx);
/* Takes what waits already, then stops listening; the descriptor is still the caller's to close. */
void mk__acceptor_close(struct mk__acceptor *a);
/* Looks away from now on: others accept at this socket. */
void mk__acceptor_stop(struct mk__acceptor *a);
/* There is room again: it need not look away any longer. */
void mk__acceptor_retry(struct mk__acceptor *a);
/* The limit of descriptors may have changed. */
void mk__acceptor_update_fd_limit(struct mk__acceptor *a);

#endif
