// SPDX-License-Identifier: Apache-2.0
/*
 * The channels of server-sent events, and the object `sse` (sse_channels.h). An event is formatted once; the inbox of
 * each worker that has subscribers of its channel gets a call with a reference of it.
 *
 *     publish() ─► event ─► inboxes ─► each subscriber of the worker: its response
 *
 * The channels of a worker are changed in its thread, under service.lock; other threads read them under it.
 */
#include "request/sse_channels.h"

#include "common/api_error.h"
#include "common/heap.h"
#include "objects.h"
#include "request/output.h"
#include "request/request.h"
#include "request/sse.h"
#include "service/inbox.h"

#include <monkey/base/siphash.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>

/* ── channels of a worker ── */

struct sse_channel *sse_channels_find(const struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&channels->table, hash, n) {
        struct sse_channel *c = MK_CONTAINER_OF(n, struct sse_channel, node);
        if (mk_str_eq(mk_str(c->name, c->len), name))
            return c;
    }
    return NULL;
}

static struct sse_channel *get_channel(struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    struct sse_channel *c = sse_channels_find(channels, name, hash);
    if (c || !(c = heap_zalloc(sizeof(*c) + name.len)))
        return c;
    c->len = name.len;
    memcpy(c->name, name.p, name.len);
    mk_list_init(&c->subscriptions);
    if (mk_hash_insert(&channels->table, NULL, &c->node, hash) == 0)
        return c;
    heap_free(c, sizeof(*c) + c->len);
    return NULL;
}

static void free_if_empty(struct sse_channels *channels, struct sse_channel *c)
{
    if (c->n || c->refs)
        return;
    assert(mk_list_empty(&c->subscriptions));
    mk_hash_remove(&channels->table, &c->node);
    heap_free(c, sizeof(*c) + c->len);
}

struct sse_subscription *sse_channels_join(struct sse_channels *channels, struct mk_str name, uint64_t hash,
                                           struct duda_request *dr)
{
    struct sse_subscription *sub = heap_zalloc(sizeof(*sub));
    struct sse_channel *c = sub ? get_channel(channels, name, hash) : NULL;
    if (!c) {
        heap_free(sub, sizeof(*sub));
        return NULL;
    }
    sub->dr = dr;
    sub->channel = c;
    mk_list_add(&c->subscriptions, &sub->node);
    c->n++;
    return sub;
}

void sse_channels_leave(struct sse_channels *channels, struct sse_subscription *sub)
{
    struct sse_channel *c = sub->channel;
    assert(c->n > 0);
    mk_list_del(&sub->node);
    c->n--;
    heap_free(sub, sizeof(*sub));
    free_if_empty(channels, c);
}

void sse_channels_put(struct sse_channels *channels, struct sse_channel *channel)
{
    assert(channel->refs > 0);
    channel->refs--;
    free_if_empty(channels, channel);
}

void sse_channels_release(struct sse_channels *channels)
{
    assert(!channels->table.n);
    mk_hash_release(&channels->table, NULL);
}

/* ── events for all workers ── */

enum { PENDING_BYTES_MAX = 64 << 20 };

struct sse_event {
    atomic_uint refs;
    bool is_end; /* no event: the responses end */
    struct service *service;
    struct mk_buf text;
    uint64_t hash; /* of the channel */
    size_t len;
    char channel[DUDA_SSE_NAME_BYTES];
};

/* ── events ── */

static void put_event(void *data)
{
    struct sse_event *event = data;
    if (atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) > 1)
        return;
    atomic_fetch_sub_explicit(&sse_of(event->service)->pending_bytes, event->text.len, memory_order_relaxed);
    mk_buf_release(&event->text);
    heap_free(event, sizeof(*event));
}

/* Returns an event with one reference, which takes `text` over (NULL: the end); NULL without memory. */
static struct sse_event *make_event(struct service *s, struct mk_str channel, struct mk_buf *text)
{
    struct sse_event *event = heap_zalloc(sizeof(*event));
    if (!event)
        return NULL;
    atomic_init(&event->refs, 1);
    event->service = s;
    event->is_end = !text;
    if (text) {
        event->text = *text;
        *text = (struct mk_buf){0};
    }
    event->hash = mk_siphash(sse_of(s)->key, channel.p, channel.len);
    event->len = channel.len;
    memcpy(event->channel, channel.p, channel.len);
    atomic_fetch_add_explicit(&sse_of(s)->pending_bytes, event->text.len, memory_order_relaxed);
    return event;
}

