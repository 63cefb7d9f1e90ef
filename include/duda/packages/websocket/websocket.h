// SPDX-License-Identifier: Apache-2.0
/*
 * The package websocket (RFC 6455, RFC 7692, RFC 8441; docs/reference/duda/websocket.md).
 *
 *     handshake() or accept() ─► OPEN ─► MESSAGE ... MESSAGE ─► ERROR or TIMEOUT, or neither ─► CLOSE
 *
 * The functions of the original come first, and have its forms for services of levels 0 to 2. Level 0 has no channels:
 * there, and without DUDA_API_LEVEL, the channel may be left out.
 *
 * Callbacks run in the worker of the WebSocket, and must not block. Unless a function says otherwise it is for the
 * callbacks of that worker. Mistakes are refused and logged: NULL, another worker or thread, a WebSocket that has
 * ended, text that is not UTF-8.
 *
 * An open WebSocket survives reloads. If its service was changed or removed it is closed with 1012 after
 * ShutdownTimeout, and with 1001 when the server stops.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_H
#define DUDA_PACKAGES_WEBSOCKET_H

#include "../../package.h"

#include <errno.h>

enum {
    WS_OPCODE_CONTINUE = 0x0,
    WS_OPCODE_TEXT = 0x1,
    WS_OPCODE_BINARY = 0x2,
    WS_OPCODE_CLOSE = 0x8,
    WS_OPCODE_PING = 0x9,
    WS_OPCODE_PONG = 0xa,
};

/*
 * OPEN      the handshake was sent
 * MESSAGE   a complete message; text is valid UTF-8
 * ERROR     the client has broken the protocol or exceeds a limit, or the connection has failed or ended without a
 *           close frame; CLOSE follows
 * TIMEOUT   the client has not answered a ping; CLOSE follows
 * CLOSE     it has ended: the last call, once for each handshake() or accept() that has succeeded
 */
enum { WS_ON_OPEN, WS_ON_MESSAGE, WS_ON_ERROR, WS_ON_CLOSE, WS_ON_TIMEOUT };

/* The channel of all WebSockets; as that of one WebSocket: it gets messages to all channels only. */
enum { WS_CHANNEL_ALL = -1 };

/* Of the name of a channel, without the NUL. */
enum { WS_NAME_BYTES = 128 };

/* Status codes of close frames (RFC 6455 section 7.4); 3000 to 4999 are free. */
enum {
    WS_CLOSE_NORMAL = 1000,
    WS_CLOSE_GOING_AWAY = 1001,
    WS_CLOSE_PROTOCOL_ERROR = 1002,
    WS_CLOSE_UNSUPPORTED = 1003,
    WS_CLOSE_NO_STATUS = 1005, /* of callbacks: the close frame had no code */
    WS_CLOSE_ABNORMAL = 1006,  /* of callbacks: the connection has ended without a close frame */
    WS_CLOSE_INVALID = 1007,
    WS_CLOSE_POLICY = 1008,
    WS_CLOSE_TOO_BIG = 1009,
    WS_CLOSE_INTERNAL = 1011,
    WS_CLOSE_RESTART = 1012,
    WS_CLOSE_TRY_LATER = 1013,
};

/* A WebSocket. It is valid until its CLOSE has returned. */
struct ws_request {
    int socket; /* its connection, which others may share by HTTP/2; for services of levels 0 to 2, else -1 */
    int channel;
    /*
     * In MESSAGE: the message, with a NUL after it; it is valid, and may be changed, until the callback returns. In
     * ERROR, TIMEOUT and CLOSE: WS_OPCODE_CLOSE and the reason.
     */
    unsigned int opcode;
    unsigned char *payload;
    uint64_t payload_len;
    duda_request_t *dr; /* its request; NULL: made by connect() */
    unsigned int code;  /* in ERROR, TIMEOUT and CLOSE: WS_CLOSE_... */
    void *data;         /* the service's own; NULL, or of accept() or connect() */
};
typedef struct ws_request ws_request_t;

typedef void (*ws_callback_t)(duda_request_t *dr, ws_request_t *wr);

/* ── level 3 ── */

/* What happens to a message for a client that reads so slowly that its queue is full. */
enum ws_overflow {
    WS_OVERFLOW_CLOSE, /* the WebSocket is closed with WS_CLOSE_POLICY */
    WS_OVERFLOW_DROP,  /* the message is dropped, and the WebSocket stays open */
};

