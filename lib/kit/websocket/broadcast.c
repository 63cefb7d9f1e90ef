// SPDX-License-Identifier: Apache-2.0
/*
 * Broadcasts. The sender encodes a message once, and pushes it into the inbox of each worker by a compare-and-swap;
 * only the push into an empty inbox writes the eventfd. A worker takes all at once and passes them on in order:
 *
 *     inbox (newest first) ─► deliveries (oldest first) ─► each receiver: its stream or queue
 *
 * Messages to one channel that follow each other are a batch: each receiver gets them in one write, which is most of
 * what a message costs. A turn passes on a limited number of messages, then other connections have their turn. `cursor`
 * is the next receiver; when that ends, it moves on to the next one.
 */
#include "ws.h"

#include <errno.h>
#include <unistd.h>

enum {
    PENDING_BYTES_MAX = 64 * 1024 * 1024,
    RECEIVERS_PER_TURN = 1024,
    BATCH_MAX = 64,
};

/* ── the message ── */

static size_t broadcast_bytes(unsigned n)
{
    return sizeof(struct mk__ws_broadcast) + n * sizeof(struct mk__ws_delivery);
}

static void free_broadcast(struct mk__ws_broadcast *b)
{
    atomic_fetch_sub_explicit(&b->group->pending_bytes, b->cost, memory_order_relaxed);
    if (b->plain)
        mk__ws_block_put(b->plain);
    if (b->deflated)
        mk__ws_block_put(b->deflated);
    mk_account_free(NULL, b, broadcast_bytes(b->n));
}

static void put_broadcast(struct mk__ws_broadcast *b)
{
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        free_broadcast(b);
}

/* Returns a message with a reference for the caller and a delivery for each worker, or NULL without memory. */
static struct mk__ws_broadcast *make_broadcast(struct mk_ws_group *group, enum mk_ws_opcode opcode, const void *data,
                                               size_t len)
{
    unsigned n = atomic_load_explicit(&group->n, memory_order_acquire);
    struct mk__ws_broadcast *b = mk_account_alloc(NULL, broadcast_bytes(n));
    if (!b)
        return NULL;
    *b = (struct mk__ws_broadcast){.group = group, .n = n, .cost = broadcast_bytes(n) + len};
    atomic_init(&b->refs, 1);
    atomic_fetch_add_explicit(&group->pending_bytes, b->cost, memory_order_relaxed);
    b->plain = mk__ws_block_new(NULL, (uint8_t)opcode, false, false, data, len);
    if (!b->plain) {
        free_broadcast(b);
        return NULL;
    }
    return b;
}

/* ── inboxes ── */

static void push_delivery(struct mk_ws_worker *w, struct mk__ws_delivery *d)
{
    struct mk__ws_delivery *first = atomic_load_explicit(&w->inbox, memory_order_relaxed);
    do
        d->next = first;
    while (!atomic_compare_exchange_weak_explicit(&w->inbox, &first, d, memory_order_release, memory_order_relaxed));
    uint64_t one = 1;
    if (!first && write(w->event.fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN); /* it is readable already */
}

static bool has_room(const struct mk_ws_group *group, size_t len)
{
    return atomic_load_explicit(&group->pending_bytes, memory_order_relaxed) <= PENDING_BYTES_MAX - len;
}

/* Drops the caller's reference. */
static void push_broadcast(struct mk__ws_broadcast *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        struct mk_ws_worker *w = atomic_load_explicit(&b->group->workers[i], memory_order_acquire);
        if (!atomic_load_explicit(&w->is_open, memory_order_acquire))
            continue;
        b->deliveries[i].broadcast = b;
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        push_delivery(w, &b->deliveries[i]);
    }
    put_broadcast(b);
}

int mk_ws_broadcast(struct mk_ws_group *group, int channel, enum mk_ws_opcode opcode, const void *data, size_t len,
                    const struct mk_ws *except)
{
    if (opcode != MK_WS_TEXT && opcode != MK_WS_BINARY)
        return -EINVAL;
    if (len > MK__WS_SENT_BYTES_MAX)
        return -EMSGSIZE;
    if (!has_room(group, len))
        return -EAGAIN;
    struct mk__ws_broadcast *b = make_broadcast(group, opcode, data, len);
    if (!b)
        return -ENOMEM;
    if (atomic_load_explicit(&group->deflate_count, memory_order_relaxed))
        b->deflated = mk__ws_deflate_shared(group, (uint8_t)opcode, data, len); /* NULL: all get the plain one */
    b->channel = channel;
    if (except) {
        b->except_worker = except->worker;
        b->except_id = except->id;
    }
    push_broadcast(b);
    return 0;
}

int mk_ws_broadcast_close(struct mk_ws_group *group, int channel, unsigned code, struct mk_str reason)
{
    size_t len = reason.len < MK__WS_REASON_BYTES_MAX ? reason.len : MK__WS_REASON_BYTES_MAX;
    if (!has_room(group, len))
        return -EAGAIN;
    struct mk__ws_broadcast *b = make_broadcast(group, MK_WS_TEXT, reason.p, len);
    if (!b)
        return -ENOMEM;
    b->channel = channel;
    b->closes = true;
    b->code = (uint16_t)code;
    push_broadcast(b);
    return 0;
}

