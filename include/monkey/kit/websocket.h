// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets (RFC 6455) with permessage-deflate (RFC 7692), over HTTP/1.1 and HTTP/2 (RFC 8441). In the kit: plugins
 * link -lmonkey-kit -lz.
 *
 *     process    struct mk_ws_group      all WebSockets of one purpose; broadcasts reach them in every thread
 *     thread     struct mk_ws_worker     those of one worker
 *     exchange   struct mk_ws            one of them
 *
 *     static const struct mk_ws_settings settings = {.handlers = {.on_message = echo}};
 *
 *     start            mk_ws_group_new()
 *     worker_start     mk_ws_worker_get(group, mk_worker_loop(worker), mk_worker_account(worker), NULL)
 *     on_content       mk_ws_accept(req, ws_worker, &settings, ctx)
 *     worker_stop      mk_ws_worker_put()
 *     stop             mk_ws_group_free()
 *
 * An open WebSocket belongs to its exchange, which holds its generation: a reload does not cut it. All functions are
 * for the thread of the worker and do not block, except those of a group, which any thread may call.
 */
#ifndef MONKEY_WEBSOCKET_H
#define MONKEY_WEBSOCKET_H

#include "../base/arena.h"
#include "../base/dial.h"
#include "../base/str.h"
#include "../loop.h"
#include "../request.h"

MK_C_BEGIN

struct mk_ws;
struct mk_ws_group;
struct mk_ws_worker;

enum mk_ws_opcode {
    MK_WS_TEXT = 1,
    MK_WS_BINARY = 2,
    MK_WS_PING = 9,
    MK_WS_PONG = 10,
};

/* Status codes of RFC 6455 section 7.4.1 and the IANA registry. */
enum mk_ws_code {
    MK_WS_NORMAL = 1000,
    MK_WS_GOING_AWAY = 1001,
    MK_WS_PROTOCOL_ERROR = 1002,
    MK_WS_UNSUPPORTED_DATA = 1003,
    MK_WS_NO_STATUS = 1005, /* never sent: the close frame had no code */
    MK_WS_ABNORMAL = 1006,  /* never sent: the connection has ended without a close frame */
    MK_WS_INVALID_DATA = 1007,
    MK_WS_POLICY = 1008,
    MK_WS_TOO_BIG = 1009,
    MK_WS_MANDATORY_EXTENSION = 1010,
    MK_WS_INTERNAL_ERROR = 1011,
    MK_WS_SERVICE_RESTART = 1012,
    MK_WS_TRY_AGAIN_LATER = 1013,
    MK_WS_BAD_GATEWAY = 1014,
};

/* Why a WebSocket has ended. */
enum mk_ws_cause {
    MK_WS_CAUSE_LOST,    /* the stream has failed, or has ended without a close frame */
    MK_WS_CAUSE_PEER,    /* the peer has closed it */
    MK_WS_CAUSE_LOCAL,   /* mk_ws_close() or mk_ws_abort(); also for a peer that reads too slowly */
    MK_WS_CAUSE_ERROR,   /* the peer has broken the protocol or exceeded a limit, or there was no memory */
    MK_WS_CAUSE_TIMEOUT, /* the peer has not answered a ping */
};

/* The channel of all WebSockets of a group. */
enum { MK_WS_ALL_CHANNELS = -1 };

/* ── settings ── */

/*
 * Each may be NULL. `data` is valid until the function returns, followed by a NUL that does not count, and writable. A
 * function may close its and other WebSockets.
 */
struct mk_ws_handlers {
    /* The handshake was sent. */
    void (*on_open)(struct mk_ws *ws, void *ctx);
    /* A message has arrived: `opcode` is MK_WS_TEXT, which is valid UTF-8, or MK_WS_BINARY. */
    void (*on_message)(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx);
    /* A ping, which was answered, or a pong has arrived. */
    void (*on_ping)(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx);
    /* Everything was sent after mk_ws_send() has returned MK_AGAIN. */
    void (*on_writable)(struct mk_ws *ws, void *ctx);
    /*
     * The WebSocket has ended: once for each that was accepted, as its last call. `code`: of the peer's close frame, of
     * mk_ws_close(), of an error of the peer, or MK_WS_ABNORMAL.
     */
    void (*on_close)(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx);
};

/* What happens to a message for a WebSocket whose queue is full, because its peer reads slowly. */
enum mk_ws_overflow {
    MK_WS_OVERFLOW_CLOSE, /* closes the WebSocket with MK_WS_POLICY */
    MK_WS_OVERFLOW_DROP,  /* drops the message; the WebSocket stays open */
};

