// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the hooks for connections (server/conn_hooks.h), always those of the generation that the worker has now: a
 * connection holds no generation.
 */
#include "server/conn_hooks.h"

#include "base/log.h"
#include "http/client_addr.h"
#include "http/request.h"
#include "server/thread.h"

#include <assert.h>
#include <errno.h>

void mk__conn_hooks_prepare(struct mk_generation *g)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++)
        g->http.notify_accept |= g->settings->listen.items[i].mode.proxy;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        g->http.notify_accept |= g->plugins[i]->on_accept != NULL;
        g->http.notify_close |= g->plugins[i]->on_close != NULL;
    }
}

static void warn_untrusted(const struct mk_connection *conn, const struct mk_address *peer)
{
    if (mk__log_is_due(&conn->http->warned_ms, mk_loop_now_ms(conn->http->loop)))
        mk_io_log(conn->io, peer, MK_LOG_WARN,
                  "closing a connection at a Listen line with proxy: the address is not in TrustedProxies");
}

static bool is_trusted_proxy(struct mk_connection *conn, const struct mk_generation *g)
{
    struct mk_address peer = mk_connection_peer(conn);
    if (mk_generation_trusts(g, &peer))
        return true;
    warn_untrusted(conn, &peer);
    return false;
}

/* Calls on_close of the first `n` plugins. */
static void run_close_hooks(struct mk_connection *conn, const struct mk_generation *g, unsigned n)
{
    assert(n <= g->n_plugins);
    for (unsigned i = 0; i < n; i++)
        if (g->plugins[i]->on_close)
            g->plugins[i]->on_close(conn);
}

int mk__conn_hooks_on_accept(struct mk_connection *conn, void *ctx)
{
    const struct mk__thread *t = ctx;
    const struct mk_generation *g = t->worker->generation;
    struct mk__listen_mode mode;
    assert(conn->io->listener);
    conn->peer->expects_proxy_header = mk__generation_listen_mode(g, conn->io->listener, &mode) == 0 && mode.proxy;
    if (conn->peer->expects_proxy_header && !is_trusted_proxy(conn, g))
        return -EACCES;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        int r = g->plugins[i]->on_accept ? g->plugins[i]->on_accept(conn) : 0;
        if (r < 0) {
            run_close_hooks(conn, g, i);
            return r;
        }
    }
    return 0;
}

void mk__conn_hooks_on_close(struct mk_connection *conn, void *ctx)
{
    const struct mk__thread *t = ctx;
    run_close_hooks(conn, t->worker->generation, t->worker->generation->n_plugins);
}

const struct mk__trusted_proxies *mk__conn_hooks_trust(const struct mk_request *req)
{
    const struct mk_worker *worker = req->worker;
    return &worker->generation->http.trusted_proxies;
}

/* ── for plugins ── */

bool mk_generation_trusts(const struct mk_generation *g, const struct mk_address *address)
{
    return mk_networks_contain(&g->http.trusted_proxies.networks, address);
}

struct mk_address mk_connection_peer(struct mk_connection *conn)
{
    return mk__client_addr_get_peer(conn->peer, conn->io);
}

struct mk_worker *mk_connection_worker(const struct mk_connection *conn)
{
    const struct mk__thread *t = conn->http->app_ctx;
    return t->worker;
}

struct mk_str mk_connection_listener(const struct mk_connection *conn)
{
    return mk__generation_listener_text(mk_connection_worker(conn)->generation, conn->io->listener);
}

uint64_t mk_connection_id(struct mk_connection *conn)
{
    static _Atomic uint64_t last;
    if (!*conn->id)
        *conn->id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return *conn->id;
}
