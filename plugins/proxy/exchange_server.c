// SPDX-License-Identifier: Apache-2.0
/*
 * Which server an exchange goes to (exchange_state.h): that of `To`, or one of a group.
 */
#include "exchange_state.h"
#include "proxy_header.h"

#include <errno.h>

/* Connections that begin with the addresses of a client serve no other one. */
static struct backend *hold_backend(struct exchange *x, struct mk_upstream_server *server)
{
    const struct route *route = x->route;
    struct mk_request *req = x->req;
    char storage[PROXY_HEADER_BYTES_MAX];
    struct mk_buf header;
    mk_buf_init_fixed(&header, storage, sizeof(storage));
    if (route->conf->send_proxy)
        proxy_header_write(&header, route->conf->send_proxy, mk_request_client(req),
                           mk_connection_local(mk_request_connection(req)));
    return backend_hold(x->thread, route, server, mk_buf_str(&header));
}

int exchange_choose_server(struct exchange *x)
{
    const struct route *route = x->route;
    struct mk_upstream_server *server = NULL;
    if (route->group)
        server = route->upstreams->choose(route->group, x->req, &x->tries);
    if (route->group && !server)
        return -ENXIO;
    struct backend *backend = hold_backend(x, server);
    if (!backend)
        return -ENOMEM;
    if (x->conn)
        backend_close(x->conn);
    if (x->backend)
        backend_release(x->backend);
    x->conn = NULL;
    x->backend = backend;
    return 0;
}

void exchange_report_server(struct exchange *x, enum mk_upstream_result result)
{
    if (x->backend && x->backend->server)
        x->route->upstreams->report(x->route->group, x->backend->server, mk_request_worker(x->req), result);
}
