// SPDX-License-Identifier: Apache-2.0
#ifndef MK_WEBSOCKET_WS_H
#define MK_WEBSOCKET_WS_H

#include "frame.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/random.h>
#include <monkey/base/str.h>
#include <monkey/kit/hash_table.h>
#include <monkey/kit/websocket.h>
#include <monkey/tunnel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sec-WebSocket-Extensions (RFC 6455 section 9.1), and permessage-deflate in it (RFC 7692 section 7.1): the server
 * chooses one of the client's offers, the client checks the response. Pure.
 */
enum {
    MK__WS_OFFERS_MAX = 8, /* of a line; those after them are not looked at */
    MK__WS_BITS_MIN = 9,   /* of a window to compress with: zlib cannot use the 8 of the RFC */
    MK__WS_BITS_MAX = 15,
};

/*
 * permessage-deflate, as the configuration wants it or as it was negotiated. A context that is not kept makes each
 * message its own stream, so that its memory can be freed between two messages.
 */
struct mk__ws_deflate_params {
    bool on;
    bool server_no_context; /* the server's messages are independent of each other */
    bool client_no_context; /* those of the client are */
    bool write_server_bits; /* negotiated: the response must name them, also 15 */
    uint8_t server_bits,
        client_bits; /* at most so large is the window of the server's, the client's messages: 2^N bytes */
};

/*
 * Server: chooses the first acceptable offer in a line of Sec-WebSocket-Extensions. Offers are declined if they have
 * unknown parameters, the same one twice or bad values; if they demand a window of 8 bits; and, where `ours` limits the
 * client's window below 15 bits, if the client cannot be told so.
 * Call it for each line; `*params`, zeros before the first, is not changed if an offer was chosen already.
 * Returns 0 (`params->on` tells whether there is one) or -EINVAL: malformed, the request must be rejected.
 */
int mk__ws_deflate_choose(struct mk_str line, const struct mk__ws_deflate_params *ours,
                          struct mk__ws_deflate_params *params);

/* Server: appends the value of Sec-WebSocket-Extensions for what was chosen. Errors are sticky. */
void mk__ws_deflate_write_response(struct mk_buf *out, const struct mk__ws_deflate_params *params);

/* Client: appends the value of Sec-WebSocket-Extensions that offers what `ours` says. Errors are sticky. */
void mk__ws_deflate_write_offer(struct mk_buf *out, const struct mk__ws_deflate_params *ours);

/*
 * Client: checks a line of Sec-WebSocket-Extensions of the response against the offer.
 * Call it for each line; `*params` is zeros before the first.
 * Returns 0 or -EINVAL with a sentence: the connection must be failed.
 */
int mk__ws_deflate_check(struct mk_str line, const struct mk__ws_deflate_params *ours,
                         struct mk__ws_deflate_params *params, const char **ret_reason);

/*
 * The opening handshake (RFC 6455 section 4): key, version, subprotocol, origin. Values are those of field lines,
 * without the spaces around them; a list may have several lines. Pure.
 */

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

/*
 * The client's side of the handshake (RFC 6455 section 4.1): the URL, the request, and the check of the response. Pure.
 */

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

/*
 * The payloads of permessage-deflate (RFC 7692 section 7.2), by zlib. Memory comes from an account.
 *
 *     a context           bytes
 *     to compress         2^(bits + 2) + 2^(memory level + 9) + 7 KB: 263 KB with 15 and 8, 10 KB with 9 and 1
 *     to decompress       2^bits + 10 KB, from the first compressed message on
 *     ... shrunk          at most 2^bits: what later messages may refer to
 *
 * Both are created by the first message that needs them. One that compresses can be freed between any two messages; the
 * next one is then compressed without references to those before, which every peer accepts.
 */
struct z_stream_s;

/* ── compressing ── */

struct mk__ws_deflater {
    struct mk_account *account;
    struct z_stream_s *z; /* NULL: not created yet, or freed */
    uint8_t level;        /* 1 (fast) to 9 (small) */
    uint8_t memory_level; /* 1 to 9 */
    uint8_t bits;         /* of the window: 9 to 15 */
    bool no_context;      /* no message refers to those before */
};