static struct sse_channel *find_channel(const struct service_worker *w, const struct sse_event *event)
{
    return sse_channels_find(sse_channels_of(w), mk_str(event->channel, event->len), event->hash);
}

/* ── in the worker ── */

static void leave_channel(struct service_worker *w, struct sse_subscription **place)
{
    struct sse_subscription *sub = *place;
    assert(sub->channel->n > 0);
    *place = sub->next;
    pthread_mutex_lock(&w->service->lock);
    sse_channels_leave(sse_channels_of(w), sub);
    pthread_mutex_unlock(&w->service->lock);
}

int sse_init(struct service *s)
{
    return mk_siphash_key(sse_of(s)->key);
}

void sse_release_worker(struct service_worker *w)
{
    sse_channels_release(sse_channels_of(w));
}

void sse_leave_request(struct duda_request *dr)
{
    while (dr->subscriptions)
        leave_channel(dr->worker, &dr->subscriptions);
}

static void send_to(struct duda_request *dr, struct mk_str text)
{
    if (dr->output.state != OUTPUT_SENDING)
        return; /* the service has ended it */
    if (!dr->output.blocked || output_count_queued(dr) + text.len <= DUDA_SSE_QUEUE_BYTES) {
        sse_pass(dr, text);
        return;
    }
    sse_leave_request(dr); /* the connection may last until its timeout */
    output_abort(dr);
}

static void end_stream(struct duda_request *dr)
{
    sse_leave_request(dr); /* what is queued may take long */
    if (dr->output.state == OUTPUT_SENDING)
        object_response.end(dr, NULL);
}

/* Passes an event on. What is called meanwhile may end other subscribers, and add new ones, which do not get it. */
static void deliver_event(void *data)
{
    const struct sse_event *event = data;
    struct service_worker *w = current.worker;
    struct sse_channel *channel = find_channel(w, event);
    struct mk_list begun;
    if (!channel)
        return;
    channel->refs++;
    mk_list_init(&begun);
    mk_list_join(&begun, &channel->subscriptions);
    while (!mk_list_empty(&begun)) {
        struct sse_subscription *sub = MK_LIST_FIRST(&begun, struct sse_subscription, node);
        mk_list_del(&sub->node);
        mk_list_add(&channel->subscriptions, &sub->node);
        if (event->is_end)
            end_stream(sub->dr);
        else
            send_to(sub->dr, mk_str(event->text.data, event->text.len));
    }
    pthread_mutex_lock(&w->service->lock);
    sse_channels_put(sse_channels_of(w), channel);
    pthread_mutex_unlock(&w->service->lock);
}

/* ── the object ── */

static bool is_name(const char *channel)
{
    size_t n = channel ? strnlen(channel, DUDA_SSE_NAME_BYTES + 1) : 0;
    return n > 0 && n <= DUDA_SSE_NAME_BYTES;
}

/* Logs an error, except for those of which the service is not the cause. */
static int report_error(struct service_worker *w, const char *call, int err)
{
    return err == 0 || err == -ENOMEM || err == -EAGAIN ? err : api_error_report(w, call, err);
}

/* Returns the place of the pointer to the request's subscription, or the end of its list, whose length is in `ret_n`.
 */
static struct sse_subscription **find_subscription(struct duda_request *dr, const char *channel, unsigned *ret_n)
{
    struct sse_subscription **place = &dr->subscriptions;
    struct mk_str name = mk_str_c(channel);
    for (*ret_n = 0; *place; place = &(*place)->next, ++*ret_n) {
        const struct sse_channel *c = (*place)->channel;
        if (mk_str_eq(mk_str(c->name, c->len), name))
            break;
    }
    return place;
}

static int join_channel(struct duda_request *dr, const char *channel)
{
    assert(dr->worker == current.worker && dr->output.state == OUTPUT_SENDING);
    unsigned n;
    struct sse_subscription **place = find_subscription(dr, channel, &n);
    struct service *s = dr->worker->service;
    struct mk_str name = mk_str_c(channel);
    if (*place)
        return 0;
    if (n == DUDA_SSE_CHANNELS_MAX)
        return -ENOSPC;
    pthread_mutex_lock(&s->lock);
    *place = sse_channels_join(sse_channels_of(dr->worker), name, mk_siphash(sse_of(s)->key, name.p, name.len), dr);
    pthread_mutex_unlock(&s->lock);
    request_use(dr, FEATURE_SSE);
    return *place ? 0 : -ENOMEM;
}

