// SPDX-License-Identifier: Apache-2.0
/*
 * The header of the PROXY protocol, versions 1 and 2, with which a proxy tells at the beginning of a connection whom
 * it speaks for. Pure: bytes in, facts out.
 *
 *     PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 CRLF
 *     └ signature (12) │ version, command │ family │ length (2) ┘ addresses, further values (length bytes)
 */
#ifndef MK_HTTP_MESSAGE_PROXY_PROTOCOL_H
#define MK_HTTP_MESSAGE_PROXY_PROTOCOL_H

#include <monkey/address.h>

enum { MK__PROXY_PROTOCOL_V1_MAX = 107, MK__PROXY_PROTOCOL_MAX = 4096 };

struct mk__proxy_protocol {
    struct mk_address source; /* AF_UNSPEC: the proxy speaks for itself, or does not know */
    uint16_t bytes;           /* of the header; what follows is the client's */
};

/*
 * Reads from the first byte of a connection on; called again, with all that has come, when more has. 0; MK_AGAIN:
 * more bytes are needed, and they are fewer than MK__PROXY_PROTOCOL_MAX in all; -EPROTO: that is no such header, said
 * as soon as it can be told.
 */
int mk__proxy_protocol_read(struct mk_str in, struct mk__proxy_protocol *ret);

#endif
