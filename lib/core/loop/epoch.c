// SPDX-License-Identifier: Apache-2.0
/*
 * Epochs (<monkey/base/epoch.h>): the number of the current epoch, the loops that take part, and queues of what is to
 * be freed.
 *
 * The order of memory. A reader is a loop in a turn; writer and reclaimer are any threads:
 *
 *     reader:    e = current (acquire); seen = e; full barrier; search ...; seen = IDLE (release)
 *     writer:    unlink; epoch = current++ (release); queue the object
 *     reclaimer: c = current (acquire); full barrier; load each `seen` (acquire); free objects with epoch < c that are
 *                also older than each `seen` that is not IDLE
 *
 * An object that a reader has found is not freed before its turn ends. As epoch < c, the reclaimer has read a value
 * that follows the unlink, so that the unlink precedes its barrier. The barriers of both are in one order:
 *
 *   - The reader's is the first: the reclaimer reads e from `seen`, or what the reader stored later. If e <= epoch, the
 *     object waits. If e > epoch, the reader has read a value that follows the unlink, and does not find the object.
 *   - The reclaimer's is the first: the unlink is visible to the search, which does not find the object. It does not
 *     matter what the reclaimer reads from `seen`.
 *
 * `current` must be read before `seen`, and bounds what is freed: an object that is retired after the look at `seen`
 * may have been found by a loop that entered in between.
 *
 * What a reader did with an object happens before free(): it precedes the store of IDLE, or that of a later epoch, in
 * the reader's thread; both are releases, and the loads of the reclaimer acquire them.
 *
 * A value of `current` that has become old before it is stored in `seen` only delays frees.
 *
 * Epochs are taken and objects are queued under the lock of the queue, so that a queue is sorted by epoch.
 */
#include <monkey/base/epoch.h>

#include "loop/epoch.h"

enum { IDLE = 0 };

static _Atomic uint64_t current = IDLE + 1;

/* The loops that take part; the lock is taken to join, to leave and to look at all of them. */
static struct {
    pthread_mutex_t lock;
    struct mk_list readers;
} joined = {.lock = PTHREAD_MUTEX_INITIALIZER, .readers = {&joined.readers, &joined.readers}};

/* ── loops ── */

void mk__epoch_idle(struct mk__epoch_reader *reader)
{
    atomic_store_explicit(&reader->seen, IDLE, memory_order_release);
}

void mk__epoch_enter(struct mk__epoch_reader *reader)
{
    uint64_t now = atomic_load_explicit(&current, memory_order_acquire);
    atomic_store_explicit(&reader->seen, now, memory_order_release);
    __sync_synchronize(); /* gcc rejects fences of C11 in builds with TSan */
}

void mk__epoch_add(struct mk__epoch_reader *reader)
{
    pthread_mutex_lock(&joined.lock);
    mk_list_init(&reader->node);
    mk_list_add(&joined.readers, &reader->node);
    pthread_mutex_unlock(&joined.lock);
    mk__epoch_enter(reader);
}

void mk__epoch_remove(struct mk__epoch_reader *reader)
{
    mk__epoch_idle(reader);
    pthread_mutex_lock(&joined.lock);
    mk_list_del(&reader->node);
    pthread_mutex_unlock(&joined.lock);
}

uint64_t mk__epoch_oldest(void)
{
    uint64_t oldest = atomic_load_explicit(&current, memory_order_acquire);
    __sync_synchronize();
    pthread_mutex_lock(&joined.lock);
    MK_LIST_EACH_ITEM(&joined.readers, struct mk__epoch_reader, node, reader) {
        uint64_t seen = atomic_load_explicit(&reader->seen, memory_order_acquire);
        if (seen != IDLE && seen < oldest)
            oldest = seen;
    }
    pthread_mutex_unlock(&joined.lock);
    return oldest;
}

/* ── queues ── */

void mk_epoch_queue_init(struct mk_epoch_queue *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    queue->first = NULL;
    queue->end = &queue->first;
    queue->waiting = 0;
}

void mk_epoch_retire(struct mk_epoch_queue *queue, struct mk_retired *retired,
                     void (*free_retired)(struct mk_retired *retired))
{
    retired->next = NULL;
    retired->free = free_retired;
    pthread_mutex_lock(&queue->lock);
    retired->epoch = atomic_fetch_add_explicit(&current, 1, memory_order_acq_rel);
    *queue->end = retired;
    queue->end = &retired->next;
    __atomic_store_n(&queue->waiting, queue->waiting + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&queue->lock);
}

/* Takes the objects out that were retired before the epoch `oldest`. */
static struct mk_retired *take_older(struct mk_epoch_queue *queue, uint64_t oldest)
{
    struct mk_retired *first = NULL, **end = &first;
    pthread_mutex_lock(&queue->lock);
    size_t waiting = queue->waiting;
    while (queue->first && queue->first->epoch < oldest) {
        *end = queue->first;
        end = &queue->first->next;
        queue->first = queue->first->next;
        waiting--;
    }
    *end = NULL;
    if (!queue->first)
        queue->end = &queue->first;
    __atomic_store_n(&queue->waiting, waiting, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&queue->lock);
    return first;
}

static void free_all(struct mk_retired *retired)
{
    for (struct mk_retired *next; retired; retired = next) {
        next = retired->next;
        retired->free(retired);
    }
}

size_t mk_epoch_reclaim(struct mk_epoch_queue *queue)
{
    if (__atomic_load_n(&queue->waiting, __ATOMIC_RELAXED))
        free_all(take_older(queue, mk__epoch_oldest()));
    return __atomic_load_n(&queue->waiting, __ATOMIC_RELAXED);
}

void mk_epoch_queue_release(struct mk_epoch_queue *queue)
{
    while (queue->waiting)
        free_all(take_older(queue, UINT64_MAX));
    pthread_mutex_destroy(&queue->lock);
}
