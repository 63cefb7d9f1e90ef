// SPDX-License-Identifier: Apache-2.0
/*
 * The package websocket (RFC 6455). Level 0 of the original API has no channels: DUDA_API_LEVEL 0 has its forms, 1 and
 * 2 have the ones with a channel, and without a level the channel may be left out.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_H
#define DUDA_PACKAGES_WEBSOCKET_H

#include "../../package.h"

enum {
    WS_OPCODE_CONTINUE = 0x0,
    WS_OPCODE_TEXT = 0x1,
    WS_OPCODE_BINARY = 0x2,
    WS_OPCODE_CLOSE = 0x8,
    WS_OPCODE_PING = 0x9,
    WS_OPCODE_PONG = 0xa,
};

enum { WS_ON_OPEN, WS_ON_MESSAGE, WS_ON_ERROR, WS_ON_CLOSE, WS_ON_TIMEOUT };

/* The channel of all clients. */
enum { WS_CHANNEL_ALL = -1 };

/* A connection, and the message that it has received last. */
typedef struct ws_request {
    int socket;
    int channel;
    unsigned int opcode;
    unsigned char *payload;
    uint64_t payload_len;
    duda_request_t *dr;
} ws_request_t;

typedef void (*ws_callback_t)(duda_request_t *dr, ws_request_t *wr);

#if DUDA_API_LEVEL == 0
#define DUDA_WS_CHANNEL
#else
#define DUDA_WS_CHANNEL , int channel
#endif

struct duda_api_websocket {
    /* Sets the function for one of WS_ON_*. Returns 0 or -1. Only in duda_main(). */
    int (*set_callback)(int type, ws_callback_t fn);
    /* Accepts the upgrade of a request. Returns 0; or -1: it is none, and was answered with 400. */
    int (*handshake)(duda_request_t *dr DUDA_WS_CHANNEL);
    /* Sends a message to one client. Returns 0 or -1. */
    int (*write)(ws_request_t *wr, unsigned int opcode, unsigned char *data, uint64_t len);
    /* Enables the two functions below. Returns 0 or -1. Only in duda_main(). */
    int (*broadcaster)(void);
    /* Sends a message to the clients of a channel (-1: all) in all workers, except `wr`. Returns 0 or -1. */
    int (*broadcast)(ws_request_t *wr, unsigned char *data, uint64_t len, int opcode DUDA_WS_CHANNEL);
    /* The same, to all of them. Any thread. */
    int (*broadcast_all)(unsigned char *data, uint64_t len, int opcode DUDA_WS_CHANNEL);
};

DUDA_PACKAGE(struct duda_api_websocket, websocket)

#ifdef DUDA_OLD_ANY_LEVEL

/* Add the channel where it is missing, and leave functions of these names with other numbers of arguments alone. */
#define DUDA_WS_7TH(a, b, c, d, e, f, g, ...) g
#define DUDA_WS_JOIN(a, b) a##b
#define DUDA_WS_FORM(name, form) DUDA_WS_JOIN(duda_ws_##name, form)
#define duda_ws_handshake_plain(...) handshake(__VA_ARGS__)
#define duda_ws_handshake_short(...) handshake(__VA_ARGS__, -1)
#define duda_ws_broadcast_plain(...) broadcast(__VA_ARGS__)
#define duda_ws_broadcast_short(...) broadcast(__VA_ARGS__, -1)
#define duda_ws_broadcast_all_plain(...) broadcast_all(__VA_ARGS__)
#define duda_ws_broadcast_all_short(...) broadcast_all(__VA_ARGS__, -1)
#define handshake(...) \
    DUDA_WS_FORM(handshake, DUDA_WS_7TH(__VA_ARGS__, _plain, _plain, _plain, _plain, _plain, _short, ))(__VA_ARGS__)
#define broadcast(...) \
    DUDA_WS_FORM(broadcast, DUDA_WS_7TH(__VA_ARGS__, _plain, _plain, _short, _plain, _plain, _plain, ))(__VA_ARGS__)
#define broadcast_all(...) \
    DUDA_WS_FORM(broadcast_all, DUDA_WS_7TH(__VA_ARGS__, _plain, _plain, _plain, _short, _plain, _plain, ))(__VA_ARGS__)

#endif

#endif
