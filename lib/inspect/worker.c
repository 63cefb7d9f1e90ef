// SPDX-License-Identifier: Apache-2.0
/*
 * What a worker's thread holds: timers, memory, generations (<monkey/inspect.h>).
 */
#include "server/inspect_core.h"

#include "server/server.h"
#include "version.h"

#include <monkey/inspect.h>

#include <errno.h>

int mk_inspect_check(void)
{
    const struct mk_inspect_core *c = &mk_inspect_core;
    bool same = strcmp(c->version, MK__VERSION) == 0 && c->conn_bytes == sizeof(struct mk__conn) &&
                c->http_bytes == sizeof(struct mk__context) && c->request_bytes == sizeof(struct mk_request) &&
                c->thread_bytes == sizeof(struct mk__thread) && c->generation_bytes == sizeof(struct mk_generation) &&
                c->server_bytes == sizeof(struct mk_server);
    return same ? 0 : -ENOEXEC;
}

/* Counts the timers of a slot, up to `max`. */
static uint32_t count_slot(struct mk_list *slot, uint32_t max)
{
    struct mk_list *n, *save;
    uint32_t count = 0;
    MK_LIST_EACH(slot, n, save)
        if (count++ == max)
            return max;
    return count;
}

static uint32_t count_timers(struct mk__wheel *wheel)
{
    uint32_t count = 0;
    for (unsigned level = 0; level < MK__WHEEL_LEVELS; level++)
        for (unsigned i = 0; i < MK__WHEEL_SLOTS && count < MK_INSPECT_TIMERS_MAX; i++)
            if (wheel->used[level] >> i & 1)
                count += count_slot(&wheel->slots[level][i], MK_INSPECT_TIMERS_MAX - count);
    return count;
}

static struct mk_inspect_pool describe_pool(const struct mk__pool *pool)
{
    return (struct mk_inspect_pool){pool->used, pool->object_bytes};
}

static void add_generation(const struct mk_worker *worker, struct mk_inspect_worker *out)
{
    if (out->n_generations == MK_INSPECT_GENERATIONS_MAX)
        return;
    out->generations[out->n_generations].number = worker->generation->number;
    out->generations[out->n_generations++].holders = worker->refs;
}

void mk_inspect_worker(const struct mk_worker *worker, struct mk_inspect_worker *ret)
{
    struct mk__thread *t = mk__inspect_core_thread(worker);
    uint64_t now = mk_loop_now_ms(&t->loop), next = mk_inspect_core.next_timer_ms(&t->loop.wheel);
    *ret = (struct mk_inspect_worker){
        .index = t->index,
        .connections = t->http.connections.used,
        .retiring = t->http.shutdown == MK__SHUTDOWN_RETIRING,
        .draining = t->http.shutdown == MK__SHUTDOWN_DRAINING || t->http.shutdown == MK__SHUTDOWN_ANNOUNCED,
        .timers = count_timers(&t->loop.wheel),
        .timer_ms = next == UINT64_MAX ? -1
                    : next > now       ? (int64_t)(next - now)
                                       : 0,
        .jobs = t->loop.jobs_pending,
        .memory = t->account.bytes,
        .memory_max = t->account.bytes_max,
        .spares = t->account.spares,
        .conn_pool = describe_pool(&t->http.connections),
        .request_pool = describe_pool(&t->http.requests),
    };
    add_generation(t->worker, ret);
    for (const struct mk_worker *w = t->replaced; w; w = w->next)
        add_generation(w, ret);
}

const struct mk_worker *mk_inspect_current(const struct mk_worker *worker)
{
    return mk__inspect_core_thread(worker)->worker;
}
