// SPDX-License-Identifier: Apache-2.0
/*
 * Which protocol may replace HTTP on a connection to a backend: one that an HTTP/1.1 request asks for (RFC 9110 section
 * 7.8), or an extended CONNECT over HTTP/2 (RFC 8441), which becomes such a request.
 */
#ifndef PROXY_UPGRADE_H
#define PROXY_UPGRADE_H

#include "conf.h"

#include <monkey/kit/websocket.h>
#include <monkey/request.h>

/* What a request asks for. */
struct upgrade {
    struct mk_str token; /* of the section; empty: no upgrade */
    bool is_extended_connect;
    /* The Sec-WebSocket-Key of the proxy, for an HTTP/2 client, which sends none; empty: none. */
    char key[MK_WS_KEY_BYTES + 1];
};

/*
 * Finds what is passed on of a request. Returns 0, 501 (an extended CONNECT for a protocol that the section does not
 * allow) or 503 (no key could be made).
 */
int upgrade_init(struct upgrade *u, struct mk_request *req, const struct mk_conf_list *allowed);

/* Returns the first protocol of a header Upgrade that is allowed, as the section has it; or MK_STR_NONE. Pure. */
struct mk_str upgrade_choose(const struct mk_conf_list *allowed, struct mk_str offered);
/* Tells whether a header of the client is replaced by one of upgrade_write(). Pure. */
bool upgrade_replaces(const struct upgrade *u, struct mk_str name);
/* Writes the fields that ask the backend for the upgrade. Pure. */
void upgrade_write(const struct upgrade *u, struct mk_buf *out);
/* Tells whether a response of 101 with these headers Upgrade and Sec-WebSocket-Accept is what was asked for. Pure. */
bool upgrade_is_agreed(const struct upgrade *u, struct mk_str token, struct mk_str accept);

#endif
