// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps connections to backends for a connection of a client (bound.h).
 */
#include "bound.h"

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

static void close_conns(struct mk__gw_bound *bound)
{
    while (!mk_list_empty(&bound->conns))
        close_conn(bound, MK_LIST_FIRST(&bound->conns, struct mk__gw_backend_conn, node));
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

/* The connection of the client ends. */
static void free_bound(void *state)
{
    struct mk__gw_bound *bound = state;
    close_conns(bound);
    mk_account_free(NULL, bound, sizeof(*bound));
}

/* Returns the set of the request's connection, which is made if there is none; NULL without memory. */
static struct mk__gw_bound *get_bound(struct mk_request *req, const struct mk_plugin *plugin)
{
    struct mk_connection *conn = mk_request_connection(req);
    struct mk__gw_bound *bound = mk_connection_state(conn, plugin);
    if (bound)
        return bound;
    bound = mk_account_alloc(NULL, sizeof(*bound));
    if (!bound)
        return NULL;
    *bound = (struct mk__gw_bound){0};
    mk_list_init(&bound->conns);
    if (mk_connection_set_state(conn, plugin, bound, free_bound) < 0) {
        mk_account_free(NULL, bound, sizeof(*bound));
        return NULL;
    }
    return bound;
}

struct mk__gw_backend_conn *mk__gw_bound_take(struct mk_request *req, struct mk__gw_backend *b)
{
    const struct mk_plugin *plugin = b->thread->gateway->type->plugin;
    struct mk__gw_bound *bound = b->n_bound ? mk_connection_state(mk_request_connection(req), plugin) : NULL;
    struct mk_list *n, *save;
    if (!bound)
        return NULL;
    MK_LIST_EACH(&bound->conns, n, save) {
        struct mk__gw_backend_conn *c = MK_CONTAINER_OF(n, struct mk__gw_backend_conn, node);
        if (c->backend != b)
            continue;
        remove_conn(bound, c);
        mk__gw_backend_put(b); /* the caller holds it */
        c->is_reused = true;
        return c;
    }
    return NULL;
}

void mk__gw_bound_keep(struct mk_request *req, struct mk__gw_backend_conn *c)
{
    struct mk__gw_thread *t = c->backend->thread;
    char byte;
    bool is_fine = !mk_connection_is_proxy(mk_request_connection(req)) && !t->base.ended && !c->is_ending &&
                   mk__gw_backend_read(c, &byte, 1) == -EAGAIN;
    struct mk__gw_bound *bound = is_fine ? get_bound(req, t->gateway->type->plugin) : NULL;
    if (!bound || bound->n >= CONNS_MAX) {
        mk__gw_backend_close(c);
        return;
    }
    c->fn = on_idle_event;
    c->user = c;
    c->bound = bound;
    mk_list_add(&bound->conns, &c->node);
    mk_list_add(&t->bound, &c->bound_node);
    bound->n++;
    c->backend->n_bound++;
    c->backend->refs++;
}
