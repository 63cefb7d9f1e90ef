// SPDX-License-Identifier: Apache-2.0
/*
 * A connection that speaks HTTP/2 (RFC 9113): many exchanges at once, each on a stream of its own.
 *
 *     bytes ─► nghttp2 (session.c) ─► head (recv.c), pieces of a body ─► stream (stream.c) ─► request ─► hooks ...
 *     bytes ◄─ nghttp2 (session.c) ◄─ one DATA frame of the stream whose turn it is (send.c) ◄─ answer (response.c)
 *
 * session.c knows nghttp2 and decides nothing; the others decide, and know no frames. Everything lives by the clock of
 * the connection, a stream until both sides have ended it.
 */
#ifndef MK_HTTP_H2_H2_H
#define MK_HTTP_H2_H2_H

#include "http/conn.h"
#include "http/h2/flood.h"
#include "http/h2/priority.h"
#include "http/parts.h"

struct mk__h2;
struct mk__h2_body_chunk;

/* What stands in the way of a stream's end; its limit is that of the wait. */
enum mk__h2_stream_state {
    MK__H2_STREAM_READ_HEAD, /* it has begun, but its head is not whole: the connection waits for that */
    MK__H2_STREAM_READ_BODY, /* the rest of the request's body is awaited */
    MK__H2_STREAM_HANDLER,   /* a handler works on the answer, or has paused the body */
    MK__H2_STREAM_DISK,      /* a file's bytes are being read */
    MK__H2_STREAM_WRITE,     /* the client's windows are closed, or others have their turn */
    MK__H2_STREAM_TUNNEL,    /* a handler has taken the stream over */
    MK__H2_STREAM_LINGER,    /* it has been answered; the rest of its body is on its way, and of no use */
    MK__H2_STREAM_CLOSED,
    MK__H2_STREAM_STATES,
};

struct mk__h2_stream_state_info {
    const char *name;
    uint8_t timeout;         /* enum mk__timeout; MK__TIMEOUTS: none of its own */
    uint16_t timeout_status; /* the status for the client that it has passed; 0: the stream is reset */
    uint16_t next;           /* a bit for each wait that may follow */
};

extern const struct mk__h2_stream_state_info mk__h2_stream_states[MK__H2_STREAM_STATES];

/* PRIORITY_UPDATE: RFC 9218 section 7.1. */
struct mk__h2_priority_update {
    uint8_t bytes[4 + 60];
    uint8_t len;
};

struct mk__h2_stream {
    struct mk_list link;             /* in h2->streams, by arrival */
    struct mk_list woken;            /* in h2->woken: something has changed */
    struct mk__h2_priority priority; /* among those that have something to send */
    struct mk__h2 *h2;
    struct mk_request *req; /* NULL: its exchange is over, or has not begun */
    struct mk_timer timer;
    struct mk__parts_reader parts;
    struct mk__h2_body_chunk *body_first, *body_last; /* of the body, not taken by the handler yet */
    int32_t id;
    uint8_t state;         /* enum mk__h2_stream_state */
    bool armed;            /* the timer runs for it */
    bool recv_ended;       /* the client has sent its last byte */
    bool has_body;         /* the answer's body is read through the queue */
    bool deferred;         /* its body waits for our word to nghttp2 */
    bool reset;            /* by us, for reasons of our own */
    bool drain_notified;   /* the tunnel knows */
    bool ready_again;      /* its ready() wants one more call */
    bool fin_queued;       /* the tunnel has ended its side, */
    bool fin_sent;         /* and nothing but that has left: it reads on */
    bool extended_connect; /* an extended CONNECT: to be taken over, or refused */
    uint64_t armed_bytes;  /* as of the last arming, */
    uint64_t armed_sent;   /* and what the client had taken of all streams */
    uint64_t filter_turn;  /* of the loop, in which the filters were last told of one */
    char *tunnel_out;      /* bytes of a tunnel that wait for the windows */
    uint32_t tunnel_len;
    uint64_t discarded_bytes; /* bytes of a body that came when the answer was complete */
};

/* How far the farewell has come. */
enum mk__h2_shutdown { MK__H2_SHUTDOWN_NONE, MK__H2_SHUTDOWN_NOTICE, MK__H2_SHUTDOWN_GOAWAY };

extern const struct mk__proto mk__h2_proto;

