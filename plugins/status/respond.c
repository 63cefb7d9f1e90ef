// SPDX-License-Identifier: Apache-2.0
/*
 * Sends the text of a snapshot. The exchange and the snapshot may end in either order; the last one frees
 * the reply.
 */
#include "report.h"

#include <errno.h>

struct reply {
    struct mk_request *req; /* NULL: the exchange is over */
    struct state *state;
    const struct state_worker *worker;
    enum respond_kind kind;
    struct snapshot *snapshot; /* NULL: it is over */
    struct mk_buf text;
    unsigned holders;
};

static void release_reply(struct reply *r)
{
    if (--r->holders)
        return;
    mk_buf_release(&r->text);
    r->state->replies--;
    mk_account_free(NULL, r, sizeof(*r));
}

/* ── the snapshot ── */

static void render_reply(const struct snapshot_worker *workers, unsigned n, struct mk_buf *out, void *ctx)
{
    const struct reply *r = ctx;
    if (r->kind == RESPOND_JSON)
        render_document(r->worker, false, workers, n, out);
    else
        render_metrics(r->worker, r->kind == RESPOND_OPENMETRICS ? METRICS_OPENMETRICS : METRICS_TEXT, workers, n, out);
}

/* Adds the headers that all responses of the plugin have; both values are literals. Returns 0 or -errno. */
static int add_headers(struct mk_request *req, struct mk_str type, struct mk_str cache_control)
{
    static const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("X-Content-Type-Options"), MK_STR("nosniff")},
        {MK_STR("Vary"), MK_STR("Accept")},
    };
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), type);
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("Cache-Control"), cache_control);
    for (unsigned i = 0; err == 0 && i < MK_COUNT_OF(rows); i++)
        err = mk_response_header_ref(req, rows[i].name, rows[i].value);
    return err;
}

static struct mk_str get_type(enum respond_kind kind)
{
    if (kind == RESPOND_JSON)
        return MK_STR("application/json");
    return metrics_type(kind == RESPOND_OPENMETRICS ? METRICS_OPENMETRICS : METRICS_TEXT);
}

static void send_reply(struct mk_buf text, void *ctx)
{
    struct reply *r = ctx;
    r->snapshot = NULL;
    r->text = text;
    if (text.err || add_headers(r->req, get_type(r->kind), MK_STR("no-store")) < 0) {
        mk_request_log(r->req, MK_LOG_ERROR, "status: cannot make the response: %s",
                       strerror(text.err ? -text.err : ENOMEM));
        mk_response_error(r->req, 503);
        return;
    }
    if (mk_response_write_ref(r->req, mk_buf_str(&r->text)) < 0)
        mk_response_abort(r->req);
    else
        mk_response_end(r->req);
}

static void end_snapshot(void *ctx)
{
    release_reply(ctx);
}

static const struct snapshot_callbacks reply_callbacks = {render_reply, send_reply, end_snapshot};

/* ── the exchange ── */

static void end_reply(void *ctx)
{
    struct reply *r = ctx;
    r->req = NULL;
    if (r->snapshot)
        snapshot_cancel(r->snapshot);
    release_reply(r);
}

void respond_start(struct mk_request *req, struct state_worker *w, enum respond_kind kind)
{
    struct state *state = w->state;
    struct reply *r = NULL;
    if (state->replies++ < STATE_REPLIES_MAX)
        r = mk_account_alloc(NULL, sizeof(*r));
    if (!r) {
        state->replies--;
        mk_response_error(req, 503);
        return;
    }
    *r = (struct reply){.req = req, .state = state, .worker = w, .kind = kind, .holders = 1};
    mk_buf_init(&r->text, 0);
    if (mk_arena_defer(mk_request_arena(req), end_reply, r) < 0) {
        release_reply(r);
        mk_response_error(req, 503);
        return;
    }
    r->holders++;
    r->snapshot = snapshot_start(w->own.thread, w->own.worker, kind == RESPOND_JSON, &reply_callbacks, r);
    if (!r->snapshot) {
        release_reply(r);
        mk_response_error(req, 503);
    }
}

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

static const struct snapshot_callbacks event_callbacks = {render_event, send_event, ignore_end};

static void make_event(struct mk_event_streams *streams)
{
    struct state_worker *w = MK_CONTAINER_OF(streams, struct state_worker, streams);
    if (!w->snapshot)
        w->snapshot = snapshot_start(w->own.thread, w->own.worker, w->generation->settings->paths, &event_callbacks, w);
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
