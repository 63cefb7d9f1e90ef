// SPDX-License-Identifier: Apache-2.0
/*
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) for pages that show what a plugin
 * counts: an event each second, which all clients of a worker get. A worker without clients has no timer. A client that
 * reads slowly gets the newest event when it has taken the one before. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_EVENT_STREAM_H
#define MONKEY_EVENT_STREAM_H

#include "../base/buf.h"
#include "../base/list.h"
#include "../loop.h"
#include "../plugin.h"

MK_C_BEGIN

enum { MK_EVENT_STREAM_MS = 1000 };

struct mk_event_streams;

/* How a plugin makes events; in the worker's thread. */
struct mk_event_maker {
    /* Makes an event: calls mk_event_streams_send() before it returns, later, or not at all. */
    void (*make)(struct mk_event_streams *s);
    /* The last client has left: what make() has started must not send any more. NULL: it starts nothing. */
    void (*cancel)(struct mk_event_streams *s);
};

/* The streams of a plugin in a worker. The caller's storage, whose members are ours. */
struct mk_event_streams {
    const struct mk_event_maker *maker;
    struct mk_worker *worker;
    unsigned *open; /* the streams of all workers; changed atomically */
    struct mk_list list;
    struct mk_timer timer;
    struct mk_event_text *newest; /* NULL: none yet */
    bool is_retired;
};

/* Prepares the streams; in worker_start. `open` is shared by the process. */
MK_API void mk_event_streams_init(struct mk_event_streams *s, struct mk_worker *worker, unsigned *open,
                                  const struct mk_event_maker *maker);
/* Responds with a stream, or with 503 if `max` are open or without memory. HEAD gets no stream. */
MK_API void mk_event_streams_answer(struct mk_event_streams *s, struct mk_request *req, unsigned max);
/* Sends an event, "data: TEXT\n\n", to all streams. Takes the buffer; one with an error is left out. */
MK_API void mk_event_streams_send(struct mk_event_streams *s, struct mk_buf text);
/* Ends all streams, whose clients then connect again; in worker_retire. */
MK_API void mk_event_streams_retire(struct mk_event_streams *s);

MK_C_END

#endif
