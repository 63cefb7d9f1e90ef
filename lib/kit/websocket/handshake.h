// SPDX-License-Identifier: Apache-2.0
/*
 * The opening handshake (RFC 6455 section 4): key, version, subprotocol, origin; extensions.h has the extensions.
 * Values are those of field lines, without the spaces around them; a list may have several lines. Pure.
 */
#ifndef MK_WEBSOCKET_HANDSHAKE_H
#define MK_WEBSOCKET_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <monkey/kit/websocket.h>

#include "extensions.h"

/* Returns true for 16 bytes in base64. */
bool mk__ws_key_is_valid(struct mk_str key);

/* Returns true for the version of RFC 6455. With another one the response is 426 and names "13". */
bool mk__ws_version_is_valid(struct mk_str version);

/* Returns a subprotocol where a comma-separated list has it; or MK_STR_NONE. Their case matters. */
struct mk_str mk__ws_find_protocol(struct mk_str list, struct mk_str name);

/*
 * Chooses the first of the subprotocols in a line of Sec-WebSocket-Protocol that is in `supported`, a comma-separated
 * list, too; their case matters. A client chooses with it, too: `offered` is then the name in the response.
 * Returns the name in `offered`, or MK_STR_NONE.
 */
struct mk_str mk__ws_choose_protocol(struct mk_str offered, struct mk_str supported);

/*
 * Returns true if the page of this Origin may connect to a server of this authority (Host or :authority):
 *
 *     no Origin (empty)    yes: the client is no browser
 *     the same origin      yes: same host and port, https if `tls`, else http
 *     in `allowed`         yes: a comma-separated list of origins; "*" is every origin
 *
 * The case of schemes and hosts does not matter, and default ports are equal to none. "null", which sandboxed pages
 * send, is equal to "null" in `allowed` only. An Origin that is malformed is allowed by "*" only.
 */
bool mk__ws_origin_allowed(struct mk_str origin, struct mk_str authority, bool tls, struct mk_str allowed);

#endif
