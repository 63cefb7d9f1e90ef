// SPDX-License-Identifier: Apache-2.0
/*
 * The PROXY protocol header, versions 1 and 2, in which a proxy sends the address of its client at the beginning of a
 * connection. Pure: bytes in, addresses out.
 *
 *     PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 CRLF
 *     └ signature (12) │ version, command │ family │ length (2) ┘ addresses, further values (length bytes)
 */
#ifndef MK_HTTP_MESSAGE_PROXY_PROTOCOL_H
#define MK_HTTP_MESSAGE_PROXY_PROTOCOL_H

#include <monkey/base/address.h>

enum { MK__PROXY_PROTOCOL_V1_MAX = 107, MK__PROXY_PROTOCOL_MAX = 4096 };

struct mk__proxy_protocol {
    struct mk_address source; /* AF_UNSPEC: a connection of the proxy itself, or unknown */
    uint16_t bytes;           /* of the header; the rest is from the client */
};

/*
 * Parses a header at the beginning of `in`, the first bytes of a connection. Returns 0, MK_AGAIN (call again with more
 * bytes; never asked for more than MK__PROXY_PROTOCOL_MAX in all) or -EPROTO (no header; reported as early as
 * possible).
 */
int mk__proxy_protocol_read(struct mk_str in, struct mk__proxy_protocol *ret);

#endif
