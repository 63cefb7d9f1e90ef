// SPDX-License-Identifier: Apache-2.0
/*
 * The settings of connections to a server: struct mk_transport_client. Opened and closed when configurations are loaded
 * and freed; used by all workers.
 *
 *     mk_transport_client ─► watched ─► SSL_CTX ─► client_sessions      made again when the files change
 *                                          ▲
 *                                         SSL of each connection, which outlives the client
 */
#ifndef TLS_CLIENT_H
#define TLS_CLIENT_H

#include "client_sessions.h"
#include "tls_conn.h"

#include <monkey/base/list.h>

struct mk_transport_client {
    struct mk_transport_client_conf conf; /* its strings are in `arena` */
    struct mk_arena arena;
    struct mk_str protocols;    /* as ALPN sends them (RFC 7301 section 3.1) */
    struct mk_watched *watched; /* the SSL_CTX that its files make; NULL: it has no files */
    SSL_CTX *ctx;               /* the SSL_CTX without files */
    size_t fault;               /* the offset of the field that a load has found wrong */
    struct mk_list node;        /* in the list of all clients */
};

/* As the functions of mk_transport. */
int client_open(const struct mk_transport_client_conf *conf, struct mk_transport_client **ret, size_t *ret_field,
                struct mk_buf *error);
void client_close(struct mk_transport_client *client);

/* Returns true for an IPv4 or IPv6 address without brackets, which is verified as such and never sent as SNI. */
bool client_is_address(const char *name);

/* Begins to watch the files of all clients. In a worker's thread: a process may go to the background before. */
void client_watch_all(void);

/* Returns the current SSL_CTX, to make an SSL of it. Valid until `ref` is released. Any thread. */
SSL_CTX *client_get_context(const struct mk_transport_client *client, struct mk_watched_ref *ref);
/* Sets name and session of a new connection. Returns 0 or -ENOMEM. */
int client_prepare(const struct mk_transport_client *client, struct tls_conn *conn);

#endif
