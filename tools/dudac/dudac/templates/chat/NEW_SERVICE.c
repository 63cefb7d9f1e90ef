// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: a chat with rooms. `dudac run --watch` serves its page, html/index.html, at
 * http://localhost:2001/NEW_SERVICE/; what is behind # in the URL of the page is the room.
 *
 *     GET  /NEW_SERVICE/rooms/tea  a WebSocket: its messages go to the others in the room, whatever their workers
 *
 * A room is a channel of the package websocket, and exists while it has a WebSocket.
 */
#include <duda/duda.h>
#include <duda/packages/websocket/websocket.h>

#include <string.h>

DUDA_REGISTER("NEW_SERVICE", "NEW_SERVICE");

enum { MESSAGE_BYTES_MAX = 8000 };

static ws_endpoint_t *endpoint;

static void pass_on(duda_request_t *dr, ws_request_t *wr)
{
    if (wr->opcode == WS_OPCODE_TEXT)
        websocket->publish_to(param->get(dr, "room"), WS_OPCODE_TEXT, wr->payload, wr->payload_len, wr);
    else
        websocket->close(wr, WS_CLOSE_UNSUPPORTED, "messages are text");
}

static void enter_room(duda_request_t *dr)
{
    const char *room = param->get(dr, "room");
    if (strlen(room) > WS_NAME_BYTES) {
        response->error(dr, 404);
        return;
    }
    ws_request_t *wr = websocket->accept(dr, endpoint, WS_CHANNEL_ALL, NULL);
    if (wr && websocket->join(wr, room) != WS_OK)
        websocket->close(wr, WS_CLOSE_TRY_LATER, "no memory");
}

int duda_main(void)
{
    duda_load_package(websocket, "websocket");
    endpoint =
        websocket->endpoint(&(struct ws_settings){.on_message = pass_on, .message_bytes_max = MESSAGE_BYTES_MAX});
    return endpoint && router->get("/rooms/:room", enter_room) ? 0 : -1;
}
