// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the plugins' hooks for connections, and tells where a PROXY header is expected.
 */
#ifndef MK_SERVER_CONN_HOOKS_H
#define MK_SERVER_CONN_HOOKS_H

#include "server/generation/generation.h"

/* Sets notify_accept, notify_client and notify_close of the generation's HTTP settings. */
void mk__conn_hooks_prepare(struct mk_generation *g);

/*
 * The callbacks of HTTP (see http/context.h); the context is the struct mk__thread. on_accept and on_client return 0,
 * or -errno: the connection is to be closed (-EACCES of on_accept: not one of TrustedProxies).
 */
int mk__conn_hooks_on_accept(struct mk_connection *conn, void *ctx);
int mk__conn_hooks_on_client(struct mk_connection *conn, void *ctx);
void mk__conn_hooks_on_close(struct mk_connection *conn, void *ctx);
const struct mk__trusted_proxies *mk__conn_hooks_trust(const struct mk_request *req);

#endif