/*
 * Sets the fields, with level 1 and memory level 8, which can be changed before the first message; allocates nothing.
 * The account may be NULL.
 */
void mk__ws_deflater_init(struct mk__ws_deflater *d, struct mk_account *account, unsigned bits, bool no_context);

/*
 * Appends the payload of a message of `n` bytes, which are not in `out`.
 * Returns 0, -ENOBUFS (the payload and 12 bytes more may be longer than the maximum of `out`), -EMSGSIZE (4 GB or
 * more) or -ENOMEM. After an error nothing is appended, and the next message does not refer to those before.
 */
int mk__ws_deflater_compress(struct mk__ws_deflater *d, const void *data, size_t n, struct mk_buf *out);

/* Frees the memory. The deflater can be used again. */
void mk__ws_deflater_release(struct mk__ws_deflater *d);

/* Its account is there no more: what is freed from now on is not counted. */
void mk__ws_deflater_forget_account(struct mk__ws_deflater *d);

/* ── decompressing ── */

struct mk__ws_inflater {
    struct mk_account *account;
    struct z_stream_s *z; /* NULL: not created yet, shrunk or freed */
    char *window;         /* of a shrunk one */
    uint32_t window_len;
    uint8_t bits;           /* of the peer's window: 8 to 15 */
    uint8_t tail_used;      /* bytes of the tail of the current message */
    bool no_context;        /* no message of the peer refers to those before */
    bool begun;             /* a message is under way */
    bool empty;             /* it has no bytes yet */
    bool ended;             /* the last of its bytes ended a block that is marked as the last one */
    bool aligned;           /* the last bytes ended a block, and no bits are left */
    uint64_t message_max;   /* decompressed bytes of a message */
    uint64_t message_bytes; /* of the current one */
};

/* Input that is left, and room for output; each call advances both. */
struct mk__ws_inflate_data {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t out_len;
};

/* Sets the fields; allocates nothing. The account may be NULL. */
void mk__ws_inflater_init(struct mk__ws_inflater *i, struct mk_account *account, unsigned bits, bool no_context,
                          uint64_t message_max);

/*
 * Decompresses a piece of a message; `last`: it is the last one, and may be empty.
 * Returns 0 (all input is used; with `last` the message has ended, too), MK_AGAIN (call again with more room, and
 * `last` as before), -1007 (not valid, or cut), -1009 (longer than `message_max`) or -1011 (no memory); with an error a
 * sentence in `*ret_reason`, and the inflater can only be released. Output before an error is valid.
 */
int mk__ws_inflater_feed(struct mk__ws_inflater *i, struct mk__ws_inflate_data *data, bool last,
                         const char **ret_reason);

/*
 * Frees as much memory as possible until the next message. Does nothing within a message, or if there is no memory for
 * the window's copy.
 */
void mk__ws_inflater_shrink(struct mk__ws_inflater *i);

/* Frees the memory. */
void mk__ws_inflater_release(struct mk__ws_inflater *i);

/* Its account is there no more, as for deflaters. */
void mk__ws_inflater_forget_account(struct mk__ws_inflater *i);

/*
 * The structs of <monkey/kit/websocket.h>.
 *
 *     group ─► workers, one for each thread ─► WebSockets of the thread: all, and those of each channel
 *       │         ▲
 *       └─ broadcast ─► inbox of each worker (lock-free, an eventfd wakes it) ─► blocks in the queues of WebSockets
 *
 * A WebSocket lives in the heap, on the account of its worker, from mk_ws_open() until its stream has ended.
 */
enum {
    MK__WS_INPUT_BYTES = 64 * 1024,       /* read at a time */
    MK__WS_OUTPUT_BYTES = 64 * 1024,      /* gathered for one write */
    MK__WS_QUEUED_BYTES_HIGH = 64 * 1024, /* above it mk_ws_send() returns MK_AGAIN */
    MK__WS_SHARED_BITS = 12,              /* window of messages that are compressed once for many */
    MK__WS_SENT_BYTES_MAX = 64 * 1024 * 1024,
    MK__WS_MESSAGE_BYTES_MAX = 1024 * 1024, /* received, as the next ones unless the settings say otherwise */
    MK__WS_QUEUE_BYTES_MAX = 1024 * 1024,
    MK__WS_PING_MS = 30000,
    MK__WS_PONG_MS = 20000,
    MK__WS_CLOSE_MS = 5000,
};

