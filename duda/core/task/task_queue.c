// SPDX-License-Identifier: Apache-2.0
/*
 * Orders tasks (task_queue.h).
 */
#include "task/task_queue.h"

#include "common/heap.h"

#include <errno.h>

void task_queue_init(struct task_queue *q, unsigned max)
{
    *q = (struct task_queue){.max = max};
    mk_list_init(&q->ready);
    mk_list_init(&q->serials);
}

static void release_serial(struct duda_serial_queue *serial)
{
    assert(mk_list_empty(&serial->waiting));
    mk_list_del(&serial->node);
    heap_free(serial, sizeof(*serial));
}

void task_queue_release(struct task_queue *q)
{
    assert(q->n == 0);
    while (!mk_list_empty(&q->serials))
        release_serial(MK_LIST_FIRST(&q->serials, struct duda_serial_queue, node));
}

/* ── tasks ── */

static void make_ready(struct task_queue *q, struct task_item *item)
{
    item->is_ready = true;
    mk_list_add(&q->ready, &item->node);
    q->n_ready++;
}

int task_queue_add(struct task_queue *q, struct task_item *item)
{
    struct duda_serial_queue *serial = item->serial;
    if (q->n + q->n_running >= q->max)
        return -EBUSY;
    q->n++;
    item->is_ready = false;
    if (serial && serial->is_busy) {
        mk_list_add(&serial->waiting, &item->node);
        return 0;
    }
    if (serial)
        serial->is_busy = true;
    make_ready(q, item);
    return 0;
}

struct task_item *task_queue_take(struct task_queue *q)
{
    if (mk_list_empty(&q->ready))
        return NULL;
    struct task_item *item = MK_LIST_FIRST(&q->ready, struct task_item, node);
    assert(item->is_ready && q->n > 0 && q->n_ready > 0);
    mk_list_del(&item->node);
    item->is_ready = false;
    q->n--;
    q->n_ready--;
    q->n_running++;
    return item;
}

/* Lets the next task of a serial queue begin, after those that are ready already. */
static void advance_serial(struct task_queue *q, struct duda_serial_queue *serial)
{
    if (!serial)
        return;
    assert(serial->is_busy);
    serial->is_busy = !mk_list_empty(&serial->waiting);
    if (serial->is_busy) {
        struct task_item *next = MK_LIST_FIRST(&serial->waiting, struct task_item, node);
        mk_list_del(&next->node);
        make_ready(q, next);
    } else if (serial->is_freed) {
        release_serial(serial);
    }
}

void task_queue_finish(struct task_queue *q, struct task_item *item)
{
    assert(q->n_running > 0 && !item->is_ready);
    q->n_running--;
    advance_serial(q, item->serial);
}

void task_queue_remove(struct task_queue *q, struct task_item *item)
{
    assert(q->n > 0 && (!item->is_ready || q->n_ready > 0));
    mk_list_del(&item->node);
    q->n--;
    if (!item->is_ready)
        return;
    item->is_ready = false;
    q->n_ready--;
    advance_serial(q, item->serial);
}

/* ── serial queues ── */

struct duda_serial_queue *task_queue_new_serial(struct task_queue *q)
{
    struct duda_serial_queue *serial = heap_zalloc(sizeof(*serial));
    if (!serial)
        return NULL;
    mk_list_init(&serial->waiting);
    mk_list_add(&q->serials, &serial->node);
    serial->queue = q;
    return serial;
}

void task_queue_free_serial(struct duda_serial_queue *serial)
{
    serial->is_freed = true;
    if (!serial->is_busy)
        release_serial(serial);
}
