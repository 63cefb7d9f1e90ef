// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps connections to backends for a connection of a client.
 */
#include "gateway.h"

#include <monkey/plugin.h>

#include <errno.h>
#include <sys/epoll.h>

enum { CONNS_MAX = 8 }; /* of a client, to all backends */

/* ── connections ── */

/* Takes a connection out of its set, of whose reference to the backend the caller disposes. */
static void remove_conn(struct mk__gw_bound *bound, struct mk__gw_backend_conn *c)
{
    mk_list_del(&c->node);
    mk_list_del(&c->bound_node);
    c->fn = NULL;
    c->backend->n_bound--;
    bound->n--;
}

static void close_conn(struct mk__gw_bound *bound, struct mk__gw_backend_conn *c)
{
    struct mk__gw_backend *b = c->backend;
    remove_conn(bound, c);
    mk__gw_backend_close(c);
    mk__gw_backend_put(b);
}

/* The backend has ended the connection, or has sent what it was not asked for; or the thread ends. */
static void on_idle_event(void *user, uint32_t events)
{
    struct mk__gw_backend_conn *c = user;
    char byte;
    if (events & EPOLLHUP || (events & ~(uint32_t)EPOLLOUT && mk__gw_backend_read(c, &byte, 1) != -EAGAIN))
        close_conn(c->bound, c);
}

/* ── sets ── */

/* Returns when the connection is to end. */
static uint64_t get_end(const struct mk__gw_backend_conn *c, uint64_t now)
{
    uint64_t since = now - ((uint32_t)now - c->bound_since_ms);
    return c->has_login ? UINT64_MAX : since + c->backend->keep_alive_timeout_ms;
}

static void arm_timer(struct mk__gw_bound *bound, uint64_t now)
{
    uint64_t first = UINT64_MAX;
    MK_LIST_EACH_ITEM(&bound->conns, struct mk__gw_backend_conn, node, conn) {
        uint64_t end = get_end(conn, now);
        first = end < first ? end : first;
    }
    if (first != UINT64_MAX)
        mk_timer_arm(bound->loop, &bound->timer, first > now ? (uint32_t)(first - now) : 0);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__gw_bound *bound = MK_CONTAINER_OF(timer, struct mk__gw_bound, timer);
    uint64_t now = mk_loop_now_ms(bound->loop);
    MK_LIST_EACH_ITEM(&bound->conns, struct mk__gw_backend_conn, node, c) {
        if (get_end(c, now) <= now)
            close_conn(bound, c);
    }
    arm_timer(bound, now);
}

/* The connection of the client ends. */
static void free_bound(void *state)
{
    struct mk__gw_bound *bound = state;
    while (!mk_list_empty(&bound->conns))
        close_conn(bound, MK_LIST_FIRST(&bound->conns, struct mk__gw_backend_conn, node));
    mk_timer_cancel(&bound->timer);
    mk_account_free(NULL, bound, sizeof(*bound));
}

/* Returns the set of the request's connection, which is made if there is none; NULL without memory. */
static struct mk__gw_bound *get_bound(struct mk_request *req, const struct mk__gw_thread *t)
{
    const struct mk_plugin *plugin = t->gateway->type->plugin;
    struct mk_connection *conn = mk_request_connection(req);
    struct mk__gw_bound *bound = mk_connection_state(conn, plugin);
    if (bound)
        return bound;
    bound = mk_account_alloc(NULL, sizeof(*bound));
    if (!bound)
        return NULL;
    *bound = (struct mk__gw_bound){.loop = t->base.loop};
    mk_list_init(&bound->conns);
    mk_timer_init(&bound->timer, on_timer);
    if (mk_connection_set_state(conn, plugin, bound, free_bound) < 0) {
        mk_account_free(NULL, bound, sizeof(*bound));
        return NULL;
    }
    return bound;
}

/* Finds one with a login before others. */
static struct mk__gw_backend_conn *find_conn(struct mk__gw_bound *bound, const struct mk__gw_backend *b,
                                             uint64_t age_ms)
{
    struct mk__gw_backend_conn *found = NULL;
    MK_LIST_EACH_ITEM(&bound->conns, struct mk__gw_backend_conn, node, c) {
        bool is_fresh = c->has_login || (uint32_t)mk_loop_now_ms(bound->loop) - c->bound_since_ms < age_ms;
        if (c->backend == b && is_fresh && (!found || (c->has_login && !found->has_login)))
            found = c;
    }
    return found;
}

struct mk__gw_backend_conn *mk__gw_bound_take(struct mk_request *req, struct mk__gw_backend *b, uint64_t age_ms)
{
    const struct mk_plugin *plugin = b->thread->gateway->type->plugin;
    struct mk__gw_bound *bound = mk_connection_state(mk_request_connection(req), plugin);
    struct mk__gw_backend_conn *c = bound ? find_conn(bound, b, age_ms) : NULL;
    if (!c)
        return NULL;
    remove_conn(bound, c);
    mk__gw_backend_put(b); /* the caller holds it */
    c->is_reused = true;
    return c;
}

const struct mk_upstream_server *mk__gw_bound_find_login(struct mk_request *req, const struct mk__gw_thread *t,
                                                         const struct mk_gateway_route *route)
{
    struct mk__gw_bound *bound =
        mk_list_empty(&t->bound) ? NULL : mk_connection_state(mk_request_connection(req), t->gateway->type->plugin);
    if (!bound)
        return NULL;
    MK_LIST_EACH_ITEM(&bound->conns, const struct mk__gw_backend_conn, node, c) {
        if (c->has_login && c->backend->last_server && mk_str_starts(c->backend->key, route->key))
            return c->backend->last_server;
    }
    return NULL;
}

/* Tells whether a connection may be kept for the client of a request. */
static bool may_keep(struct mk_request *req, struct mk__gw_backend_conn *c)
{
    const struct mk__gw_backend *b = c->backend;
    char byte;
    return (c->has_login || (b->keep_alive && !mk__gw_thread_is_low_on_memory(b->thread))) &&
           !mk_connection_is_proxy(mk_request_connection(req)) && !b->thread->base.ended && !c->is_ending &&
           mk__gw_backend_read(c, &byte, 1) == -EAGAIN;
}

void mk__gw_bound_keep(struct mk_request *req, struct mk__gw_backend_conn *c)
{
    struct mk__gw_thread *t = c->backend->thread;
    struct mk__gw_bound *bound = may_keep(req, c) ? get_bound(req, t) : NULL;
    if (!bound || bound->n >= CONNS_MAX) {
        mk__gw_backend_close(c);
        return;
    }
    c->fn = on_idle_event;
    c->user = c;
    c->bound = bound;
    c->bound_since_ms = (uint32_t)mk_loop_now_ms(bound->loop);
    mk_list_add(&bound->conns, &c->node);
    mk_list_add(&t->bound, &c->bound_node);
    bound->n++;
    c->backend->n_bound++;
    c->backend->refs++;
    if (!c->has_login)
        arm_timer(bound, mk_loop_now_ms(bound->loop));
}