/* ── output ── */

/* An encoded frame. Several queues may hold it, in several threads. */
struct mk__ws_block {
    atomic_uint refs;
    struct mk_account *account; /* NULL: shared by threads */
    size_t len, size;           /* used, allocated */
    uint8_t bytes[];
};

/* What waits to be written, a ring of blocks; NULL in a WebSocket where nothing waits. */
struct mk__ws_queue {
    uint32_t first, n, size;
    size_t sent;  /* bytes of the first block that are written */
    size_t bytes; /* of all, without `sent` */
    struct mk__ws_block *blocks[];
};

/* ── input ── */

/* A message whose end has not arrived. */
struct mk__ws_message {
    size_t len, size; /* with room for a NUL */
    struct mk__utf8 utf8;
    char bytes[];
};

/* Input that was not taken: the beginning of a frame, or what was read before a pause. */
struct mk__ws_saved {
    uint32_t len;
    bool was_paused;
    uint8_t bytes[];
};

enum mk__ws_state {
    MK__WS_OPEN,
    MK__WS_CLOSING, /* a close frame is queued or sent: no more messages from here */
    MK__WS_ENDING,  /* ... and nothing is read any more: ends when the queue is empty */
    MK__WS_ENDED,   /* on_close was called */
};

struct mk_ws {
    struct mk_ws_worker *worker;
    const struct mk_ws_settings *settings;
    const struct mk_ws_stream_ops *ops;
    void *stream, *ctx;
    uint64_t id;                    /* unique in the worker */
    struct mk_list node;            /* in worker->all */
    struct mk_list member;          /* in the list of its channel, or in none */
    struct mk__ws_channel *channel; /* NULL: MK_WS_ALL_CHANNELS */
    struct mk_timer timer;
    uint64_t received_ms; /* when something was received last */

    uint8_t state;   /* enum mk__ws_state */
    uint8_t running; /* calls that use it on the stack */
    bool is_client, is_opened, is_paused, is_readable, is_writable, wants_writable, has_pinged, is_failed, is_freed;
    uint8_t cause; /* enum mk_ws_cause */

    /* permessage-deflate */
    bool deflate, send_context, receive_context, used_codecs;
    uint8_t send_bits, receive_bits;
    struct mk__ws_deflater *deflater; /* with context takeover; or NULL */
    struct mk__ws_inflater *inflater; /* while a message arrives, or with context takeover; or NULL */

    /* input */
    bool in_frame;
    struct mk__ws_head head; /* of the frame under way */
    uint64_t left;           /* of its payload */
    struct mk__ws_sequence sequence;
    struct mk__ws_message *message;
    struct mk__ws_saved *saved;

    /* output */
    struct mk__ws_queue *queue;

    /* for on_close */
    uint16_t code;
    uint8_t reason_len;
    char *reason; /* owned; or NULL */
    struct mk_str protocol;
};

/* ── permessage-deflate (codecs.c) ── */

/* A compressor for the messages of all WebSockets with this window and level. */
struct mk__ws_shared_deflater {
    struct mk__ws_shared_deflater *next;
    struct mk__ws_deflater deflater;
};

/* Of a worker; initialized with zeros. */
struct mk__ws_codecs {
    struct mk__ws_shared_deflater *deflaters;
    struct mk__ws_inflater *spare; /* an inflater that is not lent; or NULL */
    struct mk_buf output;          /* of a compressor */
};

/* ── workers and groups ── */

struct mk__ws_channel {
    struct mk_hash_node node; /* in worker->channels */
    struct mk_list members;
    int number;
    unsigned pins; /* deliveries under way: it stays, even if it is empty */
};

/* A message to the WebSockets of all workers, until the last worker has passed it on. */
struct mk__ws_delivery {
    struct mk__ws_delivery *next;
    struct mk__ws_broadcast *broadcast;
};

