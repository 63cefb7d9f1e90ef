// SPDX-License-Identifier: Apache-2.0
/*
 * A connection that speaks HTTP/2 (RFC 9113): many exchanges at once, each on a stream of its own.
 *
 *     bytes ─► nghttp2 (h2.c) ─► head (h2_incoming.c), pieces of a body ─► stream (h2_stream.c) ─► request ─► hooks ...
 *     bytes ◄─ nghttp2 (h2.c) ◄─ one DATA frame of the stream whose turn it is (h2_turn.c) ◄─ answer (h2_answer.c)
 *
 * h2.c knows nghttp2 and decides nothing; the others decide, and know no frames. Everything lives by the clock of the
 * connection, a stream until both sides have ended it.
 */
#ifndef MK_HTTP_H2_H
#define MK_HTTP_H2_H

#include "http/conn.h"
#include "http/h2_guard.h"
#include "http/h2_order.h"
#include "http/queue.h"

struct mk__h2;
struct mk__h2_piece;

/* What stands in the way of a stream's end; its limit is that of the wait. */
enum mk__h2_wait {
    MK__H2_HEAD,    /* it has begun, but its head is not whole: the connection waits for that */
    MK__H2_BODY,    /* the rest of the request's body is awaited */
    MK__H2_HANDLER, /* a handler works on the answer, or has paused the body */
    MK__H2_DISK,    /* a file's bytes are being read */
    MK__H2_SEND,    /* the client's windows are closed, or others have their turn */
    MK__H2_TUNNEL,  /* a handler has taken the stream over */
    MK__H2_LINGER,  /* it has been answered; the rest of its body is on its way, and of no use */
    MK__H2_CLOSED,
    MK__H2_WAITS,
};

struct mk__h2_wait_row {
    const char *name;
    uint8_t limit;    /* enum mk__timeout; MK__TIMEOUTS: none of its own */
    uint16_t overdue; /* the status for the client that it has passed; 0: the stream is reset */
    uint16_t next;    /* a bit for each wait that may follow */
};

extern const struct mk__h2_wait_row mk__h2_waits[MK__H2_WAITS];

/* PRIORITY_UPDATE: RFC 9218 section 7.1. */
struct mk__h2_update {
    uint8_t bytes[4 + 60];
    uint8_t len;
};

struct mk__h2_stream {
    struct mk_list link;       /* in h2->streams, by arrival */
    struct mk_list woken;      /* in h2->woken: something has changed */
    struct mk__h2_place place; /* among those that have something to send */
    struct mk__h2 *h2;
    struct mk_request *req; /* NULL: its exchange is over, or has not begun */
    struct mk_timer timer;
    struct mk__parts_reader queue;
    struct mk__h2_piece *first, *last; /* of the body, not taken by the handler yet */
    int32_t id;
    uint8_t wait;         /* enum mk__h2_wait */
    bool armed;           /* the timer runs for it */
    bool ended_in;        /* the client has sent its last byte */
    bool provided;        /* the answer's body is read through the queue */
    bool parked;          /* its body waits for our word to nghttp2 */
    bool reset;           /* by us, for reasons of our own */
    bool told_draining;   /* the tunnel knows */
    bool again;           /* its ready() wants one more call */
    bool fin;             /* the tunnel has ended its side, */
    bool shut;            /* and nothing but that has left: it reads on */
    bool connects;        /* an extended CONNECT: to be taken over, or refused */
    uint64_t armed_bytes; /* as of the last arming, */
    uint64_t armed_taken; /* and what the client had taken of all streams */
    uint64_t turn;        /* of the loop, in which the filters were last told of one */
    char *tunnel_out;     /* bytes of a tunnel that wait for the windows */
    uint32_t tunnel_len;
    uint64_t drained; /* bytes of a body that came when the answer was complete */
};

/* How far the farewell has come. */
enum mk__h2_farewell { MK__H2_STAYS, MK__H2_WARNED, MK__H2_GONE };

