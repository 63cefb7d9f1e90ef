// SPDX-License-Identifier: Apache-2.0
/*
 * The producers of logs (<monkey/kit/log_writer.h>): adds their lines to the rings, and makes and frees them.
 */
#include "log_target.h"

#include <monkey/base/arena.h>

#include <assert.h>

/* ── lines ── */

char *mk_log_producer_reserve(struct mk_log_producer *producer, size_t bytes, bool may_exceed)
{
    char *room = mk__log_queue_reserve(&producer->queue, bytes, may_exceed);
    if (MK_UNLIKELY(!room))
        mk__log_producer_lose(producer, 1);
    return room;
}

void mk_log_producer_send(struct mk_log_producer *producer, size_t bytes)
{
    struct mk_log_writer *w = producer->target->writer;
    assert(bytes > 0);
    uint64_t used = mk__log_queue_commit(&producer->queue, bytes);
    /* half of the smaller one: the maximum may have become smaller than the first ring */
    size_t flush_bytes =
        (producer->queue.first < producer->queue.max ? producer->queue.first : producer->queue.max) / 2;
    if (MK_UNLIKELY(used >= flush_bytes) && !producer->target->stalled)
        mk__log_writer_signal(w, &w->flush_now);
    else if (!atomic_load(&w->notified))
        mk__log_writer_signal(w, &w->notified);
}

void *mk_log_producer_data(struct mk_log_producer *producer)
{
    return producer->data;
}

uint64_t mk_log_producer_waiting(const struct mk_log_producer *producer)
{
    return mk__log_queue_waiting(&producer->queue);
}

size_t mk_log_producer_bytes_max(const struct mk_log_producer *producer)
{
    return producer->queue.max;
}

/* ── references ── */

static struct mk_log_producer *find_producer(struct mk_log_target *target, const void *owner)
{
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        if (producer->owner == owner)
            return producer;
    return NULL;
}

static size_t count_bytes(const struct mk_log_target *target)
{
    return sizeof(struct mk_log_producer) + target->type->data_bytes;
}

static struct mk_log_producer *add_producer(struct mk_log_target *target, void *owner, size_t bytes_max)
{
    struct mk_log_producer *producer = mk_account_zalloc(NULL, count_bytes(target));
    if (!producer)
        return NULL;
    producer->target = target;
    producer->lost_counter = target->lost_counter;
    producer->owner = owner;
    if (mk__log_queue_init(&producer->queue, bytes_max) < 0) {
        mk_account_free(NULL, producer, count_bytes(target));
        return NULL;
    }
    if (target->type->init)
        target->type->init(producer, owner);
    mk_list_add(&target->producers, &producer->node);
    return producer;
}

struct mk_log_producer *mk_log_producer_get(struct mk_log_target *target, void *owner, size_t bytes_max)
{
    struct mk_log_writer *w = target->writer;
    assert(owner);
    pthread_mutex_lock(&mk__log_lock);
    assert(target->users > 0);
    struct mk_log_producer *producer = find_producer(target, owner);
    if (!producer)
        producer = add_producer(target, owner, bytes_max);
    if (producer)
        producer->queue.max = bytes_max;
    if (producer && producer->users++ == 0)
        mk__log_writer_signal(w, &w->flush_now); /* so that the log is opened now */
    pthread_mutex_unlock(&mk__log_lock);
    return producer;
}

void mk_log_producer_put(struct mk_log_producer *producer)
{
    struct mk_log_writer *w = producer->target->writer;
    pthread_mutex_lock(&mk__log_lock);
    assert(producer->users > 0);
    if (--producer->users == 0) {
        producer->owner = NULL;
        mk__log_writer_signal(w, &w->flush_now);
    }
    pthread_mutex_unlock(&mk__log_lock);
}

void mk__producer_remove(struct mk_log_producer *producer)
{
    struct mk_log_target *target = producer->target;
    assert(producer->users == 0 && !producer->owner);
    mk_list_del(&producer->node);
    target->lost_closed += producer->lost;
    if (target->partial == producer)
        target->partial = NULL;
    if (target->type->release)
        target->type->release(producer);
    mk__log_queue_release(&producer->queue);
    mk_account_free(NULL, producer, count_bytes(target));
}
