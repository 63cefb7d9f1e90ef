// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the client behind trusted proxies: X-Forwarded-For and Forwarded (RFC 7239). Pure.
 *
 *     X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2        the connection comes from 10.0.0.1
 *                      └ unknown ┘  └  client  ┘  └────────── trusted ───────────┘
 *                                  ◄─────── read in this order ───────────┘
 *
 * Each proxy appends the address of its own peer. So addresses are read from the right, beginning with our peer, as
 * long as they are trusted proxies. The first other address is the client, which may have forged what is to the left of
 * it.
 */
#ifndef MK_HTTP_MESSAGE_FORWARDED_H
#define MK_HTTP_MESSAGE_FORWARDED_H

#include <monkey/base/address.h>

enum { MK__FORWARDED_HOPS_MAX = 32 };

struct mk__forwarded {
    const struct mk_networks *trusted;
    struct mk_address client; /* the last address read; to be initialized with the peer, which is trusted */
    bool is_https;            /* the client used TLS to the first trusted proxy */
    bool ended;               /* no further element is read */
    uint8_t hops;             /* elements read so far, at most MK__FORWARDED_HOPS_MAX */
    uint8_t schemes;          /* of X-Forwarded-Proto read so far */
};

/*
 * Each reads one line of its field; call with the last line of a message first. An element without an address
 * (malformed, "unknown", an obfuscated name) ends the search; the address before it counts.
 */
void mk__forwarded_read_x_for(struct mk__forwarded *f, struct mk_str line); /* X-Forwarded-For */
void mk__forwarded_read(struct mk__forwarded *f, struct mk_str line);       /* Forwarded */
/*
 * X-Forwarded-Proto; call after X-Forwarded-For. The scheme that belongs to the address of the client counts, or the
 * first one if there are fewer schemes than addresses. `wss` counts as `https`, `ws` as `http`; other words are no
 * scheme.
 */
void mk__forwarded_read_x_proto(struct mk__forwarded *f, struct mk_str line);

#endif
