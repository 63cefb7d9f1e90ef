// SPDX-License-Identifier: Apache-2.0
/* July of 2012: each handshake has its own callbacks. */
#include "webservice.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("Old services", "July");

void on_read(duda_request_t *dr, ws_request_t *wr)
{
    websocket->write(wr, WS_OPCODE_TEXT, wr->payload, wr->payload_len);
}

void on_shout(duda_request_t *dr, ws_request_t *wr)
{
    unsigned char *at;

    for (at = wr->payload; *at; at++)
        *at = toupper(*at);
    on_read(dr, wr);
}

void on_error(duda_request_t *dr, ws_request_t *wr)
{
    msg->info("error");
}

void on_close(duda_request_t *dr, ws_request_t *wr)
{
    msg->info("close");
}

void cb_echo(duda_request_t *dr)
{
    websocket->handshake(dr, on_read, NULL, on_error, on_close, NULL);
}

void cb_shout(duda_request_t *dr)
{
    websocket->handshake(dr, on_shout, NULL, NULL, NULL, NULL);
}

int duda_main(struct duda_api_objects *api)
{
    duda_interface_t *sockets;
    duda_method_t *method;

    duda_service_init();

    duda_load_package(websocket, "websocket");
    sockets = map->interface_new("sockets");
    method = map->method_new("echo", "cb_echo", 0);
    map->interface_add_method(method, sockets);
    method = map->method_new("shout", "cb_shout", 0);
    map->interface_add_method(method, sockets);
    duda_service_add_interface(sockets);

    duda_service_ready();
}
