// SPDX-License-Identifier: Apache-2.0
/*
 * The object `worker` (worker.h).
 */
#include "service/worker.h"

#include "common/api_error.h"
#include "common/current.h"
#include "log/message.h"
#include "objects.h"
#include "service/thread.h"

#include <errno.h>

static int spawn_worker(void *(*fn)(void *arg), void *arg)
{
    if (!phase_check(PHASE_MAIN, "worker->spawn()"))
        return -1;
    int err = fn ? thread_add(current.service, fn, arg) : -EINVAL;
    if (err < 0)
        message_log(MK_LOG_ERROR, "worker->spawn(): %s", strerror(-err));
    return err < 0 ? -1 : 0;
}

static int add_pre_loop(void (*fn)(void *data), void *data)
{
    if (!phase_check(PHASE_MAIN, "worker->pre_loop()") || !fn)
        return -1;
    struct service *s = current.service;
    struct pre_loop *row = mk_arena_zalloc(&s->arena, sizeof(*row)), **end = &pre_loops_of(s)->first;
    if (!row)
        return -1;
    *row = (struct pre_loop){NULL, fn, data};
    while (*end)
        end = &(*end)->next;
    *end = row;
    return 0;
}

int worker_run_pre_loops(struct service_worker *w)
{
    for (const struct pre_loop *row = pre_loops_of(w->service)->first; row; row = row->next)
        row->fn(row->data);
    return 0;
}

static bool is_stopping(void)
{
    return current.service && atomic_load(&threads_of(current.service)->stopping);
}

static int get_index(void)
{
    return current.worker ? (int)current.worker->index : -1;
}

static int count_workers(void)
{
    if (!phase_check(PHASE_ANY, "worker->count()"))
        return 0;
    struct service *s = current.service;
    int n = 0;
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, const struct service_worker, node, w)
        n += !w->ended;
    pthread_mutex_unlock(&s->lock);
    return n;
}

const struct duda_api_worker object_worker = {
    .spawn = spawn_worker,
    .pre_loop = add_pre_loop,
    .stopping = is_stopping,
    .index = get_index,
    .count = count_workers,
};