/* Moves what is in the inbox after the deliveries under way. */
static void empty_inbox(struct mk_ws_worker *w)
{
    struct mk__ws_delivery *newest = atomic_exchange_explicit(&w->inbox, NULL, memory_order_acquire);
    struct mk__ws_delivery *oldest = NULL, **end = newest ? &newest->next : NULL;
    while (newest) {
        struct mk__ws_delivery *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    if (!oldest)
        return;
    *w->end = oldest;
    w->end = end;
}

static void end_delivery(struct mk_ws_worker *w)
{
    struct mk__ws_delivery *d = w->first;
    w->first = d->next;
    if (!w->first)
        w->end = &w->first;
    put_broadcast(d->broadcast);
}

static void end_batch(struct mk_ws_worker *w)
{
    if (w->channel)
        mk__ws_channel_unpin(w, w->channel);
    w->channel = NULL;
    w->cursor = NULL;
    for (; w->batch; w->batch--)
        end_delivery(w);
}

void mk__ws_drop_deliveries(struct mk_ws_worker *w)
{
    empty_inbox(w);
    end_batch(w);
    while (w->first)
        end_delivery(w);
}

/* ── receivers ── */

/* Frames of clients are masked, each with its own key. */
static int send_masked(struct mk_ws *ws, const struct mk__ws_block *block)
{
    const struct mk__ws_rules rules = {.frame_max = MK__WS_SENT_BYTES_MAX};
    struct mk__ws_head head;
    const char *reason;
    int n = mk__ws_head_parse(block->bytes, block->len, &rules, &head, &reason);
    assert(n > 0 && (size_t)n + head.len == block->len);
    return mk__ws_send_frame(ws, head.opcode, false, block->bytes + n, head.len);
}

/* Sends the message in the form that is for this receiver. Returns as mk__ws_send_frame(). */
static int send_form(struct mk_ws *ws, const struct mk__ws_broadcast *b)
{
    if (ws->is_client)
        return send_masked(ws, b->plain);
    bool deflated = b->deflated && ws->deflate && ws->send_bits >= MK__WS_SHARED_BITS;
    if (deflated && ws->deflater)
        mk__ws_reset_deflater(ws); /* it does not know this message, which its next one would follow */
    return mk__ws_send_block(ws, deflated ? b->deflated : b->plain);
}

static struct mk_str get_reason(const struct mk__ws_broadcast *b)
{
    enum { HEAD_BYTES = 2 }; /* of a frame of so few bytes */
    return mk_str((const char *)b->plain->bytes + HEAD_BYTES, b->plain->len - HEAD_BYTES);
}

static void pass_on(struct mk_ws *ws, const struct mk__ws_broadcast *b)
{
    if (b->closes)
        mk_ws_close(ws, b->code, get_reason(b));
    else
        mk__ws_check_overflow(ws, send_form(ws, b));
}

/* Passes a batch on to a receiver; a single message without a copy. */
static void pass_on_batch(struct mk_ws_worker *w, struct mk_ws *ws)
{
    const struct mk__ws_delivery *d = w->first;
    mk__ws_enter(ws);
    if (w->batch > 1)
        mk__ws_gather_output(ws);
    for (unsigned i = 0; i < w->batch; i++, d = d->next)
        if (ws->state == MK__WS_OPEN && !ws->is_failed &&
            (d->broadcast->except_worker != ws->worker || d->broadcast->except_id != ws->id))
            pass_on(ws, d->broadcast);
    if (w->batch > 1)
        mk__ws_flush_output(w);
    mk__ws_leave(ws);
}

/* Returns how many deliveries are for the channel of the first one, without one for another channel between. */
static unsigned count_batch(const struct mk_ws_worker *w)
{
    int channel = w->first->broadcast->channel;
    unsigned n = 0;
    for (const struct mk__ws_delivery *d = w->first; d && n < BATCH_MAX && d->broadcast->channel == channel;
         d = d->next)
        n++;
    return n;
}

/* Finds the first receiver. Returns false if there is none. */
static bool begin_batch(struct mk_ws_worker *w)
{
    int channel = w->first->broadcast->channel;
    w->batch = count_batch(w);
    if (channel == MK_WS_ALL_CHANNELS) {
        w->cursor = w->all.next;
        return true;
    }
    w->channel = mk__ws_worker_find_channel(w, channel);
    if (!w->channel)
        return false;
    w->channel->pins++;
    w->cursor = w->channel->members.next;
    return true;
}

/* Passes the first batch on, `*budget` messages or a few more. Returns true if it has reached all receivers. */
static bool deliver_batch(struct mk_ws_worker *w, unsigned *budget)
{
    if (!w->cursor && !begin_batch(w))
        return true;
    const struct mk_list *end = w->channel ? &w->channel->members : &w->all;
    while (w->cursor != end) {
        if (!*budget)
            return false;
        struct mk_ws *ws = w->channel ? MK_CONTAINER_OF(w->cursor, struct mk_ws, member)
                                      : MK_CONTAINER_OF(w->cursor, struct mk_ws, node);
        w->cursor = w->cursor->next;
        *budget -= w->batch < *budget ? w->batch : *budget;
        if (ws->state == MK__WS_OPEN && ws->is_opened)
            pass_on_batch(w, ws);
    }
    return true;
}

static void deliver_message(void *arg)
{
    struct mk_ws_worker *w = arg;
    unsigned budget = RECEIVERS_PER_TURN;
    while (w->first && deliver_batch(w, &budget))
        end_batch(w);
    if (w->first)
        mk_task_schedule(w->loop, &w->task);
}

void mk__ws_deliver(struct mk_event *event, uint32_t events)
{
    struct mk_ws_worker *w = MK_CONTAINER_OF(event, struct mk_ws_worker, event);
    uint64_t count;
    (void)events;
    if (read(event->fd, &count, sizeof(count)) < 0)
        assert(errno == EAGAIN);
    empty_inbox(w);
    if (w->first)
        mk__ws_call(w, deliver_message, w);
}

void mk__ws_deliver_more(struct mk_task *task)
{
    struct mk_ws_worker *w = MK_CONTAINER_OF(task, struct mk_ws_worker, task);
    mk__ws_call(w, deliver_message, w);
}
