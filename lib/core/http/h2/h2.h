// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/2 connection (RFC 9113): many concurrent exchanges, each on its own stream.
 *
 *     bytes ─► frame.c ─► session.c ─► head (hpack.c, recv.c), chunks of a body ─► stream.c ─► request ─► hooks ...
 *     bytes ◄─ output.c ◄─ control frames (control.c), heads (hpack.c), DATA of the chosen stream ◄─ response.c
 *
 * frame.c, hpack.c, huffman.c and streams.c are pure and know no side; session.c knows which frame may come when, and
 * the other files decide what follows from it. Everything lives as long as the connection; a stream, until both sides
 * have ended it.
 */
#ifndef MK_HTTP_H2_H2_H
#define MK_HTTP_H2_H2_H

#include "http/conn.h"
#include "http/h2/flood_counters.h"
#include "http/h2/frame.h"
#include "http/h2/hpack.h"
#include "http/h2/priority.h"
#include "http/h2/streams.h"
#include "http/parts.h"

struct mk__h2;
struct mk__h2_body_chunk;
struct mk__h2_request_head;
struct mk__h2_shared;
struct mk__interim;

/* What a stream waits for; each state has a timeout. */
enum mk__h2_stream_state {
    MK__H2_STREAM_READ_HEAD, /* its head is incomplete; the connection's state has the timeout */
    MK__H2_STREAM_READ_BODY, /* waits for the rest of the request's body */
    MK__H2_STREAM_HANDLER,   /* waits for the handler's response, or the handler has paused the body */
    MK__H2_STREAM_DISK,      /* a disk thread reads a file */
    MK__H2_STREAM_WRITE,     /* waits for the client's windows, or for its turn to send */
    MK__H2_STREAM_TUNNEL,    /* a handler uses the stream as a tunnel */
    MK__H2_STREAM_LINGER,    /* the response is complete; discards the rest of the request's body */
    MK__H2_STREAM_CLOSED,
    MK__H2_STREAM_STATES,
};

extern const struct mk__state_info mk__h2_stream_states[MK__H2_STREAM_STATES];

/* Bytes received within a window of ours. */
struct mk__h2_inbound {
    uint32_t size;     /* of the window */
    uint32_t used;     /* received, and not given back */
    uint32_t due;      /* of these, consumed: to be given back by a WINDOW_UPDATE frame */
    uint64_t given_us; /* when some were given back; 0: never */
};

/* The end of a tunnel's output, if its handler ends only that. */
enum mk__h2_fin {
    MK__H2_FIN_NONE,
    MK__H2_FIN_QUEUED, /* the handler has ended its side */
    MK__H2_FIN_SENT,   /* END_STREAM was sent for it; the tunnel can still read */
};

struct mk__h2_stream {
    struct mk__h2_streams_node node; /* in h2->table, with its number */
    struct mk_list link;             /* in h2->streams, in the order of arrival */
    struct mk_list woken;            /* in h2->woken, while it has to be stepped */
    struct mk_list changed;          /* in h2->changed, while its state may be another */
    struct mk_list heads;            /* in h2->heads, while it has a head to send, or trailers */
    struct mk_list ended;            /* in h2->ended: it is freed next */
    struct mk__h2_priority priority; /* its entry in the scheduler */
    struct mk__h2 *h2;
    struct mk_request *req; /* NULL: the exchange is over, or has not started */
    struct mk_timer timer;
    struct mk__parts_reader parts;
    struct mk__h2_body_chunk *body_first, *body_last; /* body chunks that the handler has not taken yet */
    int64_t length_left; /* bytes of the body that Content-Length has announced and that are missing; -1: unknown */
    int32_t window;      /* bytes that the client takes; negative after a SETTINGS frame */
    struct mk__h2_inbound in; /* body bytes */
    uint8_t state;            /* enum mk__h2_stream_state */
    bool armed;               /* the timer runs for this state */
    bool recv_ended;          /* the client has sent END_STREAM */
    bool sent_end;            /* END_STREAM was sent */
    bool head_sent;           /* the head of the response was sent; interim responses do not count */
    bool trailers_due;        /* the body was sent, the trailers were not */
    bool has_body;            /* the response has a body */
    bool reset;               /* RST_STREAM was sent */
    uint8_t fin;              /* enum mk__h2_fin */
    bool extended_connect;    /* an extended CONNECT: becomes a tunnel or is refused */
    uint64_t armed_bytes;     /* bytes of this exchange when the timer was armed, */
    uint64_t armed_sent;      /* and bytes that the client had received on all streams */
    uint64_t filter_turn;     /* turn of the loop in which the filters were last reset */
    char *tunnel_out;         /* tunnel output that waits for the windows */
    uint32_t tunnel_len;
    uint64_t discard_left; /* how many more body bytes may be discarded, after the response is complete */
};

