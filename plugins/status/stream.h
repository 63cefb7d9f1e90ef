// SPDX-License-Identifier: Apache-2.0
/*
 * The events of the live page (https://html.spec.whatwg.org/multipage/server-sent-events.html): the document, each
 * second. While a worker has a stream it looks at the server once a second, for all of its streams; without one it has
 * no timer. A client that reads slowly gets the newest event when it has taken the one before.
 */
#ifndef STATUS_STREAM_H
#define STATUS_STREAM_H

#include "state.h"

enum { STREAM_INTERVAL_MS = 1000 };

/* Prepares the worker for streams; in its worker_start. */
void stream_init(struct state_worker *w);
/* Ends all streams of the worker, whose clients then connect again; in worker_retire. */
void stream_retire(struct state_worker *w);
/* Responds with a stream, or with 503 if `MaxPages` are open. */
void stream_start(struct mk_request *req, struct state_worker *w);

#endif