struct mk__h2 {
    struct mk__conn *conn;
    void *session; /* nghttp2's */
    struct mk_list streams, woken;
    struct mk__h2_scheduler scheduler;
    struct mk__h2_flood_counters flood_counters;
    struct mk__h2_settings
        initial_settings;              /* by these, where the settings of now have none: HTTP/2 was switched off */
    struct mk__h2_stream *head_stream; /* whose head is coming */
    struct mk__h2_stream *current;     /* whose DATA may leave now */
    struct mk__h2_head_buf *head_buf;  /* of that head */
    struct mk__h2_priority_update priority_update; /* a frame of RFC 9218 on its way */
    int32_t last_id, skipped_from; /* of the client's streams; and the first number of those left out before it */
    uint32_t batch;                /* bytes that one write may gather: fewer while the client is slow */
    uint32_t sent;                 /* bytes of bodies in this turn */
    uint32_t frame_at;             /* where in the output the frame begins that is being written */
    uint32_t settings_version;     /* as it began; other settings end it, in time */
    uint32_t error_code;           /* of RFC 9113 section 7, once it has ended */
    uint8_t shutdown;              /* enum mk__h2_shutdown */
    uint32_t heads_since_notice;   /* heads that came since the warning */
    struct mk_timer grace_timer;   /* after the warning, for who has nothing under way; armed once */
    uint64_t acks_max;             /* to PING and SETTINGS that may wait */
    uint32_t continuations;        /* of the head that comes */
    bool frame_counted;            /* the frame that comes has been noted already */
    uint64_t window_updates;       /* of windows, so far */
    uint64_t stray_resets;         /* resets of streams that are closed already */
    bool out_full;                 /* the output is full */
    bool data_requested;           /* nghttp2 has asked for the current stream's bytes */
    bool turn_again;               /* others first */
    bool grace_over;               /* the moment is over */
    bool close_requested;          /* by a handler: mk_response_close_connection() */
    bool receiving;                /* nghttp2 is reading */
    bool terminated;               /* nothing more is read of it */
};

enum {
    MK__H2_FRAME_BYTES = 16 * 1024, /* of a DATA frame's payload, at most */
    MK__H2_FRAME_HEAD_BYTES = 9,
    MK__H2_SETTINGS_ENTRY_BYTES = 6, /* of a SETTINGS frame */
    MK__H2_OUT_BYTES = 4 * (MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES),
};

/* Connections of a worker, or streams, that were ended for one deed. */
struct mk__h2_flood_stats {
    uint64_t ended, unlogged; /* in all; since the last line */
    uint64_t logged_ms;
};

/* What a worker's connections share. */
struct mk__h2_shared {
    struct mk__scratch out;
    struct mk__h2_head_buf *head_buf; /* NULL: lent */
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

static inline struct mk__h2_shared *mk__h2_shared_of(const struct mk__h2 *h2)
{
    return h2->conn->http->second_shared;
}

/* ── session.c: the life of a connection ── */

/* Begins to speak it. 0 or -ENOMEM. */
int mk__h2_open(struct mk__conn *c);
/* The version of nghttp2: "1.52.0" */
const char *mk__h2_library_version(void);
/* Frees everything; exchanges that are not complete end as aborted. */
void mk__h2_close(struct mk__conn *c);
/* Frees what the worker's connections share. */
void mk__h2_release_shared(struct mk__context *http);

/* ── session.c: what goes over the wire ── */

/* RFC 9113 section 7 */
enum mk__h2_error {
    MK__H2_ERR_NO_ERROR = 0,
    MK__H2_ERR_PROTOCOL = 1,
    MK__H2_ERR_FRAME_SIZE = 6,
    MK__H2_ERR_ENHANCE_YOUR_CALM = 11,
};

void mk__h2_receive(struct mk__h2 *h2, struct mk_str in);
/* The next frame, until the next call; empty: there is none, or mk__h2_send_read_body() has stopped it. 0 or -EIO. */
int mk__h2_next_frame(struct mk__h2 *h2, struct mk_str *ret_frame);
/* A stream of the client that is there; NULL: none. */
struct mk__h2_stream *mk__h2_find_stream(const struct mk__h2 *h2, int32_t id);
/* Is there anything to read or write yet? */
bool mk__h2_wants_io(const struct mk__h2 *h2);
/* What the client takes of a stream; of all together: 0. */
int32_t mk__h2_remote_window(const struct mk__h2 *h2, int32_t id);
/* The stream's body may be asked for again. */
void mk__h2_resume_data(struct mk__h2_stream *s);
/* The connection ends, whatever is under way. */
void mk__h2_terminate(struct mk__h2 *h2, enum mk__h2_error error);
/* No more requests but those that are on their way to us; then not even those. RFC 9113 section 6.8. */
void mk__h2_submit_shutdown_notice(struct mk__h2 *h2);
void mk__h2_submit_goaway(struct mk__h2 *h2);

/* Sends the response's head; `interim`: 100, and nothing else. 0 or -ENOMEM. */
int mk__h2_submit_head(struct mk__h2_stream *s, bool interim);
/* Gives bytes of the client's body free, so that it may send as many again. */
void mk__h2_consume(struct mk__h2_stream *s, size_t bytes);
/* Ends the stream before its time; without an error once the answer has left. */
void mk__h2_reset_stream(struct mk__h2_stream *s, bool failed);

/* ── flood.c ── */

/* The client has done something that it must not do too often. */
void mk__h2_flood_count(struct mk__h2 *h2, enum mk__h2_flood flood);
/* That is the end: it has done so more than `most` times. The log tells it, but not each time. */
void mk__h2_flood_terminate(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most);
/* Its connection, or one of its streams, ends for that in another way: the log tells it, but not each time. */
void mk__h2_flood_log(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most);
/* Answers to PING and SETTINGS that may wait for the client: more than it may ask for within ten seconds. */
uint64_t mk__h2_flood_acks_max(const struct mk__h2 *h2);
/* How many connections and streams were ended, into the log; if there were any. */
void mk__h2_flood_log_totals(const struct mk__context *http);
/* A frame of the client begins: is it of any use? */
void mk__h2_flood_check_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);

