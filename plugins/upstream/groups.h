// SPDX-License-Identifier: Apache-2.0
/*
 * The groups of a generation, and which server of one a request gets.
 */
#ifndef UPSTREAM_GROUPS_H
#define UPSTREAM_GROUPS_H

#include "members.h"

/* Makes the group of a section, whose names are added to `names`. Returns NULL without memory. */
struct mk_upstream_group *group_make(const struct upstream_conf *conf, struct names *names);
void group_free(struct mk_upstream_group *group);
/* The group is in use from now on: requests of former groups of its name that wait get its servers. Any thread. */
void group_make_current(struct mk_upstream_group *group);
/* Makes the values of the cookies. */
void group_make_tokens(struct mk_upstream_group *group, const uint64_t key[2]);

/* Returns the server whose cookie has this value; NULL: there is none. */
struct server *group_find_sticky(const struct mk_upstream_group *group, struct mk_str value);
const struct member *group_find_member(const struct mk_upstream_group *group, const struct mk_upstream_server *server);

/* Returns the first group of a generation, in the order of the configuration; NULL: it has none. In upstream.c. */
const struct mk_upstream_group *groups_first(const struct mk_generation *g);

/* ── waits.c ── */

/*
 * As mk_upstreams.choose, in the thread of `loop`, where `wait->fn` is called with the request `wait->req`. The load of
 * the server has this request then.
 */
int group_choose(const struct mk_upstream_group *group, struct mk_loop *loop, const struct preference *preference,
                 struct mk_upstream_tries *tries, struct mk_upstream_wait *wait, struct mk_upstream_server **ret);
/* As mk_upstreams.cancel. */
void group_cancel(struct mk_upstream_wait *wait);
/*
 * A server has room for a request, or has responded: the first ones that wait for that get it. Any thread. The first
 * only compares `server`, which may be gone, and returns as mk_upstreams.end. `is_well`: it serves those that are held.
 */
const struct mk_loop *group_note_room(struct pool *pool, const struct server *server, bool is_well, uint64_t now_ms);
void group_note_response(struct server *server, uint64_t now_ms);
/* A server was down by its checks, and is not any more: the same. */
void group_note_up(struct server *server, uint64_t now_ms);

#endif