/* Constant, and valid as long as a WebSocket that was opened with them. 0 and NULL mean the defaults. */
struct mk_ws_settings {
    struct mk_ws_handlers handlers;
    size_t message_bytes_max; /* received; 1 MB. More is closed with MK_WS_TOO_BIG */
    size_t frame_bytes_max;   /* the same as message_bytes_max */
    size_t queue_bytes_max;   /* waiting to be sent; 1 MB */
    enum mk_ws_overflow overflow;
    uint32_t ping_ms;      /* sends a ping when nothing was received for this time; 30,000. UINT32_MAX: never */
    uint32_t pong_ms;      /* ends the WebSocket if nothing follows a ping; 20,000 */
    uint32_t close_ms;     /* waits for the peer's close frame; 5,000 */
    const char *protocols; /* subprotocols, by preference, separated by commas; NULL: none is chosen */
    /*
     * Origins that may connect, separated by commas: "https://example.com"; "*": any; NULL: that of the request's host
     * only. A request without Origin is not from a browser, and may connect.
     */
    const char *origins;
    bool no_deflate;       /* permessage-deflate is not offered */
    bool context_takeover; /* messages may refer to earlier ones: better ratios, up to 64 KB more for each WebSocket */
    uint8_t window_bits;   /* for compressing: 9 to 15; 12 */
    uint8_t level;         /* of zlib: 1 to 9; 3 */
    size_t deflate_bytes_min; /* shorter messages are not compressed; 64 */
};

/* ── groups: any thread ── */

/* Returns a group, or NULL without memory. */
struct mk_ws_group *mk_ws_group_new(void);
/* Frees a group, in which no worker is left. `group` may be NULL. */
void mk_ws_group_free(struct mk_ws_group *group);
/*
 * Sends a message to all WebSockets of a channel in all threads, except `except` (NULL: none), which must belong to the
 * calling thread. It is encoded, and compressed, once. Messages of one thread reach each WebSocket in order. Takes no
 * lock. Returns 0, -EMSGSIZE (`len` is above 64 MB), -EAGAIN (64 MB of messages wait to be passed on) or -ENOMEM.
 */
int mk_ws_broadcast(struct mk_ws_group *group, int channel, enum mk_ws_opcode opcode, const void *data, size_t len,
                    const struct mk_ws *except);
/*
 * Closes all WebSockets of a channel in all threads, as mk_ws_close(), after the messages that the calling thread has
 * broadcast before. Returns 0, -EAGAIN (as mk_ws_broadcast()) or -ENOMEM.
 */
int mk_ws_broadcast_close(struct mk_ws_group *group, int channel, unsigned code, struct mk_str reason);
/* Returns whether text is valid UTF-8, as messages of MK_WS_TEXT must be: browsers close the WebSocket otherwise. */
bool mk_ws_is_utf8(const void *data, size_t len);
/* Returns how many WebSockets are open in all threads. */
size_t mk_ws_group_count(const struct mk_ws_group *group);

/* ── workers ── */

/* Calls `fn(arg)` where the calls of handlers have to be wrapped: all that does not come from mk_ws_run(). */
typedef void (*mk_ws_call_fn)(void *ctx, void (*fn)(void *arg), void *arg);

/*
 * Returns the part of a group in the thread of `loop`, which is made by the first call and counts references. Returns
 * NULL without memory or descriptors. `call` may be NULL.
 */
struct mk_ws_worker *mk_ws_worker_get(struct mk_ws_group *group, struct mk_loop *loop, struct mk_account *account,
                                      mk_ws_call_fn call, void *call_ctx);
/* Drops a reference. No WebSocket is left at the last one. */
void mk_ws_worker_put(struct mk_ws_worker *worker);
struct mk_ws_group *mk_ws_get_group(const struct mk_ws_worker *worker);

/* ── one WebSocket ── */

/*
 * Answers a request with the handshake and makes it a WebSocket, or answers it with 400 (not a handshake), 403 (origin)
 * or 426 (another version). A plugin may add headers before. Channel: any number, or MK_WS_ALL_CHANNELS: it
 * gets broadcasts to all channels only.
 * Returns the WebSocket; or NULL: the request was answered.
 */
struct mk_ws *mk_ws_accept(struct mk_request *req, struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                           int channel, void *ctx);

/*
 * Connects to another server: "ws://host[:port][/path]". The settings' origins have no meaning; the subprotocols are
 * offered. on_open is called when the handshake is complete, and on_close when the WebSocket ends or cannot be opened:
 * then with MK_WS_ABNORMAL and the reason. What is sent before on_open waits. Connect and handshake have 10 seconds.
 * Returns the WebSocket, or NULL with a phrase in `*ret_error`: the URL is wrong, or there is no memory.
 */
struct mk_ws *mk_ws_connect(struct mk_ws_worker *worker, const struct mk_ws_settings *settings, const char *url,
                            int channel, void *ctx, const char **ret_error);

/*
 * Sends a message; MK_WS_PING and MK_WS_PONG have at most 125 bytes. The bytes are copied as far as they cannot be
 * sent at once.
 * Returns 0, MK_AGAIN (queued, and more than 64 KB wait: send more in on_writable), -ENOBUFS (dropped: the queue is
 * full), -EMSGSIZE, -EPIPE (it is closing) or -ENOMEM.
 */