enum ws_result {
    WS_OK = 0,
    WS_AGAIN = DUDA_AGAIN,    /* queued, and more than 64 KB wait: send more in on_writable */
    WS_CLOSED = -EPIPE,       /* the WebSocket is closing */
    WS_FULL = -ENOBUFS,       /* not sent: the queue of this client is full, see ws_overflow */
    WS_BUSY = -EAGAIN,        /* not sent: 64 MB of broadcasts wait to be passed on */
    WS_TOO_LONG = -EMSGSIZE,  /* not sent: above 64 MB, or 125 bytes of a ping or pong */
    WS_NO_MEMORY = -ENOMEM,   /* not sent */
    WS_INVALID = -EINVAL,     /* a mistake: an argument */
    WS_WRONG_THREAD = -EPERM, /* a mistake: not in a callback of the WebSocket's worker */
    WS_ENDED = -ESTALE,       /* a mistake: the WebSocket has ended */
};

/* What the WebSockets of an endpoint do. 0 and NULL mean the defaults, which handshake() has. */
struct ws_settings {
    /* Instead of those of set_callback(). on_writable: what waited after WS_AGAIN was sent. */
    ws_callback_t on_open, on_message, on_error, on_close, on_timeout, on_writable;
    uint64_t message_bytes_max; /* received; 1 MB. More is closed with WS_CLOSE_TOO_BIG */
    uint64_t frame_bytes_max;   /* the same as message_bytes_max */
    uint64_t queue_bytes_max;   /* waiting to be sent; 1 MB */
    enum ws_overflow overflow;
    uint32_t ping_ms;  /* sends a ping when nothing was received for this time; 30,000. UINT32_MAX: never */
    uint32_t pong_ms;  /* TIMEOUT if nothing follows a ping; 20,000 */
    uint32_t close_ms; /* waits for the client's close frame; 5,000 */
    const char
        *protocols; /* subprotocols, separated by commas: the first one of the client that is among them is used */
    /*
     * Origins of pages that may connect, separated by commas: "https://example.com"; "*": any; NULL: that of the
     * request's host only. A request without Origin is not from a browser, and may connect.
     */
    const char *origins;
    bool no_deflate;            /* permessage-deflate is not offered */
    bool context_takeover;      /* messages may refer to earlier ones: smaller, up to 64 KB more for each WebSocket */
    uint8_t window_bits;        /* for compressing: 9 to 15; 12 */
    uint8_t level;              /* of zlib: 1 to 9; 3 */
    uint32_t deflate_bytes_min; /* shorter messages are not compressed; 64 */
};

typedef struct ws_endpoint ws_endpoint_t;

struct duda_api_websocket {
    /* Sets the function for one of WS_ON_*; NULL removes it. Returns 0 or -1. Only in duda_main(). */
    int (*set_callback)(int type, ws_callback_t fn);
    /*
     * Makes a request a WebSocket. Returns 0; or -1: it was answered with 400 (it is no handshake), 403 (its page is
     * from another origin), 426 (another version) or 503 (no memory), unless the response had begun already.
     */
    int (*handshake)(duda_request_t *dr, int channel);
    /*
     * Sends a message, a ping, a pong, or a close frame (two bytes of a code, and a reason). Returns 0, or -1: see
     * send().
     */
    int (*write)(ws_request_t *wr, unsigned int opcode, const unsigned char *data, uint64_t len);
    /* Had to be called before broadcasts in the original; has no effect here. Returns 0 or -1. Only in duda_main(). */
    int (*broadcaster)(void);
    /*
     * Sends a message to the WebSockets of a channel (-1: all) in all workers, except `wr`. Returns 0, or -1: see
     * publish().
     */
    int (*broadcast)(ws_request_t *wr, const unsigned char *data, uint64_t len, int opcode, int channel);
    /* The same, to all of them. Any thread: also one that the service has made by pthread_create(). */
    int (*broadcast_all)(const unsigned char *data, uint64_t len, int opcode, int channel);

    /* ── level 3 ── */

