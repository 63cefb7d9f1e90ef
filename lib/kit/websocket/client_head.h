// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of the handshake (RFC 6455 section 4.1): the URL, the request, and the check of the response. Pure.
 */
#ifndef MK_WEBSOCKET_CLIENT_HEAD_H
#define MK_WEBSOCKET_CLIENT_HEAD_H

#include "handshake.h"

#include <monkey/kit/websocket.h>

enum { MK__WS_CLIENT_HEAD_MAX = 8192 }; /* of a response */

struct mk__ws_url {
    struct mk_str authority; /* host, and port if there is one */
    struct mk_str target;    /* path and query; "/" if empty */
};

/* Parses ws://host[:port][/path][?query]. Returns 0, or -EINVAL with a phrase in `*ret_error`. */
int mk__ws_url_parse(struct mk_str url, struct mk__ws_url *ret, const char **ret_error);

/* Makes the request and its key. Returns 0 or -ENOMEM. */
int mk__ws_client_request(struct mk_arena *arena, const struct mk__ws_url *url, const struct mk_ws_settings *settings,
                          char key[MK_WS_KEY_BYTES + 1], struct mk_str *ret_request);

/*
 * Checks the response head at the beginning of `in`, for the request with `key`. Returns 0 and its size, MK_AGAIN (it
 * is incomplete), or -EPROTO with a phrase in `*ret_reason`.
 */
int mk__ws_client_check(struct mk_str in, const char *key, const struct mk_ws_settings *settings,
                        struct mk_ws_negotiated *ret, size_t *ret_size, const char **ret_reason);

#endif
