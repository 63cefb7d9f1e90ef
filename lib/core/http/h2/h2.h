// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/2 connection (RFC 9113): many concurrent exchanges, each on its own stream.
 *
 *     bytes ─► nghttp2 (session.c) ─► head (recv.c), chunks of a body ─► stream (stream.c) ─► request ─► hooks ...
 *     bytes ◄─ nghttp2 (session.c) ◄─ a DATA frame of the chosen stream (send.c) ◄─ response (response.c)
 *
 * session.c uses nghttp2 and makes no decisions; the other files make them, and do not use frames. Everything lives as
 * long as the connection; a stream, until both sides have ended it.
 */
#ifndef MK_HTTP_H2_H2_H
#define MK_HTTP_H2_H2_H

#include "http/conn.h"
#include "http/h2/flood_counters.h"
#include "http/h2/priority.h"
#include "http/parts.h"

struct mk__h2;
struct mk__h2_body_chunk;
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

/* PRIORITY_UPDATE: RFC 9218 section 7.1. */
struct mk__h2_priority_update {
    uint8_t bytes[4 + 60];
    uint8_t len;
};

/* The end of a tunnel's output, if its handler ends only that. */
enum mk__h2_fin {
    MK__H2_FIN_NONE,
    MK__H2_FIN_QUEUED, /* the handler has ended its side */
    MK__H2_FIN_SENT,   /* END_STREAM was sent for it; the tunnel can still read */
};