/* How far the connection's shutdown has come; it only moves forward. */
enum mk__h2_shutdown {
    MK__H2_SHUTDOWN_NONE,
    MK__H2_SHUTDOWN_NOTICE,     /* the shutdown notice was sent: requests in flight are still accepted */
    MK__H2_SHUTDOWN_GOAWAY,     /* the final GOAWAY was sent: its streams are completed */
    MK__H2_SHUTDOWN_TERMINATED, /* the session was terminated: nothing more is read, no stream is completed */
};

/* The grace period of an idle connection after the shutdown notice. */
enum mk__h2_grace {
    MK__H2_GRACE_NONE,
    MK__H2_GRACE_RUNNING,
    MK__H2_GRACE_OVER,
};

/* Returns the protocol HTTP/2, or NULL in a build without it. */
const struct mk__proto *mk__h2_find(void);

enum {
    MK__H2_STREAM_WINDOW_BYTES = 64 * 1024, /* what clients may send ahead, */
    MK__H2_CONN_WINDOW_BYTES = 256 * 1024,
    MK__H2_WINDOW_DOUBLINGS = 4, /* both may grow to 1 MB: control.c */
    MK__H2_WINDOW_BYTES = 65535, /* and until SETTINGS say something else: RFC 9113 section 6.9.2 */
    MK__H2_OUT_FRAMES = 8,
    MK__H2_OUT_BYTES = MK__H2_OUT_FRAMES * (MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES),
};

/* Payloads of the next DATA frames that were read in one call: they are in the output, where their frames will be. */
struct mk__h2_ahead {
    struct mk__h2_stream *stream;
    size_t at, bytes; /* offset of the next payload in the output; bytes of all of them */
};

/* Bytes that have to wait: allocated when there are some, and freed with the last of them. */
struct mk__h2_bytes {
    char *p;
    uint32_t len, size;
};

/* What becomes of the fields of a header block. */
enum mk__h2_block {
    MK__H2_BLOCK_NONE,     /* none is being received */
    MK__H2_BLOCK_HEAD,     /* the head of h2->head_stream */
    MK__H2_BLOCK_TRAILERS, /* trailers of an open stream */
    MK__H2_BLOCK_IGNORED,  /* decoded for the table only */
};

struct mk__h2 {
    struct mk__conn *conn;
    struct mk__h2_shared *shared;
    struct mk_list streams, woken, changed, heads, ended;
    struct mk__h2_streams table; /* of the streams */
    struct mk__h2_scheduler scheduler;
    struct mk__h2_flood_counters flood_counters;
    struct mk__h2_settings initial_settings; /* settings at its start; used after HTTP/2 was switched off */

    struct mk__h2_frame_reader reader;
    struct mk__hpack_decoder decoder;
    uint8_t preface_len;               /* bytes of the preface that were received */
    bool settings_received;            /* the first frame of the client */
    bool settings_acked;               /* the client knows our settings */
    uint8_t block;                     /* enum mk__h2_block */
    bool block_ends_stream;            /* its HEADERS frame has END_STREAM */
    bool block_malformed;              /* the stream is reset when the block has ended */
    int32_t block_id;                  /* its stream */
    uint64_t block_bytes;              /* bytes of its fields */
    struct mk__h2_bytes block_rest;    /* the beginning of a field that is not complete */
    struct mk__h2_stream *head_stream; /* the stream whose head is being received */
    struct mk__h2_head_buf *head_buf;  /* buffer of that head */
    struct mk__h2_inbound in;          /* body bytes of all streams */
    uint8_t window_doublings;          /* of the windows of streams */

    struct mk__hpack_encoder encoder;
    struct mk__h2_bytes control; /* control frames to be sent */
    uint64_t acks;               /* acknowledgements among them */
    uint64_t acks_max;           /* their limit */
    int32_t window;              /* bytes that the client takes on all streams */
    int32_t stream_window;       /* of a new stream */
    uint32_t batch;              /* bytes to collect for one write; fewer while the client is slow */
    uint32_t sent;               /* body bytes sent in this turn */
    struct mk__h2_ahead ahead;