    /*
     * Makes an endpoint, which lives as long as the service; the settings are copied. Returns NULL without memory, or
     * if they are wrong, which is logged. Only in duda_main().
     */
    ws_endpoint_t *(*endpoint)(const struct ws_settings *settings);
    /*
     * Makes a request a WebSocket of an endpoint (NULL: as handshake()). Headers of the response may be added before.
     * Returns NULL: it was answered, see handshake().
     */
    ws_request_t *(*accept)(duda_request_t *dr, const ws_endpoint_t *endpoint, int channel, void *data);
    /*
     * Connects to another server: "ws://host[:port][/path]". The endpoint's origins have no meaning, its subprotocols
     * are offered. If it cannot connect, within 10 seconds, ERROR has the reason, and CLOSE follows. What is sent
     * before OPEN waits. It is in no channel, and broadcasts do not reach it. In callbacks of a worker.
     * Returns NULL without memory or for a wrong URL, which is logged.
     */
    ws_request_t *(*connect)(const char *url, const ws_endpoint_t *endpoint, void *data);
    /* Sends a message, a ping or a pong. The bytes are copied. Returns WS_OK, WS_AGAIN, or why it was not sent. */
    enum ws_result (*send)(ws_request_t *wr, int opcode, const void *data, size_t len);
    /*
     * Sends a message to a channel (-1: all) in all workers, except `except`, which may be NULL: then in any thread of
     * worker->spawn(), too. It is encoded, and compressed, once. Returns WS_OK, or why it was not sent.
     */
    enum ws_result (*publish)(int channel, int opcode, const void *data, size_t len, const ws_request_t *except);
    /*
     * Closes after what waits. `code`: 0 for none, 1000 to 1014 or 3000 to 4999; the reason, which may be NULL, is cut
     * at 123 bytes. No further message comes; CLOSE comes when the client has answered or close_ms is over. Returns
     * WS_OK, also if it is closing already.
     */
    enum ws_result (*close)(ws_request_t *wr, unsigned code, const char *reason);
    /* Stop and continue reading: flow control stops the client, too. Meanwhile pings do not end the WebSocket. */
    enum ws_result (*pause)(ws_request_t *wr);
    enum ws_result (*resume)(ws_request_t *wr);
    /* Moves it to another channel, or to none but WS_CHANNEL_ALL. Returns WS_OK, or WS_NO_MEMORY: it stays. */
    enum ws_result (*set_channel)(ws_request_t *wr, int channel);
    /* Returns how many WebSockets a channel has in all workers (-1: all channels). Any thread, as publish(). */
    size_t (*count)(int channel);
    /* Returns the subprotocol that was agreed on; "": none. */
    const char *(*protocol)(const ws_request_t *wr);
    /* Returns how many bytes wait to be sent. */
    size_t (*queued)(const ws_request_t *wr);

    /*
     * Channels with names of 1 to WS_NAME_BYTES bytes, which clients may choose, instead of numbers; a channel exists
     * while it has a WebSocket. join() moves a WebSocket to one, out of its channel with a number, as set_channel()
     * moves it out of one with a name; `wr->channel` is WS_CHANNEL_ALL then. It returns as set_channel(), or
     * WS_INVALID: the name.
     */
    enum ws_result (*join)(ws_request_t *wr, const char *name);
    /* As publish(); WS_OK also if no WebSocket is in the channel. */
    enum ws_result (*publish_to)(const char *name, int opcode, const void *data, size_t len,
                                 const ws_request_t *except);
    /* As count(). */
    size_t (*count_in)(const char *name);
    /*
     * Closes the WebSockets of a channel with a name in all workers, as close(), after what the calling thread has
     * published before. WS_OK also if no WebSocket is in the channel; otherwise as publish(). Any thread, as publish().
     */
    enum ws_result (*close_channel)(const char *name, unsigned code, const char *reason);

    /*
     * handshake() of July 2012, for services of level 0: with its own callbacks, each of which may be NULL, and without
     * a channel. `on_write` is called when what waited was sent.
     */
    int (*handshake_with)(duda_request_t *dr, ws_callback_t on_read, ws_callback_t on_write, ws_callback_t on_error,
                          ws_callback_t on_close, ws_callback_t on_timeout);
};

DUDA_PACKAGE(struct duda_api_websocket, websocket)

#if defined(DUDA_OLD_ANY_LEVEL) || DUDA_API_LEVEL == 0

/* Add the channel where it is missing, take the callbacks of July 2012, and leave functions of these names with other
 * numbers of arguments alone. */
#define DUDA_WS_7TH(a, b, c, d, e, f, g, ...) g
#define DUDA_WS_JOIN(a, b) a##b
#define DUDA_WS_FORM(name, form) DUDA_WS_JOIN(duda_ws_##name, form)
#define duda_ws_handshake_plain(...) handshake(__VA_ARGS__)
#define duda_ws_handshake_short(...) handshake(__VA_ARGS__, -1)
#define duda_ws_handshake_calls(...) handshake_with(__VA_ARGS__)
#define duda_ws_broadcast_plain(...) broadcast(__VA_ARGS__)
#define duda_ws_broadcast_short(...) broadcast(__VA_ARGS__, -1)
#define duda_ws_broadcast_all_plain(...) broadcast_all(__VA_ARGS__)
#define duda_ws_broadcast_all_short(...) broadcast_all(__VA_ARGS__, -1)
#define handshake(...) \
    DUDA_WS_FORM(handshake, DUDA_WS_7TH(__VA_ARGS__, _calls, _plain, _plain, _plain, _plain, _short, ))(__VA_ARGS__)
#define broadcast(...) \
    DUDA_WS_FORM(broadcast, DUDA_WS_7TH(__VA_ARGS__, _plain, _plain, _short, _plain, _plain, _plain, ))(__VA_ARGS__)
#define broadcast_all(...) \
    DUDA_WS_FORM(broadcast_all, DUDA_WS_7TH(__VA_ARGS__, _plain, _plain, _plain, _short, _plain, _plain, ))(__VA_ARGS__)

#endif

#endif
