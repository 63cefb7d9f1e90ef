// SPDX-License-Identifier: Apache-2.0
/*
 * The events of the live page: the document, each second (<monkey/event_stream.h>). While a worker has a stream it
 * snapshots of the server once a second, for all of its streams.
 */
#ifndef STATUS_STREAM_H
#define STATUS_STREAM_H

#include "state.h"

/* Prepares the worker for streams; in its worker_start. */
void stream_init(struct state_worker *w);
/* Responds with a stream, or with 503 if `MaxPages` are open. */
void stream_start(struct mk_request *req, struct state_worker *w);

#endif
