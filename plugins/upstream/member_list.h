// SPDX-License-Identifier: Apache-2.0
/*
 * The servers of a group as its configuration and the addresses of its names have them. A list does not change, but for
 * the turns of RoundRobin: other addresses make another list, and the former one is freed when no loop can see it.
 */
#ifndef UPSTREAM_MEMBER_LIST_H
#define UPSTREAM_MEMBER_LIST_H

#include "names.h"
#include "servers.h"

#include <monkey/epoch.h>

enum { GROUP_MEMBERS_MAX = 1024 }; /* further addresses are not used */

/* A server as the configuration of its group has it. */
struct member {
    struct server *server; /* held */
    const struct server_line *line;
    struct turn turn;
    uint64_t hash;     /* of the server's address */
    uint32_t weight;   /* of the SRV record, by the largest one of its priority; 0: that of the line counts */
    uint16_t priority; /* of the SRV record; a larger one is used if no server of the line with a smaller one can be */
    char token[STICKY_TOKEN_BYTES]; /* with Balance Sticky */
};

struct members {
    struct mk_retired retired;
    unsigned n;
    struct member items[]; /* by their lines, and in a line by their priorities */
};

/*
 * Makes the list of a group. `watches`: of the lines; those without a name are zeroed. Under the lock of names. Returns
 * NULL without memory.
 */
struct members *members_make(const struct upstream_conf *conf, struct pool *pool, const struct name_watch *watches);
void members_free(struct members *members);
/* Frees a list that no new request can find, as soon as no loop can see it. */
void members_retire(struct members *members);
/* Copies the turns of the servers that the former list has, too. */
void members_take_turns(struct members *members, const struct members *former);
/* Makes the values of the cookies. */
void members_make_tokens(struct members *members, const uint64_t key[2]);
/* Finds a server; NULL: the list has it not. `from`: where it is likely. */
const struct member *members_find(const struct members *members, const struct mk_upstream_server *server,
                                  unsigned from);

#endif