/* ── recv.c ── */

/* Types of frames: RFC 9113 section 6, RFC 9218 section 7.1. */
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

/* A frame of the client begins. */
void mk__h2_recv_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);
/* A head begins, h2->head_stream: its stream; NULL: no memory. */
struct mk__h2_stream *mk__h2_recv_begin_head(struct mk__h2 *h2, int32_t id);
/*
 * It begins another stream than the ones it may have: that one is refused; or it `knows_limit` the limit, and it is the
 * end. `knows_limit` is certain only where as many streams are there.
 */
void mk__h2_recv_excess_stream(struct mk__h2 *h2, bool knows_limit);
/* A field, of that head or of trailers. */
void mk__h2_recv_header(struct mk__h2 *h2, int32_t stream_id, struct mk_str name, struct mk_str value);
/* All fields of that head are there. */
void mk__h2_recv_end_head(struct mk__h2 *h2, bool end_stream);
/* A whole frame that is neither HEADERS nor DATA; `increment` is that of a WINDOW_UPDATE. */
void mk__h2_recv_control(struct mk__h2 *h2, uint8_t type, int32_t stream_id, bool ack, int32_t increment);
/* Of the payload of a PRIORITY_UPDATE; what is longer than h2->priority_update says nothing that we know. */
void mk__h2_recv_priority_update(struct mk__h2 *h2, struct mk_str chunk);

/* ── send.c ── */

/* The next bytes of a body go right behind the place of their frame's head. */
enum mk__h2_read_result {
    MK__H2_READ_MORE,
    MK__H2_READ_LAST,
    MK__H2_READ_DEFERRED,
    MK__H2_READ_FULL,
    MK__H2_READ_FAILED
};
enum mk__h2_read_result mk__h2_send_read_body(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size,
                                              size_t *ret_bytes);
/* And this is the head. */
void mk__h2_send_put_frame_head(struct mk__h2 *h2, const void *head, size_t bytes);
/* Of h2->grace_timer: it is over. */
void mk__h2_send_on_grace_timer(struct mk_timer *timer);

/* ── stream.c ── */

struct mk__h2_stream *mk__h2_stream_new(struct mk__h2 *h2, int32_t id);
/* nghttp2 has forgotten it. */
void mk__h2_stream_free(struct mk__h2_stream *s);
/* The head is there, or `status` refuses it, then perhaps without a head; more follows unless `recv_ended`. */
void mk__h2_stream_begin(struct mk__h2_stream *s, struct mk_str head, int status);
void mk__h2_stream_data(struct mk__h2_stream *s, struct mk_str chunk);
void mk__h2_stream_data_end(struct mk__h2_stream *s);
/* Something has changed: goes on as far as that leads. */
void mk__h2_stream_step(struct mk__h2_stream *s);
/* Takes bytes that have come and nobody has taken: the count. */
size_t mk__h2_stream_read(struct mk__h2_stream *s, void *to, size_t size);
/* Our last byte has left. */
void mk__h2_stream_complete(struct mk__h2_stream *s);
/* Would its handler take more of the body? */
bool mk__h2_stream_wants_body(const struct mk_request *req);

/* ── timeout.c ── */

/* Of a new stream. */
void mk__h2_timeout_init(struct mk__h2_stream *s);
/* It waits for that from now on; the timer is armed. */
void mk__h2_timeout_enter(struct mk__h2_stream *s, enum mk__h2_stream_state state);
/* Finds out what it waits for, at the end of a turn. */
void mk__h2_timeout_update(struct mk__h2_stream *s);

#endif
