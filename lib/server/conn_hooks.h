// SPDX-License-Identifier: Apache-2.0
/*
 * The beginning and the end of a connection, as plugins see them, and where a PROXY header is due. Small builds have
 * neither.
 */
#ifndef MK_SERVER_CONN_HOOKS_H
#define MK_SERVER_CONN_HOOKS_H

#include "server/generation.h"

/* Does the generation have to do with each connection that comes, or goes? */
void mk__conn_hooks_prepare(struct mk_generation *g);

/* What HTTP calls (request_hooks.c); the context is the worker. */
int mk__conn_hooks_on_accept(struct mk_connection *conn, void *ctx);
void mk__conn_hooks_on_close(struct mk_connection *conn, void *ctx);
const struct mk__trusted_proxies *mk__conn_hooks_trust(const struct mk_request *req);

#endif