struct mk__h2 {
    struct mk__conn *conn;
    void *session; /* nghttp2's */
    struct mk_list streams, woken;
    struct mk__h2_order order;
    struct mk__h2_guard guard;
    struct mk__h2_settings guarded; /* by these, where the settings of now have none: HTTP/2 was switched off */
    struct mk__h2_stream *head_of;  /* whose head is coming */
    struct mk__h2_stream *current;  /* whose DATA may leave now */
    struct mk__h2_room *room;       /* of that head */
    struct mk__h2_update update;    /* a frame of RFC 9218 on its way */
    int32_t last_id, skipped_from;  /* of the client's streams; and the first number of those left out before it */
    uint32_t batch;                 /* bytes that one write may gather: fewer while the client is slow */
    uint32_t sent;                  /* bytes of bodies in this turn */
    uint32_t frame_at;              /* where in the output the frame begins that is being written */
    uint32_t adoptions;             /* as it began; other settings end it, in time */
    uint32_t end_code;              /* of RFC 9113 section 7, once it has ended */
    uint8_t going;                  /* enum mk__h2_farewell */
    uint32_t warned;                /* heads that came since the warning */
    struct mk_timer moment;         /* after the warning, for who has nothing under way; armed once */
    uint64_t answers_max;           /* to PING and SETTINGS that may wait */
    uint32_t continuations;         /* of the head that comes */
    bool weighed;                   /* the frame that comes has been noted already */
    uint64_t updates;               /* of windows, so far */
    uint64_t strays;                /* resets of streams that are closed already */
    bool paused;                    /* the output is full */
    bool asked;                     /* nghttp2 has asked for the current stream's bytes */
    bool later;                     /* others first */
    bool overdue;                   /* the moment is over */
    bool dismissed;                 /* by a handler: mk_response_close() */
    bool receiving;                 /* nghttp2 is reading */
    bool ended;                     /* nothing more is read of it */
};

enum {
    MK__H2_FRAME_BYTES = 16 * 1024, /* of a DATA frame's payload, at most */
    MK__H2_FRAME_HEAD_BYTES = 9,
    MK__H2_ROW_BYTES = 6, /* of a SETTINGS frame */
    MK__H2_OUT_BYTES = 4 * (MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES),
};

/* Connections of a worker, or streams, that were ended for one deed. */
struct mk__h2_toll {
    uint64_t ended, untold; /* in all; since the last line */
    uint64_t told_ms;
};

/* What a worker's connections share. */
struct mk__h2_shared {
    struct mk__scratch out;
    struct mk__h2_room *room;  /* NULL: lent */
    void *callbacks, *options; /* nghttp2's */
    struct mk__h2_toll tolls[MK__H2_ENDS];
};

static inline struct mk__context *mk__h2_http(const struct mk__h2 *h2)
{
    return h2->conn->http;
}

static inline struct mk__h2_shared *mk__h2_shared_of(const struct mk__h2 *h2)
{
    return h2->conn->http->h2_shared;
}

/* ── h2.c: the life of a connection ── */

/* Begins to speak it. 0 or -ENOMEM. */
int mk__h2_open(struct mk__conn *c);
/* The version of nghttp2: "1.52.0" */
const char *mk__h2_library(void);
/* Frees everything; exchanges that are not complete end as aborted. */
void mk__h2_close(struct mk__conn *c);
/* Frees what the worker's connections share. */
void mk__h2_release(struct mk__context *http);

/* ── h2.c: what goes over the wire ── */

/* RFC 9113 section 7 */
enum mk__h2_error {
    MK__H2_NO_ERROR = 0,
    MK__H2_PROTOCOL_ERROR = 1,
    MK__H2_FRAME_SIZE_ERROR = 6,
    MK__H2_CALM = 11,
};

void mk__h2_receive(struct mk__h2 *h2, struct mk_str in);
/* The next frame, until the next call; empty: there is none, or mk__h2_turn_read() has stopped it. 0 or -EIO. */
int mk__h2_pull(struct mk__h2 *h2, struct mk_str *ret_frame);
/* A stream of the client that is there; NULL: none. */
struct mk__h2_stream *mk__h2_find(const struct mk__h2 *h2, int32_t id);
/* Is there anything to read or write yet? */
bool mk__h2_wants(const struct mk__h2 *h2);
/* What the client takes of a stream; of all together: 0. */
int32_t mk__h2_window(const struct mk__h2 *h2, int32_t id);
/* The stream's body may be asked for again. */
void mk__h2_resume(struct mk__h2_stream *s);
/* The connection ends, whatever is under way. */
void mk__h2_end(struct mk__h2 *h2, enum mk__h2_error error);
/* No more requests but those that are on their way to us; then not even those. RFC 9113 section 6.8. */
void mk__h2_warn(struct mk__h2 *h2);
void mk__h2_say_goodbye(struct mk__h2 *h2);

/* Sends the response's head; `interim`: 100, and nothing else. 0 or -ENOMEM. */
int mk__h2_submit_head(struct mk__h2_stream *s, bool interim);
/* Gives bytes of the client's body free, so that it may send as many again. */
void mk__h2_consume(struct mk__h2_stream *s, size_t bytes);
/* Ends the stream before its time; without an error once the answer has left. */
void mk__h2_reset(struct mk__h2_stream *s, bool failed);

/* ── h2_manners.c ── */