int mk_ws_send(struct mk_ws *ws, enum mk_ws_opcode opcode, const void *data, size_t len);
/*
 * Sends a close frame after what waits, and ends the WebSocket when the peer has answered or after close_ms. `code` 0:
 * a frame without a code; the reason is cut at 123 bytes. Does nothing if it is closing already.
 */
void mk_ws_close(struct mk_ws *ws, unsigned code, struct mk_str reason);
/* Ends it at once, without a close frame; in a function of its handlers when that returns. */
void mk_ws_abort(struct mk_ws *ws);
/*
 * The same after a close frame, as of mk_ws_close(), if the stream takes it at once. Waits for nothing, so that it may
 * be called in worker_stop when the thread has ended (<monkey/plugin.h>).
 */
void mk_ws_end(struct mk_ws *ws, unsigned code, struct mk_str reason);
/* Stop and continue reading: the peer is stopped by flow control. Pings do not end a WebSocket that does not read. */
void mk_ws_pause(struct mk_ws *ws);
void mk_ws_resume(struct mk_ws *ws);

/* Moves it to another channel. Returns 0 or -ENOMEM, and it stays where it is. */
int mk_ws_set_channel(struct mk_ws *ws, int channel);
int mk_ws_channel(const struct mk_ws *ws);
/* Returns the subprotocol that was agreed on; empty: none. */
struct mk_str mk_ws_protocol(const struct mk_ws *ws);
/* Returns how many bytes wait to be sent. */
size_t mk_ws_queued_bytes(const struct mk_ws *ws);
struct mk_ws_worker *mk_ws_get_worker(const struct mk_ws *ws);
/* Returns why it has ended, in on_close. */
enum mk_ws_cause mk_ws_get_cause(const struct mk_ws *ws);
void *mk_ws_ctx(const struct mk_ws *ws);

/* ── other streams of bytes ── */

/* The functions of mk_tunnel_read() and the others of <monkey/tunnel.h>, for `stream`. */
struct mk_ws_stream_ops {
    ssize_t (*read)(void *stream, void *to, size_t size);
    ssize_t (*write)(void *stream, const void *from, size_t size);
    void (*wake)(void *stream);
    void (*end)(void *stream); /* mk_ws_run() is not called any more */
};

enum {
    MK_WS_NONCE_BYTES = 16,
    MK_WS_KEY_BYTES = 24,    /* Sec-WebSocket-Key: the nonce in base64 */
    MK_WS_ACCEPT_BYTES = 28, /* Sec-WebSocket-Accept */
};

/* Writes the Sec-WebSocket-Key of 16 random bytes, and a NUL. */
void mk_ws_key_make(char to[MK_WS_KEY_BYTES + 1], const uint8_t nonce[MK_WS_NONCE_BYTES]);
/* Writes the Sec-WebSocket-Accept for a key of MK_WS_KEY_BYTES, and a NUL (RFC 6455 section 4.2.2). */
void mk_ws_accept_key(char to[MK_WS_ACCEPT_BYTES + 1], struct mk_str key);

/* The header fields of a handshake; all values of a repeated field are joined with commas. */
struct mk_ws_request {
    struct mk_str upgrade, key, version, protocols, extensions, origin; /* .p NULL: the field is missing */
    struct mk_str host;                                                 /* with the port, as the client has sent it */
    bool is_get, is_tls, is_http1;
};

/* What was agreed on. */
struct mk_ws_negotiated {
    char accept[32];        /* Sec-WebSocket-Accept; empty on HTTP/2 */
    struct mk_str protocol; /* points into the settings */
    char extensions[136];   /* Sec-WebSocket-Extensions; empty: none */
    bool is_client;         /* its frames are masked */
    bool deflate, send_context, receive_context;
    uint8_t send_bits, receive_bits;
};

/* Checks a handshake. Returns 101, or 400, 403 or 426 with a sentence in `*ret_reason`. */
int mk_ws_negotiate(const struct mk_ws_request *request, const struct mk_ws_settings *settings,
                    struct mk_ws_negotiated *ret, const char **ret_reason);
/*
 * Makes a WebSocket on a stream whose handshake is complete. Returns NULL without memory. It lives until `end` was
 * called or mk_ws_lost().
 */
struct mk_ws *mk_ws_open(struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                         const struct mk_ws_negotiated *negotiated, int channel, void *ctx,
                         const struct mk_ws_stream_ops *ops, void *stream);
/* Reads and writes; `events`: of enum mk_tunnel_events. May end the WebSocket. */
void mk_ws_run(struct mk_ws *ws, unsigned events);
/* The stream has ended by itself: on_close is called, and the WebSocket is freed. */
void mk_ws_lost(struct mk_ws *ws);

MK_C_END

#endif
