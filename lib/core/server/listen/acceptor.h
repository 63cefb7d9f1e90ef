// SPDX-License-Identifier: Apache-2.0
/*
 * An acceptor watches one listening socket in a loop (a worker's, or the control thread's with the fair scheduler) and
 * passes each accepted connection to its callbacks. All functions run in the loop's thread, or before the loop runs.
 */
#ifndef MK_SERVER_LISTEN_ACCEPTOR_H
#define MK_SERVER_LISTEN_ACCEPTOR_H

#include <monkey/base/address.h>
#include <monkey/loop.h>

struct mk__listener;
struct mk__listeners;

struct mk__acceptor;
struct mk__limits;

/* An accepted connection. */
struct mk__accepted {
    int fd;
    struct mk_address peer;
};

struct mk__acceptor_callbacks {
    /*
     * Takes over the descriptor, and calls mk__limits_remove_conn() when it is closed. Returns 0, MK_AGAIN (accept no
     * more in this turn: descriptors are given back at its end) or -ENOMEM: accept no more for now.
     */
    int (*on_accept)(struct mk__acceptor *a, const struct mk__accepted *accepted);
    bool (*evict)(struct mk__acceptor *a); /* descriptors or memory ran out: closes idle connections; false: none */
    /* Descriptors ran out: others close what they keep, at the end of this turn or in this call. May be NULL. */
    void (*free_fds)(struct mk__acceptor *a);
};

struct mk__acceptor {
    struct mk_event event;
    struct mk_timer retry;
    struct mk_loop *loop;
    const struct mk__acceptor_callbacks *callbacks;
    void *ctx;
    struct mk__limits *limits; /* this and `listener` are set by the caller before the acceptor is opened */
    const struct mk__listener *listener;
    uint64_t warned_ms;
    int fd_limit;   /* connections get descriptors below this number; the others are for files */
    bool exclusive; /* other loops watch the socket too: EPOLLEXCLUSIVE */
    bool open;
    bool asked_for_fds; /* since a connection was accepted */
};

/* Starts accepting at `fd`, which the caller keeps open and closes later. Returns 0 or -errno. */
int mk__acceptor_open(struct mk__acceptor *a, struct mk_loop *loop, int fd, bool exclusive,
                      const struct mk__acceptor_callbacks *callbacks, void *ctx);
/* Accepts the connections that wait in the queue, then shuts the socket down. The caller closes the descriptor. */
void mk__acceptor_close(struct mk__acceptor *a);
/* Stops watching the socket, which stays open: other loops or processes accept there. */
void mk__acceptor_stop(struct mk__acceptor *a);
/* Ends a pause early: descriptors or memory have been freed. */
void mk__acceptor_retry(struct mk__acceptor *a);
/* Reads RLIMIT_NOFILE again: it may have changed with a reload. */
void mk__acceptor_update_fd_limit(struct mk__acceptor *a);

/* The acceptors of one loop. Each is allocated by itself: the loop keeps its address. */
struct mk__acceptors {
    struct mk__acceptor **items;
    unsigned n;
};

/*
 * Makes acceptors, not open yet, for the sockets that loop `index` of `loops` watches; only listeners that are claimed
 * count. Returns 0 or -ENOMEM.
 */
int mk__acceptors_make(struct mk__acceptors *list, const struct mk__listeners *listeners, unsigned index,
                       unsigned loops);
void mk__acceptors_free(struct mk__acceptors *list);

/* Opens one acceptor of a list, in the loop's thread or before the loop runs. Returns 0 or -errno. */
typedef int (*mk__acceptors_open_fn)(void *ctx, struct mk__acceptor *a);

/* Opens those that are not open yet, and logs failures. Returns 0, or the -errno of the last failure. */
int mk__acceptors_open(struct mk__acceptors *list, mk__acceptors_open_fn open, void *ctx);
void mk__acceptors_close(struct mk__acceptors *list);
/*
 * Replaces the list by `next`; acceptors that both have stay open. `next` receives the others: an acceptor of an
 * address that is not configured any more is closed, one whose socket another loop watches from now on is stopped.
 */
void mk__acceptors_replace(struct mk__acceptors *list, struct mk__acceptors *next, mk__acceptors_open_fn open,
                           void *ctx);

#endif