struct mk__ws_broadcast {
    struct mk_ws_group *group;
    atomic_uint refs; /* deliveries */
    int channel;
    const struct mk_ws_worker *except_worker; /* NULL: it is for all */
    uint64_t except_id;
    struct mk__ws_block *plain, *deflated; /* the latter may be NULL */
    bool closes;                           /* `plain` has the reason: no message */
    uint16_t code;
    size_t cost;
    unsigned n;
    struct mk__ws_delivery deliveries[];
};

struct mk_ws_worker {
    struct mk_ws_group *group;
    struct mk_loop *loop;
    struct mk_account *account;
    mk_ws_call_fn call;
    void *call_ctx;
    pthread_t thread;
    unsigned refs; /* under group->lock, as `thread` and `loop` */

    /* the inbox: any thread */
    _Atomic(struct mk__ws_delivery *) inbox; /* the newest first */
    atomic_bool is_open;
    struct mk_event event; /* its eventfd */

    /* deliveries under way, the oldest first */
    struct mk__ws_delivery *first, **end;
    struct mk_list *cursor;         /* the next receiver of `first`; NULL: it has not begun */
    struct mk__ws_channel *channel; /* of `first`; NULL: all */
    unsigned batch;                 /* deliveries from `first` on that each receiver gets at once */
    struct mk_task task;

    uint64_t last_id;
    size_t count;
    struct mk_list all;
    struct mk_hash_table channels;

    char *input, *output;       /* NULL without WebSockets */
    struct mk_ws *output_owner; /* `output` is gathered for this one */
    size_t output_len;
    struct mk__ws_codecs codecs;
};

enum { MK__WS_WORKERS_MAX = 256 };

struct mk_ws_group {
    atomic_size_t count;         /* open WebSockets */
    atomic_size_t deflate_count; /* those that take compressed messages */
    atomic_size_t pending_bytes; /* of broadcasts under way */
    atomic_flag deflater_used;   /* by a thread that encodes a message; others make their own */
    struct mk__ws_deflater deflater;
    pthread_mutex_t lock; /* of the workers' references */
    atomic_uint n;
    _Atomic(struct mk_ws_worker *) workers[MK__WS_WORKERS_MAX]; /* they stay until the group is freed */
};

/* ── send.c ── */

/*
 * Returns a block with a frame for servers to send, or NULL without memory. `account` NULL: any thread may have it.
 * `masked`: for clients to send.
 */
struct mk__ws_block *mk__ws_block_new(struct mk_account *account, uint8_t opcode, bool rsv1, bool masked,
                                      const void *data, size_t len);
void mk__ws_block_put(struct mk__ws_block *block);

/* Sends a frame, compressed already if `rsv1`. Returns 0, MK_AGAIN, -ENOMEM, or -ENOBUFS: queue_bytes_max. */
int mk__ws_send_frame(struct mk_ws *ws, uint8_t opcode, bool rsv1, const void *data, size_t len);
/* Sends a block, of which it takes a reference if it has to wait. Returns as mk__ws_send_frame(). */
int mk__ws_send_block(struct mk_ws *ws, struct mk__ws_block *block);
/* A result of the two above: closes a WebSocket whose queue is full, if its settings want it. Returns `result`. */
int mk__ws_check_overflow(struct mk_ws *ws, int result);
/* What a WebSocket sends from now on is gathered, up to mk__ws_flush_output(). */
void mk__ws_gather_output(struct mk_ws *ws);
void mk__ws_flush_output(struct mk_ws_worker *w);
/* Writes as much of the queue as the stream takes. Returns true if nothing waits. */
bool mk__ws_write_queue(struct mk_ws *ws);
void mk__ws_free_queue(struct mk_ws *ws);

/* ── recv.c ── */

/* Reads frames and calls handlers, up to a few hundred kilobytes in a row. */
void mk__ws_read(struct mk_ws *ws);
/* Frees what has arrived of a message. */
void mk__ws_free_input(struct mk_ws *ws);

/* ── codecs.c ── */

/* Returns a block of a compressed message for all receivers, or NULL: it is not worth it, or there is no memory. */
struct mk__ws_block *mk__ws_deflate_shared(struct mk_ws_group *group, uint8_t opcode, const void *data, size_t len);

/* Compresses and sends a message. Returns as mk__ws_send_frame(). */
int mk__ws_send_deflated(struct mk_ws *ws, uint8_t opcode, const void *data, size_t len);
/* The next message is compressed without references to those before. */
void mk__ws_reset_deflater(struct mk_ws *ws);

