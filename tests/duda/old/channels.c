// SPDX-License-Identifier: Apache-2.0
/* Levels 1 and 2: WebSockets in channels, and all callbacks. */
#include "webservice.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("Old services", "Channels");

void say(ws_request_t *wr, const char *what)
{
    char text[100];
    int n = snprintf(text, sizeof(text), "%s %d", what, wr->channel);

    websocket->broadcast_all((unsigned char *)text, n, WS_OPCODE_TEXT, -1);
}

void on_open(duda_request_t *dr, ws_request_t *wr)
{
    if (wr->dr != dr || wr->socket != dr->socket) {
        abort();
    }
    msg->info("open %d", wr->channel);
}

void on_message(duda_request_t *dr, ws_request_t *wr)
{
    unsigned char code[] = "\x0f\xa0"
                           "bye";

    if (strlen((char *)wr->payload) != wr->payload_len) {
        msg->err("the payload has no end");
    }
    if (strcmp((char *)wr->payload, "close") == 0) {
        websocket->write(wr, WS_OPCODE_CLOSE, code, 5);
    } else if (strcmp((char *)wr->payload, "all") == 0) {
        say(wr, "all");
    } else {
        websocket->write(wr, wr->opcode, wr->payload, wr->payload_len);
        websocket->broadcast(wr, wr->payload, wr->payload_len, wr->opcode, wr->channel);
    }
}

void on_error(duda_request_t *dr, ws_request_t *wr)
{
    msg->info("error %d", wr->channel);
}

void on_close(duda_request_t *dr, ws_request_t *wr)
{
    msg->info("close %d", wr->channel);
}

void on_timeout(duda_request_t *dr, ws_request_t *wr)
{
    msg->info("timeout %d", wr->channel);
}

/* A thread that the framework does not know. */
void *send_once(void *unused)
{
    int result = websocket->broadcast_all((unsigned char *)"from a thread", 13, WS_OPCODE_TEXT, 2);

    msg->info("sent %d", result);
    return unused;
}

void cb_thread(duda_request_t *dr)
{
    pthread_t thread;

    pthread_create(&thread, NULL, send_once, NULL);
    pthread_join(thread, NULL);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_first(duda_request_t *dr)
{
    websocket->handshake(dr, 1);
}

void cb_second(duda_request_t *dr)
{
    websocket->handshake(dr, 2);
}

void cb_none(duda_request_t *dr)
{
    websocket->handshake(dr, -1);
}

int duda_main()
{
    duda_load_package(websocket, "websocket");
    websocket->set_callback(WS_ON_OPEN, on_open);
    websocket->set_callback(WS_ON_MESSAGE, on_message);
    websocket->set_callback(WS_ON_ERROR, on_error);
    websocket->set_callback(WS_ON_CLOSE, on_close);
    websocket->set_callback(WS_ON_TIMEOUT, on_timeout);
    map->static_add("/first/", "cb_first");
    map->static_add("/second/", "cb_second");
    map->static_add("/none/", "cb_none");
    map->static_add("/thread/", "cb_thread");
    websocket->broadcaster();
    return 0;
}