static int subscribe_request(duda_request_t *dr, const char *channel)
{
    static const char call[] = "sse->subscribe()";
    int err = request_check_lasting(dr, call);
    if (err < 0)
        return err;
    if (request_is_answered(dr))
        return report_error(dr->worker, call, -EALREADY);
    if (dr->output.state != OUTPUT_SENDING)
        return request_refuse(dr, call, -EINVAL, "response->sse_begin() must be called before");
    err = is_name(channel) ? 0 : -EINVAL;
    return report_error(dr->worker, call, err < 0 ? err : join_channel(dr, channel));
}

static int unsubscribe_request(duda_request_t *dr, const char *channel)
{
    static const char call[] = "sse->unsubscribe()";
    unsigned n;
    int err = request_check(dr, call);
    if (err < 0)
        return err;
    if (!is_name(channel))
        return report_error(dr->worker, call, -EINVAL);
    struct sse_subscription **place = find_subscription(dr, channel, &n);
    if (!*place)
        return -ENOENT;
    leave_channel(dr->worker, place);
    return 0;
}

/* Formats what is sent. Returns 0, -EINVAL, -EMSGSIZE or -ENOMEM. */
static int format_event(struct mk_buf *text, const char *type, const char *id, const char *format, va_list args)
{
    struct mk_buf data;
    mk_buf_init(&data, DUDA_SSE_EVENT_BYTES);
    mk_buf_init(text, DUDA_SSE_EVENT_BYTES);
    mk_buf_vaddf(&data, format, args);
    int err = data.err ? data.err : sse_format(text, mk_str_c(type), mk_str_c(id), mk_buf_str(&data));
    mk_buf_release(&data);
    return err == -ENOBUFS ? -EMSGSIZE : err;
}

/* Adds calls to the inboxes of workers that have subscribers. Returns 0, -EAGAIN or -ENOMEM. */
static int send_event(struct service *s, struct sse_event *event)
{
    int result = 0;
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, struct service_worker, node, w) {
        if (w->ended || !find_channel(w, event))
            continue;
        atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
        int err = inbox_add(inbox_of(w), &(struct inbox_call){.fn = deliver_event, .data = event, .drop = put_event});
        if (err < 0) {
            put_event(event);
            result = err;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* `text`: NULL for the end. */
static int publish_text(struct service *s, const char *channel, struct mk_buf *text)
{
    if (text && atomic_load_explicit(&sse_of(s)->pending_bytes, memory_order_relaxed) + text->len > PENDING_BYTES_MAX)
        return -EAGAIN;
    struct sse_event *event = make_event(s, mk_str_c(channel), text);
    if (!event)
        return -ENOMEM;
    int err = send_event(s, event);
    put_event(event);
    return err;
}

static int publish_event(const char *channel, const char *type, const char *id, const char *format, ...)
{
    static const char call[] = "sse->publish()";
    struct mk_buf text;
    va_list args;
    if (!phase_check(PHASE_RUNNING, call))
        return -EPERM;
    if (!is_name(channel) || !format)
        return report_error(current.worker, call, -EINVAL);
    va_start(args, format);
    int err = format_event(&text, type, id, format, args);
    va_end(args);
    if (err == 0)
        err = publish_text(current.service, channel, &text);
    mk_buf_release(&text);
    return report_error(current.worker, call, err);
}

static int close_channel(const char *channel)
{
    static const char call[] = "sse->close_channel()";
    if (!phase_check(PHASE_RUNNING, call))
        return -EPERM;
    return report_error(current.worker, call,
                        is_name(channel) ? publish_text(current.service, channel, NULL) : -EINVAL);
}

static size_t count_subscribers(const char *channel)
{
    size_t sum = 0;
    if (!phase_check(PHASE_RUNNING, "sse->count()") || !is_name(channel))
        return 0;
    struct service *s = current.service;
    struct mk_str name = mk_str_c(channel);
    uint64_t hash = mk_siphash(sse_of(s)->key, name.p, name.len);
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, const struct service_worker, node, w) {
        const struct sse_channel *c = w->ended ? NULL : sse_channels_find(sse_channels_of(w), name, hash);
        sum += c ? c->n : 0;
    }
    pthread_mutex_unlock(&s->lock);
    return sum;
}

const struct duda_api_sse object_sse = {
    .subscribe = subscribe_request,
    .unsubscribe = unsubscribe_request,
    .publish = publish_event,
    .count = count_subscribers,
    .close_channel = close_channel,
};