/*
 * Decompresses a piece of the message that arrives to `data->out`. Returns as mk__ws_inflater_feed(); 0 with `last`
 * gives a lent inflater back.
 */
int mk__ws_inflate(struct mk_ws *ws, struct mk__ws_inflate_data *data, bool last, const char **ret_reason);

/* Gives up memory, if no message was compressed or decompressed since the last call. */
void mk__ws_shrink_codecs(struct mk_ws *ws);
/* Frees what a WebSocket has, and what a worker has. */
void mk__ws_free_codecs(struct mk_ws *ws);
void mk__ws_codecs_release(struct mk__ws_codecs *codecs, struct mk_account *account);
/* Their account is there no more; it does not count what is freed next. */
void mk__ws_codecs_forget_account(struct mk__ws_codecs *codecs);

/* ── handshake.c: what the settings want ── */

/* Returns what the settings want of permessage-deflate. */
struct mk__ws_deflate_params mk__ws_deflate_params_of(const struct mk_ws_settings *settings);

/* ── open.c ── */

/* Begin and end the use of a WebSocket, which may end meanwhile and is freed by the last mk__ws_leave(). */
void mk__ws_enter(struct mk_ws *ws);
void mk__ws_leave(struct mk_ws *ws);
/* The peer has broken the protocol, or exceeds a limit: closes with this code. */
void mk__ws_fail(struct mk_ws *ws, unsigned code, const char *reason);
/* The peer sends nothing more, and may still read: what waits is written first. */
void mk__ws_take_end(struct mk_ws *ws);
/* The peer's close frame has arrived. */
void mk__ws_take_close(struct mk_ws *ws, unsigned code, struct mk_str reason);
/* As mk__ws_set_failed(); on_close gets MK_WS_ABNORMAL with a reason. */
void mk__ws_fail_stream(struct mk_ws *ws, const char *reason);
/* The handshake of a client is complete. */
void mk__ws_negotiate_late(struct mk_ws *ws, const struct mk_ws_negotiated *negotiated);
/* Frees a WebSocket that was not run, without on_close. */
void mk__ws_discard(struct mk_ws *ws);
/* The stream cannot be used any more: ends the WebSocket in its next turn. */
void mk__ws_set_failed(struct mk_ws *ws);

/* ── worker.c ── */

/* Add and remove a WebSocket. The first returns 0 or -ENOMEM. */
int mk__ws_worker_add(struct mk_ws_worker *w, struct mk_ws *ws, int channel);
void mk__ws_worker_remove(struct mk_ws *ws);
/* Broadcasts are compressed for it, if it takes compressed messages. */
void mk__ws_worker_count_deflate(struct mk_ws *ws);
/* Returns a channel of this worker, or NULL. */
struct mk__ws_channel *mk__ws_worker_find_channel(struct mk_ws_worker *w, int number);
/* Drops a pin; frees an empty channel. */
void mk__ws_channel_unpin(struct mk_ws_worker *w, struct mk__ws_channel *channel);

/* ── broadcast.c ── */

/* The inbox of a worker was written to. */
void mk__ws_deliver(struct mk_event *event, uint32_t events);
void mk__ws_deliver_more(struct mk_task *task);
/* Drops what is in the inbox and under way. */
void mk__ws_drop_deliveries(struct mk_ws_worker *w);

/* Calls `fn(ws)` wrapped as the worker wants it. */
static inline void mk__ws_call(struct mk_ws_worker *w, void (*fn)(void *arg), void *arg)
{
    if (w->call)
        w->call(w->call_ctx, fn, arg);
    else
        fn(arg);
}

/* Fills `to` with random bytes for a mask or a key: so few are always there once the system has started. */
static inline void mk__ws_fill_random(void *to, size_t n)
{
    int err = mk_random(to, n);
    assert(err == 0);
    (void)err;
}

static inline size_t mk__ws_get_message_max(const struct mk_ws *ws)
{
    return ws->settings->message_bytes_max ? ws->settings->message_bytes_max : MK__WS_MESSAGE_BYTES_MAX;
}

#endif