    int32_t processed_id;        /* highest number of a stream that was not refused */
    uint32_t settings_version;   /* version of the settings at its start; newer settings shut it down */
    uint8_t shutdown;            /* enum mk__h2_shutdown */
    bool goaway_received;        /* the client opens no more streams */
    uint32_t heads_since_notice; /* heads received since the shutdown notice */
    uint8_t grace;               /* enum mk__h2_grace */
    struct mk_timer grace_timer; /* armed once */
    uint32_t continuations;      /* CONTINUATION frames of the current head */
    bool frame_counted;          /* the current frame was counted as a flood already */
    uint64_t window_updates;     /* WINDOW_UPDATE frames received */
    uint64_t stray_resets;       /* resets received for closed streams */
    bool turn_again;             /* another turn is needed; other connections run first */
    bool close_requested;        /* a handler called mk_response_close_connection() */
};

/* How many connections or streams of a worker were ended for one kind of flood. */
struct mk__h2_flood_stats {
    uint64_t ended, unlogged; /* in total; since the last log line */
    uint64_t logged_ms;
};

/* Data that the HTTP/2 connections of a worker share. */
struct mk__h2_shared {
    struct mk__scratch out;
    struct mk__pool streams;
    struct mk__h2_head_buf *head_buf; /* NULL: a connection uses it */
    struct mk__h2_flood_stats flood_stats[MK__H2_FLOODS];
};

static inline struct mk__context *mk__h2_http(const struct mk__h2 *h2)
{
    return h2->conn->http;
}

/* The session of a connection; NULL: it speaks another protocol, or its session has ended. */
static inline struct mk__h2 *mk__h2_of(const struct mk__conn *c)
{
    return c->proto == c->http->protos[MK__PROTO_H2].proto ? c->proto_data : NULL;
}

static inline bool mk__h2_is_terminated(const struct mk__h2 *h2)
{
    return h2->shutdown == MK__H2_SHUTDOWN_TERMINATED;
}

/* The place of the data that the connections of a worker share; NULL in it: there is none. */
static inline void **mk__h2_shared_slot(struct mk__context *http)
{
    return &http->protos[MK__PROTO_H2].shared;
}

/* ── session.c ── */

/* Starts the HTTP/2 session of a connection; `on_grace_timer` is the callback of its timer. Returns 0 or -ENOMEM. */
int mk__h2_open(struct mk__conn *c, mk_timer_fn on_grace_timer);
/* Frees the session; incomplete exchanges end as aborted. */
void mk__h2_close(struct mk__conn *c);
/* Frees the data that the connections of a worker share. */
void mk__h2_release_shared(struct mk__context *http);
/* Reads received bytes. */
void mk__h2_receive(struct mk__h2 *h2, struct mk_str in);

/* Returns an open stream of the client, or NULL. */
static inline struct mk__h2_stream *mk__h2_find_stream(const struct mk__h2 *h2, int32_t id)
{
    struct mk__h2_streams_node *node = mk__h2_streams_find(&h2->table, id);
    return node ? MK_CONTAINER_OF(node, struct mk__h2_stream, node) : NULL;
}

/* Returns whether anything can still be read or written. */
static inline bool mk__h2_wants_io(const struct mk__h2 *h2)
{
    bool ends = h2->shutdown >= MK__H2_SHUTDOWN_GOAWAY || h2->goaway_received;
    return !mk__h2_is_terminated(h2) && !(ends && mk_list_empty(&h2->streams));
}

/* ── control.c ── */

/* Queue frames, which are sent at the end of the turn, before all others. */
void mk__h2_control_ack_settings(struct mk__h2 *h2);
void mk__h2_control_ack_ping(struct mk__h2 *h2, const uint8_t payload[8]);
/* Sends the connection preface: our settings, and the window of the connection. */
void mk__h2_control_send_preface(struct mk__h2 *h2);
/* Resets a stream for which there is, or need not be, an entry. Counts errors that the client has caused. */
void mk__h2_control_reset(struct mk__h2 *h2, int32_t id, enum mk__h2_error error);
/* Resets the stream, which is freed after the current frame or step. */
void mk__h2_control_reset_stream(struct mk__h2_stream *s, enum mk__h2_error error);
/* Opens the client's windows by the number of bytes that were consumed; `s` is NULL for bytes of a closed stream. */
void mk__h2_control_consume(struct mk__h2 *h2, struct mk__h2_stream *s, size_t bytes);
/* Terminates the connection with GOAWAY; its streams are not completed. */
void mk__h2_control_terminate(struct mk__h2 *h2, enum mk__h2_error error);
/*
 * Send the shutdown notice, after which requests in flight are still accepted, and then the final GOAWAY. RFC 9113
 * section 6.8.
 */
