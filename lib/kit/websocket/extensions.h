// SPDX-License-Identifier: Apache-2.0
/*
 * Sec-WebSocket-Extensions (RFC 6455 section 9.1), and permessage-deflate in it (RFC 7692 section 7.1): the server
 * chooses one of the client's offers, the client checks the response. Pure.
 */
#ifndef MK_WEBSOCKET_EXTENSIONS_H
#define MK_WEBSOCKET_EXTENSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <monkey/base/buf.h>
#include <monkey/base/str.h>

enum {
    MK__WS_OFFERS_MAX = 8, /* of a line; those after them are not looked at */
    MK__WS_BITS_MIN = 9,   /* of a window to compress with: zlib cannot use the 8 of the RFC */
    MK__WS_BITS_MAX = 15,
};

/*
 * permessage-deflate, as the configuration wants it or as it was negotiated. A context that is not kept makes each
 * message its own stream, so that its memory can be freed between two messages.
 */
struct mk__ws_deflate_params {
    bool on;
    bool server_no_context; /* the server's messages are independent of each other */
    bool client_no_context; /* those of the client are */
    bool write_server_bits; /* negotiated: the response must name them, also 15 */
    uint8_t server_bits,
        client_bits; /* at most so large is the window of the server's, the client's messages: 2^N bytes */
};

/*
 * Server: chooses the first acceptable offer in a line of Sec-WebSocket-Extensions. Offers are declined if they have
 * unknown parameters, the same one twice or bad values; if they demand a window of 8 bits; and, where `ours` limits the
 * client's window below 15 bits, if the client cannot be told so.
 * Call it for each line; `*params`, zeros before the first, is not changed if an offer was chosen already.
 * Returns 0 (`params->on` tells whether there is one) or -EINVAL: malformed, the request must be rejected.
 */
int mk__ws_deflate_choose(struct mk_str line, const struct mk__ws_deflate_params *ours,
                          struct mk__ws_deflate_params *params);

/* Server: appends the value of Sec-WebSocket-Extensions for what was chosen. Errors are sticky. */
void mk__ws_deflate_write_response(struct mk_buf *out, const struct mk__ws_deflate_params *params);

/* Client: appends the value of Sec-WebSocket-Extensions that offers what `ours` says. Errors are sticky. */
void mk__ws_deflate_write_offer(struct mk_buf *out, const struct mk__ws_deflate_params *ours);

/*
 * Client: checks a line of Sec-WebSocket-Extensions of the response against the offer.
 * Call it for each line; `*params` is zeros before the first.
 * Returns 0 or -EINVAL with a sentence: the connection must be failed.
 */
int mk__ws_deflate_check(struct mk_str line, const struct mk__ws_deflate_params *ours,
                         struct mk__ws_deflate_params *params, const char **ret_reason);

#endif
