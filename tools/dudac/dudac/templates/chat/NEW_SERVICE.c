// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: a chat. `dudac run --watch` serves its page, html/index.html, at http://localhost:2001/NEW_SERVICE/.
 */
#include "webservice.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("NEW_SERVICE", "WebSocket chat");

void cb_on_message(duda_request_t *dr, ws_request_t *wr)
{
    websocket->broadcast(wr, wr->payload, wr->payload_len, WS_OPCODE_TEXT);
}

void cb_handshake(duda_request_t *dr)
{
    websocket->handshake(dr);
}

int duda_main()
{
    duda_load_package(websocket, "websocket");
    websocket->set_callback(WS_ON_MESSAGE, cb_on_message);
    map->static_add("/handshake/", "cb_handshake");
    websocket->broadcaster();

    return 0;
}
