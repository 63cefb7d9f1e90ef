// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the events of a worker's streams (stream.h).
 */
#include "stream.h"

#include "render.h"

static void render_event(const struct snapshot_worker *workers, unsigned n, struct mk_buf *out, void *ctx)
{
    mk_buf_adds(out, MK_STR("data: "));
    render_document(ctx, true, workers, n, out);
    mk_buf_adds(out, MK_STR("\n\n"));
}

static void send_event(struct mk_buf text, void *ctx)
{
    struct state_worker *w = ctx;
    w->snapshot = NULL;
    mk_event_streams_send(&w->streams, text);
}

static void ignore_end(void *ctx)
{
    (void)ctx;
}

static const struct snapshot_callbacks callbacks = {render_event, send_event, ignore_end};

static void make_event(struct mk_event_streams *streams)
{
    struct state_worker *w = MK_CONTAINER_OF(streams, struct state_worker, streams);
    if (!w->snapshot)
        w->snapshot = snapshot_start(w->own.thread, w->own.worker, w->generation->settings->paths, &callbacks, w);
}

static void cancel_event(struct mk_event_streams *streams)
{
    struct state_worker *w = MK_CONTAINER_OF(streams, struct state_worker, streams);
    if (w->snapshot)
        snapshot_cancel(w->snapshot);
    w->snapshot = NULL;
}

static const struct mk_event_maker maker = {make_event, cancel_event};

void stream_init(struct state_worker *w)
{
    mk_event_streams_init(&w->streams, w->own.worker, &w->state->streams, &maker);
}

void stream_start(struct mk_request *req, struct state_worker *w)
{
    mk_event_streams_answer(&w->streams, req, (unsigned)w->generation->settings->streams_max);
}
