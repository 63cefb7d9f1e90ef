// SPDX-License-Identifier: Apache-2.0
/*
 * Makes events and sends them to the streams of a worker (stream.h).
 */
#include "stream.h"

#include "render.h"
#include "respond.h"

#include <assert.h>
#include <errno.h>

/* What a browser waits before it connects again, in milliseconds. */
#define STREAM_BEGIN "retry: 1000\n\n"

/* An event that several streams send. */
struct stream_event {
    struct mk_buf text;
    unsigned refs;
};

struct stream {
    struct mk_list node;
    struct state_worker *worker;
    struct mk_request *req;
    struct stream_event *event; /* being sent; NULL: none */
    struct stream_event *last;  /* the last one that was begun: only compared */
    size_t at;                  /* in `event`, or in STREAM_BEGIN */
    bool begun;
};

static void put_event(struct stream_event *event)
{
    if (!event || --event->refs)
        return;
    mk_buf_release(&event->text);
    mk_account_free(NULL, event, sizeof(*event));
}

/* ── events ── */

static void render_event(const struct look_worker *workers, unsigned n, struct mk_buf *out, void *ctx)
{
    mk_buf_adds(out, MK_STR("data: "));
    render_document(ctx, true, workers, n, out);
    mk_buf_adds(out, MK_STR("\n\n"));
}

static void wake_streams(struct state_worker *w)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&w->streams, n, save)
        mk_response_wake(MK_CONTAINER_OF(n, struct stream, node)->req);
}

static void keep_event(struct mk_buf text, void *ctx)
{
    struct state_worker *w = ctx;
    struct stream_event *event = text.err ? NULL : mk_account_alloc(NULL, sizeof(*event));
    w->look = NULL;
    if (!event) {
        mk_buf_release(&text);
        return; /* the next second may have memory */
    }
    *event = (struct stream_event){.text = text, .refs = 1};
    put_event(w->event);
    w->event = event;
    wake_streams(w);
}

static void ignore_end(void *ctx)
{
    (void)ctx;
}

static const struct look_callbacks callbacks = {render_event, keep_event, ignore_end};

static void tick(struct mk_timer *timer)
{
    struct state_worker *w = MK_CONTAINER_OF(timer, struct state_worker, timer);
    assert(!mk_list_empty(&w->streams));
    mk_timer_arm(w->own.thread->loop, timer, STREAM_INTERVAL_MS);
    if (!w->look)
        w->look = look_start(w->own.thread, w->own.worker, w->generation->settings->paths, &callbacks, w);
}

/* ── streams ── */

static size_t copy_text(struct stream *s, struct mk_str text, char *to, size_t size)
{
    size_t n = text.len - s->at < size ? text.len - s->at : size;
    memcpy(to, text.p + s->at, n);
    s->at += n;
    return n;
}

static ssize_t send_event(struct stream *s, char *to, size_t size)
{
    struct mk_str text = mk_buf_str(&s->event->text);
    size_t n = copy_text(s, text, to, size);
    if (s->at == text.len) {
        put_event(s->event);
        s->event = NULL;
    }
    return (ssize_t)n;
}

static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct stream *s = ctx;
    struct state_worker *w = s->worker;
    (void)req;
    if (!s->begun) {
        size_t n = copy_text(s, MK_STR(STREAM_BEGIN), to, size);
        s->begun = s->at == sizeof(STREAM_BEGIN) - 1;
        return (ssize_t)n;
    }
    if (s->event)
        return send_event(s, to, size);
    if (w->retired)
        return 0;
    if (!w->event || w->event == s->last)
        return -EAGAIN;
    s->last = s->event = w->event;
    s->event->refs++;
    s->at = 0;
    return send_event(s, to, size);
}

/* The last stream has ended: the worker has no timer any more. */
static void stop_events(struct state_worker *w)
{
    mk_timer_cancel(&w->timer);
    if (w->look)
        look_cancel(w->look);
    w->look = NULL;
    put_event(w->event);
    w->event = NULL;
}

static void end_stream(void *ctx)
{
    struct stream *s = ctx;
    struct state_worker *w = s->worker;
    put_event(s->event);
    mk_list_del(&s->node);
    w->state->streams--;
    if (mk_list_empty(&w->streams))
        stop_events(w);
}

/* Returns NULL without memory. */
static struct stream *open_stream(struct mk_request *req, struct state_worker *w)
{
    struct stream *s = mk_arena_alloc(mk_request_arena(req), sizeof(*s));
    if (!s || mk_arena_defer(mk_request_arena(req), end_stream, s) < 0)
        return NULL;
    *s = (struct stream){.worker = w, .req = req};
    bool is_first = mk_list_empty(&w->streams);
    mk_list_add(&w->streams, &s->node);
    if (is_first)
        tick(&w->timer);
    return s;
}

static int add_headers(struct mk_request *req)
{
    return respond_headers(req, MK_STR("text/event-stream"), MK_STR("no-store"));
}

void stream_start(struct mk_request *req, struct state_worker *w)
{
    struct stream *s = NULL;
    bool is_head = mk_request_method(req) == MK_HEAD; /* gets no stream, and its generator is not called */
    if (!is_head && (int64_t)w->state->streams++ < w->generation->settings->streams_max)
        s = open_stream(req, w);
    if (!is_head && !s)
        w->state->streams--;
    if ((!is_head && !s) || add_headers(req) < 0 || mk_response_generate(req, generate, s) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

/* ── workers ── */

void stream_init(struct state_worker *w)
{
    mk_list_init(&w->streams);
    mk_timer_init(&w->timer, tick);
}

void stream_retire(struct state_worker *w)
{
    w->retired = true;
    wake_streams(w);
}