struct mk__h2_stream {
    struct mk_list link;             /* in h2->streams, in the order of arrival */
    struct mk_list woken;            /* in h2->woken, while it has to be stepped */
    struct mk_list changed;          /* in h2->changed, while its state may be another */
    struct mk__h2_priority priority; /* its entry in the scheduler */
    struct mk__h2 *h2;
    struct mk_request *req; /* NULL: the exchange is over, or has not started */
    struct mk_timer timer;
    struct mk__parts_reader parts;
    struct mk__h2_body_chunk *body_first, *body_last; /* body chunks that the handler has not taken yet */
    int32_t id;
    uint8_t state;         /* enum mk__h2_stream_state */
    bool armed;            /* the timer runs for this state */
    bool recv_ended;       /* the client has sent END_STREAM */
    bool has_body;         /* the response has a body */
    bool deferred;         /* nghttp2 waits for mk__h2_resume_data() */
    bool reset;            /* reset by the server */
    uint8_t fin;           /* enum mk__h2_fin */
    bool extended_connect; /* an extended CONNECT: becomes a tunnel or is refused */
    uint64_t armed_bytes;  /* bytes of this exchange when the timer was armed, */
    uint64_t armed_sent;   /* and bytes that the client had received on all streams */
    uint64_t filter_turn;  /* turn of the loop in which the filters were last reset */
    char *tunnel_out;      /* tunnel output that waits for the windows */
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

extern const struct mk__proto mk__h2_proto;

enum {
    MK__H2_FRAME_BYTES = 16 * 1024, /* largest payload of a DATA frame */
    MK__H2_FRAME_HEAD_BYTES = 9,
    MK__H2_SETTINGS_ENTRY_BYTES = 6, /* size of an entry of a SETTINGS frame */
    MK__H2_OUT_FRAMES = 8,
    MK__H2_OUT_BYTES = MK__H2_OUT_FRAMES * (MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES),
};

/* Payloads of the next DATA frames that were read in one call: they are in the output, where their frames will be. */
struct mk__h2_ahead {
    struct mk__h2_stream *stream;
    size_t at, bytes; /* offset of the next payload in the output; bytes of all of them */
};

struct mk__h2 {
    struct mk__conn *conn;
    struct mk__h2_shared *shared;
    void *session; /* nghttp2's */
    struct mk_list streams, woken, changed;
    struct mk__h2_scheduler scheduler;
    struct mk__h2_flood_counters flood_counters;
    struct mk__h2_settings initial_settings;       /* settings at its start; used after HTTP/2 was switched off */
    struct mk__h2_stream *head_stream;             /* the stream whose head is being received */
    struct mk__h2_stream *current;                 /* the stream that may send DATA now */
    struct mk__h2_head_buf *head_buf;              /* buffer of that head */
    struct mk__h2_priority_update priority_update; /* the PRIORITY_UPDATE frame that is being received */
    int32_t last_id, skipped_from; /* highest stream number of the client; first number of those that it skipped last */
    uint32_t batch;                /* bytes to collect for one write; fewer while the client is slow */
    uint32_t sent;                 /* body bytes sent in this turn */
    struct mk__h2_ahead ahead;
    uint32_t frame_at;           /* offset in the output of the frame that is being written */
    uint32_t settings_version;   /* version of the settings at its start; newer settings shut it down */
    uint32_t error_code;         /* RFC 9113 section 7; valid once it was terminated */
    uint8_t shutdown;            /* enum mk__h2_shutdown */
    uint32_t heads_since_notice; /* heads received since the shutdown notice */
    uint8_t grace;               /* enum mk__h2_grace */
    struct mk_timer grace_timer; /* armed once */
    uint64_t acks_max;           /* limit of queued acknowledgements */
    uint32_t continuations;      /* CONTINUATION frames of the current head */
    bool frame_counted;          /* the current frame was counted as a flood already */
    uint64_t window_updates;     /* WINDOW_UPDATE frames received */
    uint64_t stray_resets;       /* resets received for closed streams */
    bool out_full;               /* the output has no room for the next frame */
    bool data_requested;         /* nghttp2 has asked for DATA of the current stream */
    bool turn_again;             /* another turn is needed; other connections run first */
    bool close_requested;        /* a handler called mk_response_close_connection() */
    bool receiving;              /* nghttp2 is processing input */
};

/* How many connections or streams of a worker were ended for one kind of flood. */
struct mk__h2_flood_stats {
    uint64_t ended, unlogged; /* in total; since the last log line */
    uint64_t logged_ms;
};

/* Data that the HTTP/2 connections of a worker share. */
struct mk__h2_shared {
    struct mk__scratch out;
    struct mk__h2_head_buf *head_buf; /* NULL: a connection uses it */
    void *callbacks, *options;        /* nghttp2's */
    struct mk__h2_flood_stats flood_stats[MK__H2_FLOODS];
};

static inline struct mk__context *mk__h2_http(const struct mk__h2 *h2)
{
    return h2->conn->http;
}

/* The session of a connection; NULL: it speaks another protocol, or its session has ended. */
static inline struct mk__h2 *mk__h2_of(const struct mk__conn *c)
{
    return c->proto == &mk__h2_proto ? c->proto_data : NULL;
}

static inline bool mk__h2_is_terminated(const struct mk__h2 *h2)
{
    return h2->shutdown == MK__H2_SHUTDOWN_TERMINATED;
}

/* The place of the data that the connections of a worker share; NULL in it: there is none. */
static inline void **mk__h2_shared_slot(struct mk__context *http)
{
    return &mk__context_find_proto(http, &mk__h2_proto)->shared;
}

static inline struct mk__h2_shared *mk__h2_shared_of(const struct mk__h2 *h2)
{
    return h2->shared;
}

/* ── session.c: opening and closing ── */

/* Starts the HTTP/2 session of a connection. Returns 0 or -ENOMEM. */
int mk__h2_open(struct mk__conn *c);
/* Returns the version of libnghttp2: "1.52.0". */
const char *mk__h2_library_version(void);
/* Frees the session; incomplete exchanges end as aborted. */
void mk__h2_close(struct mk__conn *c);
/* Frees the data that the connections of a worker share. */
void mk__h2_release_shared(struct mk__context *http);

/* ── session.c: frames ── */

/* RFC 9113 section 7 */
enum mk__h2_error {
    MK__H2_ERR_NO_ERROR = 0,
    MK__H2_ERR_PROTOCOL = 1,
    MK__H2_ERR_FRAME_SIZE = 6,
    MK__H2_ERR_ENHANCE_YOUR_CALM = 11,
};

/* Passes received bytes to nghttp2. */
void mk__h2_receive(struct mk__h2 *h2, struct mk_str in);
/*
 * Gets the next frame to send, valid until the next call. It is empty if there is none, or if mk__h2_send_read_body()
 * has stopped it. Returns 0 or -EIO.
 */
int mk__h2_next_frame(struct mk__h2 *h2, struct mk_str *ret_frame);
/* Returns an open stream of the client, or NULL. */
struct mk__h2_stream *mk__h2_find_stream(const struct mk__h2 *h2, int32_t id);
/* Returns whether the session has anything left to read or write. */
bool mk__h2_wants_io(const struct mk__h2 *h2);
/* Returns the client's window for a stream, or for the connection (`id` 0). */
int32_t mk__h2_remote_window(const struct mk__h2 *h2, int32_t id);
/* Lets nghttp2 ask for the stream's body again. */
void mk__h2_resume_data(struct mk__h2_stream *s);
/* Terminates the connection with GOAWAY; its streams are not completed. */
void mk__h2_terminate(struct mk__h2 *h2, enum mk__h2_error error);
/*
 * Send the shutdown notice, after which requests in flight are still accepted, and then the final GOAWAY. RFC 9113
 * section 6.8.
 */
void mk__h2_submit_shutdown_notice(struct mk__h2 *h2);
void mk__h2_submit_goaway(struct mk__h2 *h2);

/* Sends the head of the response or, unless it is NULL, an interim response. Returns 0 or -ENOMEM. */
int mk__h2_submit_head(struct mk__h2_stream *s, const struct mk__interim *interim);
/* Opens the window for the client by the number of bytes that were consumed. */
void mk__h2_consume(struct mk__h2_stream *s, size_t bytes);
/* Resets the stream: with INTERNAL_ERROR if it has failed, or with NO_ERROR after the response. */
void mk__h2_reset_stream(struct mk__h2_stream *s, bool failed);

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

/* Frame types: RFC 9113 section 6, RFC 9218 section 7.1. */
enum {
    MK__H2_FRAME_HEADERS = 1,
    MK__H2_FRAME_PRIORITY = 2,
    MK__H2_FRAME_RST_STREAM = 3,
    MK__H2_FRAME_SETTINGS = 4,
    MK__H2_FRAME_PING = 6,
    MK__H2_FRAME_WINDOW_UPDATE = 8,
    MK__H2_FRAME_CONTINUATION = 9,
    MK__H2_FRAME_PRIORITY_UPDATE = 16,
};

/* Checks a frame from the client; called with its header, before its payload. */
void mk__h2_recv_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);
/* Starts to receive a head (h2->head_stream). Returns its stream; NULL without memory. */
struct mk__h2_stream *mk__h2_recv_begin_head(struct mk__h2 *h2, int32_t id);
/*
 * Logs a stream that exceeds the limit of concurrent streams: it is refused, or if the client `knows_limit` the
 * connection is closed. `knows_limit` is certain only if as many streams are open.
 */
