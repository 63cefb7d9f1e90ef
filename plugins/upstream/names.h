// SPDX-License-Identifier: Apache-2.0
/*
 * Names in lines `Server`, and their addresses: looked up once for the process, again when their time to live is over,
 * and known over reloads that leave the line.
 *
 *     generation_start   names_watch() for each name ─► names_resolve(), which blocks, for those that are new
 *     in a loop          names_start() ─► lookups ─► changed() ─► ... ─► names_stop()
 *
 * What was known stays while there is no answer, and when the answer is that there is no address: one that is wrong
 * does less harm than none.
 */
#ifndef UPSTREAM_NAMES_H
#define UPSTREAM_NAMES_H

#include "lookup.h"

/* What is looked up for a line, and how. Strings and addresses are copied. */
struct name_conf {
    struct mk_str group, line; /* for messages; the same name in another line is looked up for that one */
    struct mk_str host;
    bool is_srv;
    uint16_t port;
    int family;                    /* enum lookup_family */
    struct lookup_servers servers; /* none: those of the system */
    uint32_t ttl_ms_max;
};

struct name;

/* The names of a generation. */
struct names {
    struct mk_list watches;
    struct mk_loop *loop; /* NULL: not started */
    struct mk_timer timer;
    unsigned running; /* lookups, in the loop */
};

/* A line of a generation that has a name; in the caller's storage. */
struct name_watch {
    struct mk_list node;      /* in struct names */
    struct mk_list name_node; /* in the name */
    struct names *names;
    struct name *name; /* NULL: nothing is watched */
    /*
     * There are other addresses. Under the lock of all names, in any thread. Returns 0, or -errno: it is called again
     * after the next lookup.
     */
    int (*changed)(struct name_watch *watch);
    void *ctx; /* of the caller */
};

/* The lock of all names, for names_watch(), names_unwatch() and names_get(). */
void names_lock(void);
void names_unlock(void);

void names_init(struct names *names);
/* Begins and ends to watch a name, with `changed`. The first returns 0 or -ENOMEM. */
int names_watch(struct names *names, struct name_watch *watch, const struct name_conf *conf);
void names_unwatch(struct name_watch *watch);
/* Returns the addresses, as struct lookup_result has them; none: they are not known. Valid while the lock is held. */
const struct lookup_address *names_get(const struct name_watch *watch, unsigned *ret_n);

/* Looks up the names that never were, for `ms` at most. Without the lock; blocks. */
void names_resolve(struct names *names, uint32_t ms);
/* Says why the last lookup has found no addresses; NULL: it has found some, or nothing is watched. Under the lock. */
const char *names_get_failure(const struct name_watch *watch);

/* Looks up the names from now on, and ends that. In the loop's thread, the second also after its end. */
void names_start(struct names *names, struct mk_loop *loop);
void names_stop(struct names *names);

#endif
