// SPDX-License-Identifier: Apache-2.0
/*
 * The sweeps of sweep.h.
 */
#include "sweep.h"

#include "parents.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SWEEP_MS = 1000, IDLE_SWEEPS = 20, EVICTED_MIN = 16 };

/* Files may have a quarter of the descriptors, and none of the last quarter. */
void sweep_limit_descriptors(struct cache *cache)
{
    struct rlimit limit;
    uint64_t wanted = cache->descriptors_wanted;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
        limit.rlim_cur = INT_MAX;
    uint64_t quarter = limit.rlim_cur / 4;
    cache->descriptors_max = wanted < quarter ? wanted : quarter;
    cache->fd_alarm = (int)(3 * quarter);
}

static bool has_descriptor_left(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void sweep_evict_descriptors(struct cache *cache)
{
    struct mk_store_stats stats;
    sweep_limit_descriptors(cache);
    mk_store_get_stats(cache->store, ENTRY_DESCRIPTOR, &stats);
    if (stats.items)
        mk_store_evict(cache->store, ENTRY_DESCRIPTOR,
                       has_descriptor_left() ? stats.items / 2 + EVICTED_MIN : UINT64_MAX);
    mk_store_reclaim(cache->store);
}

/* Returns true to have the descriptor closed. */
static bool is_unused(struct mk_item *item, void *ctx)
{
    struct stat st;
    struct entry *e = entry_of(item);
    (void)ctx;
    if (atomic_exchange_explicit(&e->used, false, memory_order_relaxed))
        e->idle_sweeps = 0;
    else if (++e->idle_sweeps >= IDLE_SWEEPS)
        return true;
    return fstat(e->fd, &st) < 0 || st.st_nlink == 0;
}

static void count_store(struct cache *cache)
{
    pthread_mutex_lock(&cache->stats_lock);
    cache_counters_add_store(&cache->counters, cache->store, cache->counted);
    cache_counters_add_notify(&cache->counters, &cache->notify, &cache->notify_counted);
    pthread_mutex_unlock(&cache->stats_lock);
}

static bool has_entries(const struct cache *cache, enum entry_kind kind)
{
    struct mk_store_stats stats;
    mk_store_get_stats(cache->store, kind, &stats);
    return stats.items;
}

/* Returns true if it is this worker that sweeps now. */
static bool claim_sweep(struct cache *cache, uint64_t now_ms)
{
    uint64_t due = cache->next_sweep_ms;
    return now_ms >= due && atomic_compare_exchange_strong(&cache->next_sweep_ms, &due, now_ms + SWEEP_MS);
}

static void on_timer(struct mk_timer *timer)
{
    struct cache_worker *w = MK_CONTAINER_OF(timer, struct cache_worker, sweep);
    struct cache *cache = w->cache;
    uint64_t now_ms = mk_loop_now_ms(w->loop);
    if (claim_sweep(cache, now_ms))
        mk_store_each(cache->store, ENTRY_DESCRIPTOR, is_unused, NULL);
    bool has_folders = parents_sweep(w);
    has_folders |= notify_sweep(&cache->notify, now_ms);
    size_t waiting = mk_store_reclaim(cache->store); /* what this turn may have seen waits for the next sweep */
    count_store(cache);
    if (waiting || has_folders || has_entries(cache, ENTRY_DESCRIPTOR))
        sweep_schedule(w);
}

void sweep_init(struct cache_worker *w)
{
    mk_timer_init(&w->sweep, on_timer);
}

void sweep_schedule(struct cache_worker *w)
{
    if (mk_list_empty(&w->sweep.node))
        mk_timer_arm(mk_worker_loop(w->worker), &w->sweep, SWEEP_MS);
}

void sweep_resume(struct cache_worker *w)
{
    bool is_needed = mk_store_reclaim(w->cache->store) > 0;
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        is_needed |= has_entries(w->cache, kind);
    if (is_needed)
        sweep_schedule(w);
}

void sweep_cancel(struct cache_worker *w)
{
    mk_timer_cancel(&w->sweep);
}
