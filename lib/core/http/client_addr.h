// SPDX-License-Identifier: Apache-2.0
/*
 * The address of the peer of a connection, and of the client of a request.
 *
 *     client ─► (proxies) ─► peer ═══ the connection ═══► us
 *                 └ X-Forwarded-For, Forwarded    └ PROXY header, before the first request
 */
#ifndef MK_HTTP_CLIENT_ADDR_H
#define MK_HTTP_CLIENT_ADDR_H

#include <monkey/base/address.h>
#include <monkey/transport.h>

struct mk__context;

/* The peer of a connection. */
struct mk__peer {
    struct mk_address address;
    bool from_proxy_header : 1;    /* `address` comes from a PROXY header, not from the socket */
    bool expects_proxy_header : 1; /* a PROXY header must come before the first request */
    bool refused : 1;              /* by an accept hook: on_close() is not called */
};

/* A connection as plugins see it: the part of struct mk__conn that is for them. */
struct mk_connection {
    struct mk__peer peer;
    uint64_t id;                     /* of mk_connection_id(); 0: not assigned yet */
    struct mk__plugin_state *states; /* what plugins keep for it (server/plugins/plugin_states.h); NULL: nothing */
};

/*
 * Reads a PROXY header at the beginning of `in` and removes it from there; then tells the application that the client
 * is known. Returns 0, MK_AGAIN (more input is needed), -EPROTO (there is none; it is logged) or -EACCES (refused).
 */
int mk__client_addr_read_proxy_header(struct mk_connection *conn, struct mk__context *http, const struct mk_io *io,
                                      struct mk_str *in);

/* Likewise from a socket, before the transport reads from it. Returns 0, -EAGAIN or another -errno. */
int mk__client_addr_recv_proxy_header(struct mk_connection *conn, struct mk__context *http, const struct mk_io *io);

/* Tells the application that the client is known. Returns 0, or -EACCES: the client was refused. */
int mk__client_addr_notify(struct mk_connection *conn, struct mk__context *http);

struct mk__trusted_proxies;

/*
 * Returns true if an address is that of a trusted proxy, whose requests name their clients; `peer` is that of the
 * connection.
 */
bool mk__client_addr_is_proxy(const struct mk__trusted_proxies *trust, const struct mk__peer *peer,
                              const struct mk_address *address);

/* Asks the kernel for the address of the peer; it is unknown if the client has disconnected. */
struct mk_address mk__client_addr_ask(const struct mk_io *io);

/* Returns the address of the socket, whatever a PROXY header said. */
struct mk_address mk__client_addr_get_peer(const struct mk__peer *peer, const struct mk_io *io);

#endif
