// SPDX-License-Identifier: Apache-2.0
/*
 * The listening sockets of the server. They live as long as the process: a new generation keeps the listeners that it
 * configures too, so that no connection that waits in a queue is lost.
 *
 *     Listen 80        ─► listener ─► a socket for each worker (SO_REUSEPORT)
 *     Listen unix:/x   ─► listener ─► one socket for all workers
 *
 * Worker i of n watches the sockets i, i + n, i + 2n ...: when a reload lowers the number of workers, those that stay
 * take over the sockets of those that end. All functions run in the main thread (which starts, reloads and stops the
 * server), unless they say otherwise.
 */
#ifndef MK_SERVER_LISTEN_LISTENERS_H
#define MK_SERVER_LISTEN_LISTENERS_H

#include <monkey/base/list.h>

#include "net/announce.h"
#include "net/listen.h"
#include "server/generation/settings.h"

enum mk__listener_state {
    MK__LISTENER_UNCLAIMED, /* no Listen of the settings that were prepared last names it */
    MK__LISTENER_CLAIMED,
    MK__LISTENER_NEW, /* claimed, and opened for these settings, which are not committed yet */
};

/* Ordered by how much of the sockets others have. */
enum mk__listener_owner {
    MK__LISTENER_OWNED,
    MK__LISTENER_SHARED,   /* another process accepts there too: they are neither shut down nor unlinked */
    MK__LISTENER_EXTERNAL, /* likewise; a service manager opened them, and keeps them open after our end */
};

struct mk__listener {
    struct mk__listener_name name; /* first: connections refer to it */
    struct mk_list node;
    struct mk__addr configured, addr; /* as configured, and as bound */
    bool shared;                      /* all workers watch all of its sockets */
    enum mk__listener_state state;
    enum mk__listener_owner owner;
    bool logged;                        /* "listening on" has been logged */
    struct mk__listen_rights rights;    /* that were set last */
    const struct mk__listen_conf *conf; /* in the settings that were prepared last; NULL once they are committed */
    _Atomic(const struct mk_transport *) transport; /* these two may change while connections come */
    _Atomic bool proxy;
    unsigned n, n_before; /* sockets, now and before the settings were prepared */
    int *fds;
};
static_assert(offsetof(struct mk__listener, name) == 0, "struct mk_io refers to a listener by its name");

struct mk__listeners {
    struct mk_list open;           /* in the order of the directives */
    struct mk_list closed;         /* sockets closed; kept because connections refer to their listener */
    struct mk_list inherited;      /* struct mk__inherited: from another process, not claimed by a Listen yet */
    struct mk__announcement names; /* of the sockets that are open, for other processes */
};

MK_COLD void mk__listeners_init(struct mk__listeners *s);
/* Closes and frees all; Unix sockets are unlinked. No loop may watch them any more. */
MK_COLD void mk__listeners_release(struct mk__listeners *s);

/*
 * Opens the listeners of `settings` that are not open yet, for `workers` workers. Returns 0, or -errno with the number
 * of the Listen directive that failed. To be followed by mk__listeners_commit() or mk__listeners_cancel().
 */
MK_COLD int mk__listeners_prepare(struct mk__listeners *s, const struct mk__settings *settings, unsigned workers,
                                  unsigned *ret_nth);
/*
 * Starts listening at the new sockets that share an address with others (SO_REUSEPORT): they receive connections from
 * now on, which only their own acceptor can accept. To be called when nothing else can fail. Logs failures. Returns 0
 * or -errno.
 */
MK_COLD int mk__listeners_listen(struct mk__listeners *s, const struct mk__settings *settings);
/*
 * Takes the sockets out of service that mk__listeners_commit() will close, and waits until handshakes with them have
 * ended, but no longer than 250 ms. What is in their queues is to be accepted by their acceptors before.
 */
MK_COLD void mk__listeners_retire(struct mk__listeners *s);
/* The settings are in use: closes the listeners that they do not have, which no loop may watch any more. */
MK_COLD void mk__listeners_commit(struct mk__listeners *s, const struct mk__settings *settings);
/* The settings are given up: closes what was opened for them. */
MK_COLD void mk__listeners_cancel(struct mk__listeners *s);

/* Returns how the settings in use treat its connections. Any thread. */
struct mk__listen_mode mk__listeners_mode(const struct mk__listener *one);

/* Returns the n-th socket that worker `index` of `workers` watches at this address; -1 after the last. */
MK_COLD int mk__listeners_worker_fd(const struct mk__listener *one, unsigned index, unsigned workers, unsigned n);

/* inherited.c: adds a socket, which the listeners own from now on. Returns 0, -EPROTOTYPE, -EINVAL or another -errno.
 */
MK_COLD int mk__inherited_add(struct mk__listeners *s, int fd, bool own);
/* Moves the inherited sockets of this address into the listener. Returns 0 or -ENOMEM. */
MK_COLD int mk__inherited_take(struct mk__listeners *s, struct mk__listener *one, const struct mk__settings *settings);
/* Returns whether an inherited socket that is not claimed is bound to this address, or to one that includes it. */
MK_COLD bool mk__inherited_conflicts(const struct mk__listeners *s, const struct mk__addr *addr);
/* Closes the inherited sockets that no Listen claimed; `used`: the settings are in use, and each is logged. */
MK_COLD void mk__inherited_release(struct mk__listeners *s, bool used);

/* Returns the socket options of these settings. */
MK_COLD struct mk__listen_options mk__listeners_options(const struct mk__settings *settings);

#endif
