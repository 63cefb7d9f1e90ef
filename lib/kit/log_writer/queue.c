// SPDX-License-Identifier: Apache-2.0
/*
 * Grows and shrinks queues (queue.h). The system provides the pages of a ring when they are first used, so that a quiet
 * log costs few.
 */
#include "queue.h"

#include <monkey/base/arena.h>

#include <errno.h>

enum { RING_BYTES_MIN = 16 * 1024, IDLE_COUNT_MAX = 64 };

static struct mk__log_queue_ring *new_ring(struct mk__log_queue *q, size_t size)
{
    assert(size > 0);
    struct mk__log_queue_ring *r = mk_account_alloc(NULL, sizeof(*r));
    char *data = mk_account_alloc(NULL, size);
    if (!r || !data) {
        mk_account_free(NULL, r, sizeof(*r));
        mk_account_free(NULL, data, size);
        return NULL;
    }
    memset(r, 0, sizeof(*r));
    r->ring.data = data;
    r->ring.size = size;
    atomic_fetch_add_explicit(&q->bytes, size, memory_order_relaxed);
    return r;
}

static void free_ring(struct mk__log_queue *q, struct mk__log_queue_ring *r)
{
    atomic_fetch_sub_explicit(&q->bytes, r->ring.size, memory_order_relaxed);
    mk_account_free(NULL, r->ring.data, r->ring.size);
    mk_account_free(NULL, r, sizeof(*r));
}

int mk__log_queue_init(struct mk__log_queue *q, size_t max)
{
    *q = (struct mk__log_queue){.first = max < MK__LOG_QUEUE_FIRST_BYTES ? max : MK__LOG_QUEUE_FIRST_BYTES, .max = max};
    q->in = q->out = new_ring(q, q->first);
    return q->in ? 0 : -ENOMEM;
}

void mk__log_queue_release(struct mk__log_queue *q)
{
    for (struct mk__log_queue_ring *r = q->out, *next; r; r = next) {
        next = r->next;
        free_ring(q, r);
    }
}

static bool append_ring(struct mk__log_queue *q, size_t size)
{
    struct mk__log_queue_ring *r = new_ring(q, size);
    if (!r)
        return false;
    struct mk__log_queue_ring *before = q->in;
    assert(!before->next);
    q->in = r;
    q->idle_count = 0;
    atomic_store_explicit(&before->next, r, memory_order_release); /* the last write to the old ring */
    return true;
}

/* Appends a ring twice as large as the last one, within `max`. */
static bool grow_queue(struct mk__log_queue *q, size_t max)
{
    size_t used = atomic_load_explicit(&q->bytes, memory_order_relaxed), size = 2 * q->in->ring.size;
    assert(used >= q->in->ring.size);
    if (used + RING_BYTES_MIN > max)
        return false;
    return append_ring(q, size < max - used ? size : max - used);
}

/* Returns to the first size after the large ring was found empty IDLE_COUNT_MAX times. */
static void shrink_queue(struct mk__log_queue *q)
{
    const struct mk__log_ring *r = &q->in->ring;
    if (r->size <= q->first || atomic_load(&r->tail) != r->head || ++q->idle_count < IDLE_COUNT_MAX)
        return;
    append_ring(q, q->first);
}

char *mk__log_queue_reserve(struct mk__log_queue *q, size_t bytes, bool may_exceed)
{
    shrink_queue(q);
    char *room = mk__log_ring_reserve(&q->in->ring, bytes);
    if (room || !grow_queue(q, may_exceed ? 2 * q->max : q->max))
        return room;
    return mk__log_ring_reserve(&q->in->ring, bytes);
}

struct mk_str mk__log_queue_peek(struct mk__log_queue *q)
{
    for (;;) {
        struct mk__log_queue_ring *r = q->out, *next = atomic_load_explicit(&r->next, memory_order_acquire);
        struct mk_str data =
            mk__log_ring_peek(&r->ring); /* after reading `next`, so that all lines before it are seen */
        if (data.len || !next)
            return data;
        q->out = next;
        free_ring(q, r);
    }
}
