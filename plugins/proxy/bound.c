// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps connections to backends for a connection of a client (bound.h).
 */
#include "bound.h"

#include <monkey/plugin.h>

#include <errno.h>
#include <sys/epoll.h>

enum { CONNS_MAX = 8 }; /* of a client, to all backends */

extern const struct mk_plugin mk_plugin_proxy;

bool bound_is_scheme(struct mk_str value)
{
    static const struct mk_str schemes[] = {MK_STR_INIT("NTLM"), MK_STR_INIT("Negotiate")};
    struct mk_str element;
    while (mk_str_next(&value, &element)) {
        const char *blank = memchr(element.p, ' ', element.len);
        struct mk_str scheme = mk_str(element.p, blank ? (size_t)(blank - element.p) : element.len);
        for (size_t i = 0; i < MK_COUNT_OF(schemes); i++)
            if (mk_str_ieq(scheme, schemes[i]))
                return true;
    }
    return false;
}

/* ── connections ── */

/* Takes a connection out of its set, of whose reference to the backend the caller disposes. */
static void remove_conn(struct bound *bound, struct backend_conn *c)
{
    mk_list_del(&c->node);
    mk_list_del(&c->bound_node);
    c->fn = NULL;
    c->backend->n_bound--;
    bound->n--;
}

static void close_conn(struct bound *bound, struct backend_conn *c)
{
    struct backend *b = c->backend;
    remove_conn(bound, c);
    backend_close(c);
    backend_put(b);
}

static void close_conns(struct bound *bound)
{
    while (!mk_list_empty(&bound->conns))
        close_conn(bound, MK_LIST_FIRST(&bound->conns, struct backend_conn, node));
}

/* The backend has ended the connection, or has sent what it was not asked for; or the thread ends. */
static void on_idle_event(void *user, uint32_t events)
{
    struct backend_conn *c = user;
    char byte;
    if (events & EPOLLHUP || (events & ~(uint32_t)EPOLLOUT && backend_read(c, &byte, 1) != -EAGAIN))
        close_conn(c->bound, c);
}

/* ── sets ── */

/* The connection of the client ends. */
static void free_bound(void *state)
{
    struct bound *bound = state;
    close_conns(bound);
    mk_account_free(NULL, bound, sizeof(*bound));
}

/* Returns the set of the request's connection, which is made if there is none; NULL without memory. */
static struct bound *get_bound(struct mk_request *req)
{
    struct mk_connection *conn = mk_request_connection(req);
    struct bound *bound = mk_connection_state(conn, &mk_plugin_proxy);
    if (bound)
        return bound;
    bound = mk_account_alloc(NULL, sizeof(*bound));
    if (!bound)
        return NULL;
    *bound = (struct bound){0};
    mk_list_init(&bound->conns);
    if (mk_connection_set_state(conn, &mk_plugin_proxy, bound, free_bound) < 0) {
        mk_account_free(NULL, bound, sizeof(*bound));
        return NULL;
    }
    return bound;
}

struct backend_conn *bound_take(struct mk_request *req, struct backend *b)
{
    struct bound *bound = b->n_bound ? mk_connection_state(mk_request_connection(req), &mk_plugin_proxy) : NULL;
    struct mk_list *n, *save;
    if (!bound)
        return NULL;
    MK_LIST_EACH(&bound->conns, n, save) {
        struct backend_conn *c = MK_CONTAINER_OF(n, struct backend_conn, node);
        if (c->backend != b)
            continue;
        remove_conn(bound, c);
        backend_put(b); /* the caller holds it */
        c->is_reused = true;
        return c;
    }
    return NULL;
}

void bound_keep(struct mk_request *req, struct backend_conn *c)
{
    struct thread *t = c->backend->thread;
    char byte;
    bool is_fine = !mk_connection_is_proxy(mk_request_connection(req)) && !t->base.ended && !c->is_ending &&
                   backend_read(c, &byte, 1) == -EAGAIN;
    struct bound *bound = is_fine ? get_bound(req) : NULL;
    if (!bound || bound->n >= CONNS_MAX) {
        backend_close(c);
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