/* The client has done something that it must not do too often. */
void mk__h2_manners_note(struct mk__h2 *h2, enum mk__h2_deed deed);
/* That is the end: it has done so more than `most` times. The log tells it, but not each time. */
void mk__h2_manners_end(struct mk__h2 *h2, enum mk__h2_deed deed, uint64_t most);
/* Its connection, or one of its streams, ends for that in another way: the log tells it, but not each time. */
void mk__h2_manners_tell(struct mk__h2 *h2, enum mk__h2_deed deed, uint64_t most);
/* Answers to PING and SETTINGS that may wait for the client: more than it may ask for within ten seconds. */
uint64_t mk__h2_manners_answers_max(const struct mk__h2 *h2);
/* How many connections and streams were ended, into the log; if there were any. */
void mk__h2_manners_sum_up(const struct mk__context *http);
/* A frame of the client begins: is it of any use? */
void mk__h2_manners_weigh(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);

/* ── h2_incoming.c ── */

/* Types of frames: RFC 9113 section 6, RFC 9218 section 7.1. */
enum {
    MK__H2_HEADERS = 1,
    MK__H2_PRIORITY = 2,
    MK__H2_RST_STREAM = 3,
    MK__H2_SETTINGS_FRAME = 4,
    MK__H2_PING = 6,
    MK__H2_WINDOW_UPDATE = 8,
    MK__H2_CONTINUATION = 9,
    MK__H2_PRIORITY_UPDATE = 16,
};

/* A frame of the client begins. */
void mk__h2_incoming_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream);
/* A head begins, h2->head_of: its stream; NULL: no memory. */
struct mk__h2_stream *mk__h2_incoming_head(struct mk__h2 *h2, int32_t id);
/*
 * It begins another stream than the ones it may have: that one is refused; or it `knows` the limit, and it is the end.
 * `knows` is certain only where as many streams are there.
 */
void mk__h2_incoming_crowd(struct mk__h2 *h2, bool knows);
/* A field, of that head or of trailers. */
void mk__h2_incoming_field(struct mk__h2 *h2, int32_t stream_id, struct mk_str name, struct mk_str value);
/* All fields of that head are there. */
void mk__h2_incoming_head_end(struct mk__h2 *h2, bool end_stream);
/* A whole frame that is neither HEADERS nor DATA; `increment` is that of a WINDOW_UPDATE. */
void mk__h2_incoming_control(struct mk__h2 *h2, uint8_t type, int32_t stream_id, bool ack, int32_t increment);
/* Of the payload of a PRIORITY_UPDATE; what is longer than h2->update says nothing that we know. */
void mk__h2_incoming_update_piece(struct mk__h2 *h2, struct mk_str piece);

/* ── h2_turn.c ── */

/* The next bytes of a body go right behind the place of their frame's head. */
enum mk__h2_reading { MK__H2_MORE, MK__H2_LAST, MK__H2_LATER, MK__H2_FULL, MK__H2_FAILED };
enum mk__h2_reading mk__h2_turn_read(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size, size_t *ret_bytes);
/* And this is the head. */
void mk__h2_turn_frame(struct mk__h2 *h2, const void *head, size_t bytes);
/* Of h2->moment: it is over. */
void mk__h2_turn_moment(struct mk_timer *timer);

/* ── h2_stream.c ── */

struct mk__h2_stream *mk__h2_stream_new(struct mk__h2 *h2, int32_t id);
/* nghttp2 has forgotten it. */
void mk__h2_stream_free(struct mk__h2_stream *s);
/* The head is there, or `status` refuses it, then perhaps without a head; more follows unless `ended_in`. */
void mk__h2_stream_begin(struct mk__h2_stream *s, struct mk_str head, int status);
void mk__h2_stream_data(struct mk__h2_stream *s, struct mk_str piece);
void mk__h2_stream_data_end(struct mk__h2_stream *s);
/* Something has changed: goes on as far as that leads. */
void mk__h2_stream_step(struct mk__h2_stream *s);
/* Takes bytes that have come and nobody has taken: the count. */
size_t mk__h2_stream_take(struct mk__h2_stream *s, void *to, size_t size);
/* Our last byte has left. */
void mk__h2_stream_complete(struct mk__h2_stream *s);
/* Would its handler take more of the body? */
bool mk__h2_stream_wants_body(const struct mk_request *req);

/* ── h2_wait.c ── */

/* Of a new stream. */
void mk__h2_wait_init(struct mk__h2_stream *s);
/* It waits for that from now on; the timer is armed. */
void mk__h2_wait_enter(struct mk__h2_stream *s, enum mk__h2_wait wait);
/* Finds out what it waits for, at the end of a turn. */
void mk__h2_wait_settle(struct mk__h2_stream *s);

#endif