void mk__h2_recv_excess_stream(struct mk__h2 *h2, bool knows_limit);
/* Adds a field to the current head, or to the trailers of another stream. */
void mk__h2_recv_header(struct mk__h2 *h2, int32_t stream_id, struct mk_str name, struct mk_str value);
/* Ends the current head and starts the request. */
void mk__h2_recv_end_head(struct mk__h2 *h2, bool end_stream);
/* Handles a complete frame other than HEADERS and DATA; `increment`: of a WINDOW_UPDATE. */
void mk__h2_recv_control(struct mk__h2 *h2, uint8_t type, int32_t stream_id, bool ack, int32_t increment);
/*
 * Adds a chunk of the payload of a PRIORITY_UPDATE. Bytes beyond h2->priority_update, which hold nothing that this
 * server knows, are ignored.
 */
void mk__h2_recv_priority_update(struct mk__h2 *h2, struct mk_str chunk);

/* ── send.c ── */

/*
 * Reads the next body bytes of a stream into the output, leaving room for the frame header before them. DEFERRED: not
 * now; FULL: the output must be flushed first.
 */
enum mk__h2_read_result {
    MK__H2_READ_MORE,
    MK__H2_READ_LAST,
    MK__H2_READ_DEFERRED,
    MK__H2_READ_FULL,
    MK__H2_READ_FAILED
};
enum mk__h2_read_result mk__h2_send_read_body(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size,
                                              size_t *ret_bytes);
/* Writes the frame header into that room. */
void mk__h2_send_put_frame_head(struct mk__h2 *h2, const void *head, size_t bytes);
/* Callback of h2->grace_timer. */
void mk__h2_send_on_grace_timer(struct mk_timer *timer);

/* ── stream.c ── */

/* Creates a stream without a request. Returns NULL without memory. */
struct mk__h2_stream *mk__h2_stream_new(struct mk__h2 *h2, int32_t id);
/* Frees a stream that nghttp2 has closed. */
void mk__h2_stream_free(struct mk__h2_stream *s);
/*
 * Starts the exchange with its complete head. A `status` other than 0 rejects the request; `head` may then be empty.
 * More follows unless `recv_ended`.
 */
void mk__h2_stream_begin(struct mk__h2_stream *s, struct mk_str method, struct mk_str head, int status);
/* Receives body bytes: passes them to the handler, keeps or discards them. */
void mk__h2_stream_data(struct mk__h2_stream *s, struct mk_str chunk);
/* Receives a trailer, of a stream that may be NULL. */
void mk__h2_stream_trailer(struct mk__h2_stream *s, struct mk_str name, struct mk_str value);
/* Receives the end of the body. */
void mk__h2_stream_data_end(struct mk__h2_stream *s);
/* Continues the exchange after a change, as far as possible. */
void mk__h2_stream_step(struct mk__h2_stream *s);
/* Takes received body bytes. Returns their number. */
size_t mk__h2_stream_read(struct mk__h2_stream *s, void *to, size_t size);
/* The first interim response that waits was sent or, without one, the head of the response, of `bytes` in its frame. */
void mk__h2_stream_head_sent(struct mk__h2_stream *s, size_t bytes);
/* Ends the exchange: the last byte of the response was sent. */
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
