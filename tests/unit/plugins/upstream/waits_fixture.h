// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that are given a server of a group, or wait for one.
 */
#ifndef MK_UNIT_UPSTREAM_WAITS_FIXTURE_H
#define MK_UNIT_UPSTREAM_WAITS_FIXTURE_H

#include "plugins/upstream/group_fixture.h"

#include <errno.h>

enum { REQUESTS = 8 };

/* A request, and what has become of it. */
struct waiter {
    struct mk_upstream_wait wait;
    struct mk_upstream_tries tries;
    int result; /* the index of its server, or a negative error; -EAGAIN: it waits */
};

static struct waiter waiters[REQUESTS];
static int order[REQUESTS]; /* of those that have got a server */
static unsigned n_served;

static inline void on_end(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    struct waiter *w = MK_CONTAINER_OF(wait, struct waiter, wait);
    assert_int_equal(w->result, -EAGAIN);
    w->result = err < 0 ? err : index_of(server);
    if (err == 0)
        order[n_served++ % REQUESTS] = (int)(w - waiters);
}

static inline int ask_for(unsigned i, const struct preference *preference)
{
    struct waiter *w = &waiters[i];
    struct mk_upstream_server *server;
    w->wait.fn = on_end;
    int r = group_choose(group, &loop, preference, &w->tries, &w->wait, &server);
    w->result = r == MK_AGAIN ? -EAGAIN : r < 0 ? r : index_of(server);
    return w->result;
}

static inline int ask(unsigned i)
{
    return ask_for(i, &no_preference);
}

static inline void end_request(unsigned i)
{
    struct server *server = server_of(waiters[i].tries.servers[waiters[i].tries.n - 1]);
    server->load--;
    group_note_room(server->pool, server, server_is_well(server), now_ms);
    settle();
}

/* One server of the group with room for one request, and a queue. */
static inline void open_queue(unsigned n_servers, int64_t queue)
{
    open_group(0);
    for (unsigned i = n_servers; i < SERVERS; i++)
        lines[i].is_down = true;
    conf.max_connections = 1;
    conf.queue = queue;
    memset(waiters, 0, sizeof(waiters));
    n_served = 0;
}

static inline unsigned add_loads(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        sum += group_members(group)->items[i].server->load;
    return sum;
}

#endif
