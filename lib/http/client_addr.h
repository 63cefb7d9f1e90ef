// SPDX-License-Identifier: Apache-2.0
/*
 * Who is at the other end of a connection, and whom a request comes from. Small builds do not tell.
 *
 *     client ─► (proxies) ─► peer ═══ the connection ═══► us
 *                 └ X-Forwarded-For, Forwarded    └ PROXY header, before the first request
 */
#ifndef MK_HTTP_CLIENT_ADDR_H
#define MK_HTTP_CLIENT_ADDR_H

#include <monkey/address.h>
#include <monkey/transport.h>

struct mk__context;

/* What a connection knows of its other end, from mk__client_addr_init() on. */
struct mk__peer {
    struct mk_address address;
    bool from_proxy_header : 1;    /* `address` is of a PROXY header: it is whom the peer speaks for */
    bool expects_proxy_header : 1; /* a PROXY header must come before the first request */
    bool refused : 1;              /* nobody is told that it ends */
};

/* A connection as plugins see it, during one call. */
struct mk_connection {
    const struct mk_io *io;
    struct mk__peer *peer;
    struct mk__context *http;
    uint64_t *id; /* 0: nobody has asked for it yet */
};

/* Whom to believe. */
struct mk__trusted_proxies {
    struct mk_networks networks;
    bool use_forwarded; /* Forwarded rather than X-Forwarded-For */
};

/*
 * Takes a PROXY header, the first thing that an awaited proxy sends, off the input. 0; MK_AGAIN: more of it is needed;
 * -EPROTO: there is none.
 */
int mk__client_addr_read_proxy_header(struct mk__peer *peer, struct mk__context *http, struct mk_str *in);

/* The same, of a connection whose transport has read nothing yet. 0, -EAGAIN, another -errno. */
int mk__client_addr_recv_proxy_header(struct mk__peer *peer, struct mk__context *http, int fd);

/* Asks the system who it is, while the client is there. False: it has gone, and nobody would ever know. */
bool mk__client_addr_init(struct mk__peer *peer, const struct mk_io *io);

/* The address that the connection really comes from. */
struct mk_address mk__client_addr_get_peer(const struct mk__peer *peer, const struct mk_io *io);

#endif
