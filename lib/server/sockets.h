// SPDX-License-Identifier: Apache-2.0
/*
 * The sockets that a server listens at. They live by the clock of the process: a new generation goes on with those
 * that it wants too, and no connection that waits in one is lost.
 *
 *     Listen 80        ─► listening ─► a socket for each worker (SO_REUSEPORT)
 *     Listen unix:/x   ─► listening ─► one socket for all of them
 *
 * Worker i of n watches the sockets i, i + n, i + 2n ...: when there are fewer workers than before, those that stay
 * take the sockets of those that go.
 */
#ifndef MK_SERVER_SOCKETS_H
#define MK_SERVER_SOCKETS_H

#include <monkey/list.h>

#include "net/listen.h"
#include "server/settings.h"

struct mk__listening {
    struct mk_list node;
    struct mk__addr wanted, addr; /* as configured, and as bound */
    bool shared;                  /* all workers watch all of its sockets */
    bool fresh;                   /* opened for settings that are not in use yet */
    bool kept;                    /* those settings want it */
    bool told;                    /* the log has named it */
#ifndef MK_LEAN
    const struct mk__listener *line;                /* of those settings */
    _Atomic(const struct mk_transport *) transport; /* these two may change while connections come */
    _Atomic bool proxy;
#endif
    bool lent;            /* others go on with it: it is neither shut down nor removed */
    bool borrowed;        /* others opened it, and hold it beyond our end */
    unsigned n, n_before; /* sockets, now and when the settings were looked at */
    int *fds;
    struct mk_str text; /* the directive's value */
};

struct mk__sockets {
    struct mk_list open; /* in the order of the directives */
    struct mk_list gone; /* closed; a connection may still ask by which it came */
#ifndef MK_LEAN
    struct mk_list inherited; /* opened by others, and not taken yet */
#endif
};

void mk__sockets_init(struct mk__sockets *s);
/* Closes and forgets all; Unix sockets are removed. Nobody may be watching them any more. */
void mk__sockets_release(struct mk__sockets *s);

/*
 * Opens what `settings` want and is not there yet, for so many workers. 0, or -errno with the number of the
 * directive that it failed at; to be followed by one of the last two.
 */
int mk__sockets_prepare(struct mk__sockets *s, const struct mk__settings *settings, unsigned workers,
                        unsigned *ret_nth);
#ifndef MK_LEAN
/*
 * All that could fail has gone well: those that share an address with others begin to get connections, too, which only
 * their watchers can take from them. 0 or -errno, which the log tells.
 */
int mk__sockets_listen(struct mk__sockets *s, const struct mk__settings *settings);
#endif
/* The settings are in use, and nobody watches any more what they do not want: that is closed. */
void mk__sockets_commit(struct mk__sockets *s, const struct mk__settings *settings);
/* The settings are not used: what was opened for them is closed. */
void mk__sockets_cancel(struct mk__sockets *s);

#ifndef MK_LEAN
/* How its connections are treated, by the settings that are in use. Any thread. */
struct mk__way mk__sockets_way(const struct mk__listening *one);
#endif

/* The n-th socket that worker `index` of `workers` watches at this address; -1 after the last. */
int mk__sockets_of_worker(const struct mk__listening *one, unsigned index, unsigned workers, unsigned n);

/* inherit.c: moves what was inherited for this address into it; 0 or -ENOMEM. */
int mk__inherit_take(struct mk__sockets *s, struct mk__listening *one, const struct mk__settings *settings);
bool mk__inherit_clashes(const struct mk__sockets *s, const struct mk__addr *addr);
/* Closes what nobody took; `used`: the settings that did not want it are in use. */
void mk__inherit_release(struct mk__sockets *s, bool used);

/* How the sockets of these settings are opened. */
struct mk__listen_options mk__sockets_options(const struct mk__settings *settings);

#endif
