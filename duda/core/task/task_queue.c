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
    mk_list_init(&q->lines);
}

static void release_line(struct duda_task_line *line)
{
    assert(mk_list_empty(&line->waiting));
    mk_list_del(&line->node);
    heap_free(line, sizeof(*line));
}

void task_queue_release(struct task_queue *q)
{
    assert(q->n == 0);
    while (!mk_list_empty(&q->lines))
        release_line(MK_LIST_FIRST(&q->lines, struct duda_task_line, node));
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
    struct duda_task_line *line = item->line;
    if (q->n + q->n_running >= q->max)
        return -EBUSY;
    q->n++;
    item->is_ready = false;
    if (line && line->is_busy) {
        mk_list_add(&line->waiting, &item->node);
        return 0;
    }
    if (line)
        line->is_busy = true;
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

/* Lets the next task of a line begin, behind those that are ready already. */
static void advance_line(struct task_queue *q, struct duda_task_line *line)
{
    if (!line)
        return;
    assert(line->is_busy);
    line->is_busy = !mk_list_empty(&line->waiting);
    if (line->is_busy) {
        struct task_item *next = MK_LIST_FIRST(&line->waiting, struct task_item, node);
        mk_list_del(&next->node);
        make_ready(q, next);
    } else if (line->is_freed) {
        release_line(line);
    }
}

void task_queue_finish(struct task_queue *q, struct task_item *item)
{
    assert(q->n_running > 0 && !item->is_ready);
    q->n_running--;
    advance_line(q, item->line);
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
    advance_line(q, item->line);
}

/* ── lines ── */

struct duda_task_line *task_queue_new_line(struct task_queue *q)
{
    struct duda_task_line *line = heap_zalloc(sizeof(*line));
    if (!line)
        return NULL;
    mk_list_init(&line->waiting);
    mk_list_add(&q->lines, &line->node);
    line->queue = q;
    return line;
}

void task_queue_free_line(struct duda_task_line *line)
{
    line->is_freed = true;
    if (!line->is_busy)
        release_line(line);
}
