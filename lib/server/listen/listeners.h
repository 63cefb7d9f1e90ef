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
#ifndef MK_SERVER_LISTEN_LISTENERS_H
#define MK_SERVER_LISTEN_LISTENERS_H

#include <monkey/list.h>

#include "net/listen.h"
#include "server/settings.h"

struct mk__listener {
    struct mk_list node;
    struct mk__addr configured, addr;               /* as configured, and as bound */
    bool shared;                                    /* all workers watch all of its sockets */
    bool pending;                                   /* opened for settings that are not in use yet */
    bool kept;                                      /* those settings want it */
    bool logged;                                    /* the log has named it */
    const struct mk__listen_conf *conf;             /* of those settings */
    _Atomic(const struct mk_transport *) transport; /* these two may change while connections come */
    _Atomic bool proxy;
    bool handed_over;     /* others go on with it: it is neither shut down nor removed */
    bool external;        /* others opened it, and hold it beyond our end */
    unsigned n, n_before; /* sockets, now and when the settings were looked at */
    int *fds;
    struct mk_str text; /* the directive's value */
};

struct mk__listeners {
    struct mk_list open;      /* in the order of the directives */
    struct mk_list closed;    /* closed; a connection may still ask by which it came */
    struct mk_list inherited; /* opened by others, and not taken yet */
};

void mk__listeners_init(struct mk__listeners *s);
/* Closes and forgets all; Unix sockets are removed. Nobody may be watching them any more. */
void mk__listeners_release(struct mk__listeners *s);

/*
 * Opens what `settings` want and is not there yet, for so many workers. 0, or -errno with the number of the
 * directive that it failed at; to be followed by one of the last two.
 */
int mk__listeners_prepare(struct mk__listeners *s, const struct mk__settings *settings, unsigned workers,
                          unsigned *ret_nth);
/*
 * All that could fail has gone well: those that share an address with others begin to get connections, too, which only
 * their watchers can take from them. 0 or -errno, which the log tells.
 */
int mk__listeners_listen(struct mk__listeners *s, const struct mk__settings *settings);
/* The settings are in use, and nobody watches any more what they do not want: that is closed. */
void mk__listeners_commit(struct mk__listeners *s, const struct mk__settings *settings);
/* The settings are not used: what was opened for them is closed. */
void mk__listeners_cancel(struct mk__listeners *s);

/* How its connections are treated, by the settings that are in use. Any thread. */
struct mk__listen_mode mk__listeners_mode(const struct mk__listener *one);

/* The n-th socket that worker `index` of `workers` watches at this address; -1 after the last. */
int mk__listeners_worker_fd(const struct mk__listener *one, unsigned index, unsigned workers, unsigned n);

/* inherited.c: moves what was inherited for this address into it; 0 or -ENOMEM. */
int mk__inherited_take(struct mk__listeners *s, struct mk__listener *one, const struct mk__settings *settings);
bool mk__inherited_conflicts(const struct mk__listeners *s, const struct mk__addr *addr);
/* Closes what nobody took; `used`: the settings that did not want it are in use. */
void mk__inherited_release(struct mk__listeners *s, bool used);

/* How the sockets of these settings are opened. */
struct mk__listen_options mk__listeners_options(const struct mk__settings *settings);

#endif