void mk__h2_control_shutdown_notice(struct mk__h2 *h2);
void mk__h2_control_goaway(struct mk__h2 *h2);

/* ── output.c ── */

/* Sends all that may be sent now. Returns 0, MK_AGAIN (the socket is full) or -errno. */
int mk__h2_output_send(struct mk__h2 *h2);
/* Sends the head of the response, or interim responses, of a stream next. */
static inline void mk__h2_output_add_head(struct mk__h2_stream *s)
{
    if (mk_list_empty(&s->heads))
        mk_list_add(&s->h2->heads, &s->heads);
}

/* ── flood.c ── */

/* Counts an event, and terminates the connection if it exceeds the limit. */
void mk__h2_flood_count(struct mk__h2 *h2, enum mk__h2_flood flood);
/* Logs the flood, which has exceeded the limit `most`, and terminates the connection. */
void mk__h2_flood_terminate(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most);
/* Logs a flood that ends the connection or a stream in another way. Each kind is logged at most once in ten seconds. */
void mk__h2_flood_log(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most);
/* Returns how many acknowledgements of PING and SETTINGS may be queued: more than the rates allow in ten seconds. */
uint64_t mk__h2_flood_acks_max(const struct mk__h2 *h2);
/* Logs how many connections and streams were ended for each kind of flood, if there were any. */
void mk__h2_flood_log_totals(struct mk__context *http);
/* Checks the header of a frame from the client for floods. */
void mk__h2_flood_check_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);

/* ── recv.c ── */

/* A HEADERS frame begins: finds out what becomes of its block. */
void mk__h2_recv_begin_block(struct mk__h2 *h2);
/* Decodes a part of the block. */
void mk__h2_recv_block(struct mk__h2 *h2, struct mk_str bytes);
/* The block is complete. */
void mk__h2_recv_end_block(struct mk__h2 *h2);
/* Gives up the block, if one is being received. */
void mk__h2_recv_drop_block(struct mk__h2 *h2);
/* Handles a complete frame that carries neither head nor body; it is in h2->reader. */
void mk__h2_recv_control(struct mk__h2 *h2);

/* ── stream.c ── */

/* Creates a stream without a request. Returns NULL without memory. */
struct mk__h2_stream *mk__h2_stream_new(struct mk__h2 *h2, int32_t id);
void mk__h2_stream_free(struct mk__h2_stream *s);
/* The stream has ended: it is freed after the current frame or step. */
void mk__h2_stream_end(struct mk__h2_stream *s);
/* Frees the streams that have ended. */
void mk__h2_stream_free_ended(struct mk__h2 *h2);
/* Starts the exchange with its complete head. A `status` other than 0 rejects the request. */
void mk__h2_stream_begin(struct mk__h2_stream *s, const struct mk__h2_request_head *head, int status);
/* Receives body bytes: passes them to the handler, keeps or discards them. */
void mk__h2_stream_data(struct mk__h2_stream *s, struct mk_str chunk);
/* Receives a trailer. */
void mk__h2_stream_trailer(struct mk__h2_stream *s, struct mk_str name, struct mk_str value);
/* Receives the end of the body; resets the stream if it is shorter than announced. */
void mk__h2_stream_data_end(struct mk__h2_stream *s);
/* Continues the exchange after a change, as far as possible. */
void mk__h2_stream_step(struct mk__h2_stream *s);
/* Takes received body bytes. Returns their number. */
size_t mk__h2_stream_read(struct mk__h2_stream *s, void *to, size_t size);
/* Ends the exchange: END_STREAM was sent. */
void mk__h2_stream_complete(struct mk__h2_stream *s);

/* ── timeout.c ── */

/* Initializes the timer of a new stream. */
void mk__h2_timeout_init(struct mk__h2_stream *s);
/* Changes the state and arms the timer. */
void mk__h2_timeout_enter(struct mk__h2_stream *s, enum mk__h2_stream_state state);
/* Finds the states of the streams that may have changed, at the end of a turn. */
void mk__h2_timeout_update(struct mk__h2 *h2);
/* Has the state of a stream found at the end of this turn, or of the next one. */
static inline void mk__h2_timeout_note(struct mk__h2_stream *s)
{
    if (mk_list_empty(&s->changed))
        mk_list_add(&s->h2->changed, &s->changed);
}

#endif
