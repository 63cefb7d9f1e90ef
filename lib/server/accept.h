// SPDX-License-Identifier: Apache-2.0
/*
 * Accepting, apart from serving: an acceptor watches a listening socket in some loop (a worker's own, or that of the
 * process context) and hands each new connection on.
 */
#ifndef MK_SERVER_ACCEPT_H
#define MK_SERVER_ACCEPT_H

#include <monkey/loop.h>

struct mk__acceptor;
struct mk__capacity;

/* What an acceptor tells whom it works for. */
struct mk__acceptor_calls {
    /* The descriptor is the receiver's, who counts it out when it is gone; -ENOMEM: no more for now. */
    int (*take)(struct mk__acceptor *a, int fd);
    bool (*make_room)(struct mk__acceptor *a); /* descriptors ran out: could some be freed? */
};

struct mk__acceptor {
    struct mk_event event;
    struct mk_timer retry;
    struct mk_loop *loop;
    const struct mk__acceptor_calls *calls;
    void *ctx;
    struct mk__capacity *capacity; /* set by the caller, as `listening` is */
    const struct mk__listening *listening;
    uint64_t complained_ms;
    int fd_reserved; /* connections get descriptors below this one */
    bool exclusive;  /* the socket is watched by other loops too */
    bool open;
};

/* Accepts at `fd`, which stays the caller's. 0 or -errno. */
int mk__acceptor_open(struct mk__acceptor *a, struct mk_loop *loop, int fd, bool exclusive,
                      const struct mk__acceptor_calls *calls, void *ctx);
/* Takes what waits already, then stops listening; the descriptor is still the caller's to close. */
void mk__acceptor_close(struct mk__acceptor *a);
/* Looks away from now on: others accept at this socket. */
void mk__acceptor_leave(struct mk__acceptor *a);
/* There is room again: it need not look away any longer. */
void mk__acceptor_retry(struct mk__acceptor *a);
/* The limit of descriptors may have changed. */
void mk__acceptor_count_descriptors(struct mk__acceptor *a);

#endif
