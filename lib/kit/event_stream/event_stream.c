// SPDX-License-Identifier: Apache-2.0
/*
 * Sends events to the clients of a worker (<monkey/kit/event_stream.h>).
 */
#include <monkey/kit/event_stream.h>

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>

/* What a browser waits before it connects again, in milliseconds. */
#define STREAM_BEGIN "retry: 1000\n\n"

/* An event that several streams send. */
struct mk_event_text {
    struct mk_buf text;
    unsigned refs;
};

struct stream {
    struct mk_list node;
    struct mk_event_streams *owner;
    struct mk_request *req;
    struct mk_event_text *event; /* being sent; NULL: none */
    struct mk_event_text *last;  /* the last one that was begun: only compared */
    size_t at;                   /* in `event`, or in STREAM_BEGIN */
    bool has_begun;
};

/* ── events ── */

static void put_event(struct mk_event_text *event)
{
    if (!event || --event->refs)
        return;
    mk_buf_release(&event->text);
    mk_account_free(NULL, event, sizeof(*event));
}

static void wake_streams(struct mk_event_streams *s)
{
    MK_LIST_EACH_ITEM(&s->list, struct stream, node, stream)
        if (stream->has_begun) /* others are asked without it */
            mk_response_wake(stream->req);
}

void mk_event_streams_send(struct mk_event_streams *s, struct mk_buf text)
{
    struct mk_event_text *event = text.err ? NULL : mk_account_alloc(NULL, sizeof(*event));
    if (!event) {
        mk_buf_release(&text);
        return; /* the next second may have memory */
    }
    *event = (struct mk_event_text){.text = text, .refs = 1};
    put_event(s->newest);
    s->newest = event;
    wake_streams(s);
}

static void make_event(struct mk_timer *timer)
{
    struct mk_event_streams *s = MK_CONTAINER_OF(timer, struct mk_event_streams, timer);
    assert(!mk_list_empty(&s->list));
    mk_timer_arm(mk_worker_loop(s->worker), timer, MK_EVENT_STREAM_MS);
    s->maker->make(s);
}

/* The last stream has ended: the worker has no timer any more. */
static void stop_events(struct mk_event_streams *s)
{
    mk_timer_cancel(&s->timer);
    if (s->maker->cancel)
        s->maker->cancel(s);
    put_event(s->newest);
    s->newest = NULL;
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

static ssize_t generate_events(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct stream *s = ctx;
    struct mk_event_streams *owner = s->owner;
    (void)req;
    if (!s->has_begun) {
        size_t n = copy_text(s, MK_STR(STREAM_BEGIN), to, size);
        s->has_begun = s->at == sizeof(STREAM_BEGIN) - 1;
        return (ssize_t)n;
    }
    if (s->event)
        return send_event(s, to, size);
    if (owner->is_retired)
        return 0;
    if (!owner->newest || owner->newest == s->last)
        return -EAGAIN;
    s->last = s->event = owner->newest;
    s->event->refs++;
    s->at = 0;
    return send_event(s, to, size);
}

static void end_stream(void *ctx)
{
    struct stream *s = ctx;
    put_event(s->event);
    mk_list_del(&s->node);
    __atomic_fetch_sub(s->owner->open, 1, __ATOMIC_RELAXED);
    if (mk_list_empty(&s->owner->list))
        stop_events(s->owner);
}

/* Counts a stream. Returns NULL if there are too many, or without memory. */
static struct stream *open_stream(struct mk_event_streams *owner, struct mk_request *req, unsigned max)
{
    struct stream *s = NULL;
    if (__atomic_fetch_add(owner->open, 1, __ATOMIC_RELAXED) < max)
        s = mk_arena_alloc(mk_request_arena(req), sizeof(*s));
    if (!s || mk_arena_defer(mk_request_arena(req), end_stream, s) < 0) {
        __atomic_fetch_sub(owner->open, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    *s = (struct stream){.owner = owner, .req = req};
    mk_list_add(&owner->list, &s->node);
    return s;
}

static int begin_response(struct mk_request *req, struct stream *s)
{
    const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("Content-Type"), MK_STR("text/event-stream")},
        {MK_STR("Cache-Control"), MK_STR("no-store")},
        {MK_STR("X-Content-Type-Options"), MK_STR("nosniff")},
        {MK_STR("Vary"), MK_STR("Accept")},
    };
    int err = 0;
    for (unsigned i = 0; err == 0 && i < MK_COUNT_OF(rows); i++)
        err = mk_response_header_ref(req, rows[i].name, rows[i].value);
    return err == 0 ? mk_response_generate(req, generate_events, s) : err;
}

void mk_event_streams_answer(struct mk_event_streams *owner, struct mk_request *req, unsigned max)
{
    struct stream *s = NULL;
    bool is_first = mk_list_empty(&owner->list);
    bool has_stream = mk_request_method(req) != MK_HEAD; /* the generator of HEAD is not called */
    if (has_stream)
        s = open_stream(owner, req, max);
    if ((has_stream && !s) || begin_response(req, s) < 0) {
        mk_response_error(req, 503);
        return;
    }
    if (s && is_first)
        make_event(&owner->timer);
    mk_response_end(req);
}

/* ── workers ── */

void mk_event_streams_init(struct mk_event_streams *s, struct mk_worker *worker, unsigned *open,
                           const struct mk_event_maker *maker)
{
    *s = (struct mk_event_streams){.maker = maker, .worker = worker, .open = open};
    mk_list_init(&s->list);
    mk_timer_init(&s->timer, make_event);
}

void mk_event_streams_retire(struct mk_event_streams *s)
{
    s->is_retired = true;
    wake_streams(s);
}
