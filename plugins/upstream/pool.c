// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <assert.h>
#include <errno.h>

static const struct mk_counter_info infos[POOL_COUNTS] = {
    [POOL_QUEUED] = {"upstream", "queued_requests", "requests that wait for a server with room", MK_COUNTER_LEVEL},
    [POOL_HELD] = {"upstream", "held_requests", "requests that wait until a server responds", MK_COUNTER_LEVEL},
    [POOL_REFUSED] = {"upstream", "refused_requests", "requests that got no server, or not in time", MK_COUNTER_SUM},
    [POOL_WAITED] = {"upstream", "wait_duration", "how long requests have waited for a server", MK_COUNTER_HISTOGRAM},
};

static struct pool *make_pool(struct mk_str name)
{
    struct pool *pool = mk_account_alloc(NULL, sizeof(*pool) + name.len);
    if (!pool)
        return NULL;
    *pool = (struct pool){.next = upstream_process.pools, .name = {pool->name_bytes, name.len}};
    if (name.len)
        memcpy(pool->name_bytes, name.p, name.len);
    lock_init(&pool->lock, LOCK_POOL);
    mk_list_init(&pool->queues);
    const struct mk_counter_label label = {"upstream", pool->name};
    for (unsigned i = 0; i < POOL_COUNTS; i++)
        pool->counters[i] = mk_counter_hold(&infos[i], &label, 1);
    upstream_process.pools = pool;
    return pool;
}

struct pool *pool_hold(struct mk_str name)
{
    lock_take(&upstream_process.pools_lock);
    struct pool *pool = upstream_process.pools;
    while (pool && !mk_str_eq(pool->name, name))
        pool = pool->next;
    if (!pool)
        pool = make_pool(name);
    if (pool)
        pool->refs++;
    lock_release(&upstream_process.pools_lock);
    return pool;
}

void pool_release(struct pool *pool)
{
    lock_take(&upstream_process.pools_lock);
    bool is_last = --pool->refs == 0;
    if (is_last) {
        struct pool **at = &upstream_process.pools;
        while (*at != pool)
            at = &(*at)->next;
        *at = pool->next;
    }
    lock_release(&upstream_process.pools_lock);
    if (!is_last)
        return;
    assert(mk_list_empty(&pool->queues)); /* a request holds its generation, and that its groups */
    lock_destroy(&pool->lock);
    for (unsigned i = 0; i < POOL_COUNTS; i++)
        mk_counter_put(pool->counters[i]);
    mk_account_free(NULL, pool, sizeof(*pool) + pool->name.len);
}

/* ── queues ── */

/* The servers that were tried may have another order now. */
static bool is_queue_of(const struct mk_upstream_queue *queue, const struct mk_upstream_wait *wait)
{
    if (queue->is_held != wait->is_held || queue->sticky != wait->sticky || queue->n_tried != wait->tries->n)
        return false;
    for (unsigned i = 0; i < queue->n_tried; i++)
        if (!retry_has_tried(wait->tries, queue->tried[i]))
            return false;
    return true;
}

static struct mk_upstream_queue *make_queue(struct pool *pool, const struct mk_upstream_wait *wait)
{
    struct mk_upstream_queue *queue = mk_account_alloc(NULL, sizeof(*queue));
    if (!queue)
        return NULL;
    *queue = (struct mk_upstream_queue){.err = -EBUSY,
                                        .is_held = wait->is_held,
                                        .sticky = wait->sticky,
                                        .n_tried = wait->tries->n};
    for (unsigned i = 0; i < queue->n_tried; i++)
        queue->tried[i] = wait->tries->servers[i];
    mk_list_init(&queue->waiting);
    mk_list_init(&queue->node);
    mk_list_add(&pool->queues, &queue->node);
    return queue;
}

static struct mk_upstream_queue *get_queue(struct pool *pool, const struct mk_upstream_wait *wait)
{
    MK_LIST_EACH_ITEM(&pool->queues, struct mk_upstream_queue, node, queue) {
        if (is_queue_of(queue, wait))
            return queue;
    }
    return make_queue(pool, wait);
}

static uint64_t get_order(struct mk_list *queue)
{
    struct mk_list *waiting = &MK_CONTAINER_OF(queue, struct mk_upstream_queue, node)->waiting;
    return MK_LIST_FIRST(waiting, struct mk_upstream_wait, node)->order;
}

/* Puts a queue, whose first request has left, where the next one belongs. */
static void sort_queue(struct pool *pool, struct mk_upstream_queue *queue)
{
    struct mk_list *next = queue->node.next;
    while (next != &pool->queues && get_order(next) < get_order(&queue->node))
        next = next->next;
    mk_list_del(&queue->node);
    mk_list_add(next, &queue->node); /* before it */
}

static const struct mk_counter *get_level(const struct pool *pool, const struct mk_upstream_wait *wait)
{
    return pool->counters[wait->is_held ? POOL_HELD : POOL_QUEUED];
}

int pool_add(struct pool *pool, struct mk_upstream_wait *wait)
{
    assert(wait->state == POOL_IDLE);
    struct mk_upstream_queue *queue = get_queue(pool, wait);
    if (!queue)
        return -ENOMEM;
    wait->state = POOL_WAITING;
    wait->order = pool->order++;
    wait->queue = queue;
    mk_list_add(&queue->waiting, &wait->node);
    queue->n++;
    pool->n_queued += !wait->is_held;
    mk_counter_add(get_level(pool, wait), NULL, 1); /* another thread may take it off */
    atomic_fetch_add(&pool->n_waiting, 1);
    return 0;
}

void pool_remove(struct pool *pool, struct mk_upstream_wait *wait)
{
    struct mk_upstream_queue *queue = wait->queue;
    assert(wait->state == POOL_WAITING);
    wait->state = POOL_IDLE;
    mk_list_del(&wait->node);
    if (--queue->n) {
        sort_queue(pool, queue);
    } else {
        mk_list_del(&queue->node);
        mk_account_free(NULL, queue, sizeof(*queue));
    }
    pool->n_queued -= !wait->is_held;
    mk_counter_add(get_level(pool, wait), NULL, -1);
    atomic_fetch_sub(&pool->n_waiting, 1);
}

void pool_grant(struct pool *pool, struct mk_upstream_wait *wait, struct mk_upstream_server *server)
{
    pool_remove(pool, wait);
    wait->state = POOL_GRANTED;
    wait->server = server;
    mk_post(wait->loop, &wait->message);
}
