// SPDX-License-Identifier: Apache-2.0
/*
 * Who is the client, when trusted proxies say for whom they ask: X-Forwarded-For and Forwarded (RFC 7239). Pure.
 *
 *     X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2        the connection comes from 10.0.0.1
 *                      └ anybody ┘  └  client  ┘  └────────── trusted ───────────┘
 *                                  ◄────────────── the walk ──────────────┘
 *
 * Each proxy appends the address that it was asked from. So the walk begins at the peer and goes on to the left as long
 * as the address is a trusted one; who is not may have written whatever stands to the left of it.
 */
#ifndef MK_HTTP_MESSAGE_FORWARDED_H
#define MK_HTTP_MESSAGE_FORWARDED_H

#include <monkey/address.h>

enum { MK__FORWARDED_HOPS_MAX = 32 };

struct mk__forwarded {
    const struct mk_networks *trusted;
    struct mk_address client; /* as far as the walk has come; begins as the peer, which is trusted */
    bool is_https;            /* the client's way to the first trusted proxy */
    bool ended;
    uint8_t hops; /* elements that were looked at, at most MK__FORWARDED_HOPS_MAX */
};

/*
 * Each takes one line of its field, the last line of a message first. What is not an address (garbage, "unknown", a
 * hidden name) ends the walk at the last one that was.
 */
void mk__forwarded_read_x_for(struct mk__forwarded *f, struct mk_str line); /* X-Forwarded-For */
void mk__forwarded_read(struct mk__forwarded *f, struct mk_str line);       /* Forwarded */
/*
 * X-Forwarded-Proto, of which the last line counts, after X-Forwarded-For: the scheme that belongs to the client's
 * address, or the first one when there are fewer schemes than addresses.
 */
void mk__forwarded_read_x_proto(struct mk__forwarded *f, struct mk_str line);

#endif
