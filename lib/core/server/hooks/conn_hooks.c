// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the hooks for connections (server/hooks/conn_hooks.h), always those of the generation that the worker has now:
 * a connection holds no generation.
 */
#include "server/hooks/conn_hooks.h"

#include "base/log.h"
#include "http/conn.h"
#include "net/addr.h"
#include "server/plugins/plugin_states.h"
#include "server/worker/thread.h"

#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>

void mk__conn_hooks_prepare(struct mk_generation *g)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++)
        g->http.notify_accept |= g->settings->listen.items[i].mode.proxy;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        g->http.notify_accept |= MK_PLUGIN_HOOK(g->plugins[i], connections, on_accept) != NULL;
        g->http.notify_client |= MK_PLUGIN_HOOK(g->plugins[i], connections, on_client) != NULL;
        g->http.notify_close |= MK_PLUGIN_HOOK(g->plugins[i], connections, on_close) != NULL;
    }
}

static void warn_untrusted(const struct mk_connection *conn, const struct mk_address *peer)
{
    const struct mk__conn *c = mk__conn_of(conn);
    if (mk__log_is_due(&c->http->warned_ms, mk_loop_now_ms(c->http->loop)))
        mk_io_log(&c->sock.io, peer, MK_LOG_WARN,
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
        if (MK_PLUGIN_HOOK(g->plugins[i], connections, on_close))
            g->plugins[i]->connections->on_close(conn);
}

int mk__conn_hooks_on_accept(struct mk_connection *conn, void *ctx)
{
    const struct mk__thread *t = ctx;
    const struct mk_generation *g = t->worker->generation;
    const struct mk__listener *listener = mk__conn_of(conn)->sock.io.listener;
    struct mk__listen_mode mode;
    assert(listener);
    conn->peer.expects_proxy_header = mk__generation_listen_mode(g, listener, &mode) == 0 && mode.proxy;
    if (conn->peer.expects_proxy_header && !is_trusted_proxy(conn, g))
        return -EACCES;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        int r = MK_PLUGIN_HOOK(g->plugins[i], connections, on_accept) ? g->plugins[i]->connections->on_accept(conn) : 0;
        if (r < 0) {
            run_close_hooks(conn, g, i);
            mk__plugin_states_release(conn);
            return r;
        }
    }
    return 0;
}

int mk__conn_hooks_on_client(struct mk_connection *conn, void *ctx)
{
    const struct mk__thread *t = ctx;
    const struct mk_generation *g = t->worker->generation;
    int r = 0;
    for (unsigned i = 0; i < g->n_plugins && r >= 0; i++)
        r = MK_PLUGIN_HOOK(g->plugins[i], connections, on_client) ? g->plugins[i]->connections->on_client(conn) : 0;
    return r;
}

void mk__conn_hooks_on_close(struct mk_connection *conn, void *ctx)
{
    const struct mk__thread *t = ctx;
    run_close_hooks(conn, t->worker->generation, t->worker->generation->n_plugins);
    mk__plugin_states_release(conn);
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

bool mk_generation_trusts_proxies(const struct mk_generation *g)
{
    return g->http.trusted_proxies.networks.n > 0;
}

struct mk_address mk_connection_peer(struct mk_connection *conn)
{
    return mk__client_addr_get_peer(&conn->peer, &mk__conn_of(conn)->sock.io);
}

struct mk_address mk_connection_client(const struct mk_connection *conn)
{
    return conn->peer.address;
}

struct mk_address mk_connection_local(const struct mk_connection *conn)
{
    struct mk__addr addr = {.len = sizeof(addr.un)};
    struct mk_address found = {0};
    if (getsockname(mk__conn_of(conn)->sock.io.fd, &addr.sa, &addr.len) == 0)
        mk__addr_to_address(&addr, &found);
    return found;
}

bool mk_connection_is_proxy(const struct mk_connection *conn)
{
    const struct mk__trusted_proxies *trust = &mk_connection_worker(conn)->generation->http.trusted_proxies;
    return mk__client_addr_is_proxy(trust, &conn->peer, &conn->peer.address);
}

struct mk_worker *mk_connection_worker(const struct mk_connection *conn)
{
    const struct mk__thread *t = mk__conn_of(conn)->http->app_ctx;
    return t->worker;
}

struct mk_str mk_connection_listener(const struct mk_connection *conn)
{
    return mk__generation_listener_text(mk_connection_worker(conn)->generation, mk__conn_of(conn)->sock.io.listener);
}

uint64_t mk_connection_id(struct mk_connection *conn)
{
    static _Atomic uint64_t last;
    if (!conn->id)
        conn->id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return conn->id;
}

int mk_connection_set_state(struct mk_connection *conn, const struct mk_plugin *plugin, void *state,
                            mk_connection_release_fn release)
{
    const struct mk__thread *t = mk__conn_of(conn)->http->app_ctx;
    return mk__worker_reload_has_plugin(t, plugin, NULL) ? mk__plugin_states_set(conn, plugin, state, release)
                                                         : -ENOENT;
}

struct mk_connection *mk_request_connection(const struct mk_request *req)
{
    return req->ops->conn(req);
}
